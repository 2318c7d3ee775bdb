"""Sessions of Codex: rollouts ``sessions/YYYY/MM/DD/rollout-*.jsonl`` and ``archived_sessions``, also compressed.

Format: openai/codex, codex-rs/protocol/src/protocol.rs (RolloutItem). The oldest rollouts hold bare response items.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ragforge_tui.other_agents.reading import (
    COMPRESSED,
    decoded,
    fields,
    file_sessions,
    head,
    items,
    json_lines,
    text_of,
    time_of,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "codex"
_PROGRAM_TEXTS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<skill>",
    "# AGENTS.md instructions",
)


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the rollouts; one that was archived has the id it had before."""
    root = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    seen: set[str] = set()
    files = [
        path
        for folder in ("sessions", "archived_sessions")
        for ending in ("", COMPRESSED)
        for path in root.glob(f"{folder}/**/rollout-*.jsonl{ending}")
    ]
    for found in file_sessions(AGENT, files):
        lines = head(Path(found.path))
        if lines and (id := _id(lines) or found.id) not in seen:
            seen.add(id)
            yield FoundSession(
                agent=AGENT, id=id, folder=_folder(lines), path=found.path, bytes=found.bytes, version=found.version
            )


def is_ours(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a rollout."""
    return any(line.get("type") == "session_meta" and "payload" in line for line in lines)


def read(found: FoundSession) -> Transcript:
    """Read a rollout.

    Raises:
        OSError: The file cannot be read.
    """
    transcript = Transcript(folder=found.folder)
    model = ""
    for line in json_lines(Path(found.path)):
        kind, payload = line.get("type"), fields(line.get("payload"))
        if kind == "turn_context":
            model = word(payload.get("model")) or model
        elif kind == "session_meta":
            transcript.folder = transcript.folder or word(payload.get("cwd"))
        item = payload if kind == "response_item" else line if "payload" not in line else {}
        if item:
            _add(transcript, item, time_of(line.get("timestamp")), model)
    return transcript


def _add(transcript: Transcript, item: dict[str, Any], at: datetime | None, model: str) -> None:
    kind = item.get("type") or ("message" if "role" in item else "")
    id = word(item.get("call_id") or item.get("id"))
    if kind == "message":
        text = text_of(item.get("content"))
        if item.get("role") == "assistant":
            transcript.reply(text, at, model=model)
        elif item.get("role") == "user" and not text.lstrip().startswith(_PROGRAM_TEXTS):
            transcript.user(text, at)
    elif kind == "reasoning":
        thought = text_of(item.get("summary")) or text_of(item.get("content"))
        if thought:
            transcript.reply("", at, reasoning=thought, model=model)
    elif kind in ("function_call", "custom_tool_call"):
        transcript.call(id, word(item.get("name")), item.get("arguments", item.get("input", "")), at)
    elif kind == "local_shell_call":
        transcript.call(id, "local_shell", item.get("action", {}), at)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        _result(transcript, id, item.get("output"), at)


def _result(transcript: Transcript, id: str, output: object, at: datetime | None) -> None:
    """Set a result: a text, content with `success`, or JSON text with the output and the exit code of a command."""
    value = decoded(output) if isinstance(output, str) and output.lstrip().startswith("{") else output
    if not isinstance(value, dict):
        transcript.result(id, text_of(output), at)
        return
    text = text_of(value.get("output", value.get("content", ""))) or text_of(output)
    exit_code = fields(value.get("metadata")).get("exit_code", 0)
    transcript.result(id, text, at, failed=value.get("success") is False or exit_code not in (0, None))


def _id(lines: list[dict[str, Any]]) -> str:
    for line in lines:
        if line.get("type") == "session_meta":
            payload = fields(line.get("payload"))
            return word(payload.get("id") or payload.get("session_id"))
    return word(lines[0].get("id"))


def _folder(lines: list[dict[str, Any]]) -> str:
    places = (word(fields(line.get("payload")).get("cwd")) for line in items(lines))
    return next(filter(None, places), "")
