"""Sessions of Mistral Vibe: folders with ``meta.json`` and ``messages.jsonl``.

Format: mistralai/mistral-vibe, vibe/core/session/session_logger.py. Messages carry no time: they follow the session's
start in steps of a millisecond.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ragforge_tui.other_agents.reading import (
    fields,
    file_sessions,
    items,
    json_lines,
    text_of,
    time_of,
    whole_json,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "vibe"
MESSAGES = "messages.jsonl"
META = "meta.json"


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions."""
    root = Path(os.environ.get("VIBE_HOME") or home / ".vibe")
    for found in file_sessions(AGENT, root.glob(f"logs/session/*/{MESSAGES}")):
        yield describe(Path(found.path), found)


def describe(path: Path, found: FoundSession) -> FoundSession:
    """Return a found session with the id and folder of its `meta.json`."""
    meta = _meta(path)
    folder = word(fields(meta.get("environment")).get("working_directory"))
    id = word(meta.get("session_id")) or path.parent.name
    return FoundSession(agent=AGENT, id=id, folder=folder, path=str(path), bytes=found.bytes, version=found.version)


def read(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    meta = _meta(path)
    transcript = Transcript(title=word(meta.get("title")), folder=found.folder)
    at = time_of(meta.get("start_time"))
    for line in json_lines(path):
        text, role = text_of(line.get("content")), line.get("role")
        if role == "user":
            transcript.user(text, at)
        elif role == "assistant":
            transcript.reply(text, at, reasoning=word(line.get("reasoning_content")))
            for call in items(line.get("tool_calls")):
                function = fields(call.get("function"))
                transcript.call(word(call.get("id")), word(function.get("name")), function.get("arguments", "{}"))
        elif role == "tool":
            transcript.result(word(line.get("tool_call_id")), text)
        else:
            continue
        at = None
    return transcript


def _meta(path: Path) -> dict[str, object]:
    try:
        return fields(whole_json(path.with_name(META)))
    except OSError:
        return {}
