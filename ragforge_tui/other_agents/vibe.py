"""Sessions of Mistral Vibe: folders with ``messages.jsonl``, and the store of version 3.

The store has a folder for each session: `CURRENT` names a generation, its manifest the chunks with the history and the
journal with what came after. Older messages carry no time: they follow the session's start in steps of a millisecond.
Format: mistralai/mistral-vibe, vibe/core/session; files of 3.0.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, usage_of
from ragforge_tui.other_agents.reading import (
    any_json,
    fields,
    file_sessions,
    items,
    json_lines,
    text_of,
    time_of,
    version,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "vibe"
MESSAGES = "messages.jsonl"
CURRENT = "CURRENT"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def store(home: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return Path(os.environ.get("VIBE_HOME") or home / ".vibe") / "logs/session"


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of both forms; those of helpers are left out."""
    logs = store(home)
    for path in (*logs.glob(f"*/{MESSAGES}"), *logs.glob(f"unified/*/{CURRENT}")):
        yield from in_folder(path.parent)


def in_folder(folder: Path) -> Iterator[FoundSession]:
    """Yield the session of a folder; none if there is none, or it is a helper's."""
    meta = fields(any_json(folder / "meta.json"))
    files = [folder / CURRENT, *_journal(folder)] if (folder / CURRENT).is_file() else [folder / MESSAGES]
    for found in file_sessions(AGENT, files[:1]):
        if not meta.get("parent_session_id"):
            id = word(meta.get("session_id")) or word(fields(any_json(folder / CURRENT)).get("session_id"))
            yield msgspec.structs.replace(
                found,
                id=id or folder.name,
                folder=word(fields(meta.get("environment")).get("working_directory")),
                bytes=sum(file.stat().st_size for file in folder.rglob("*.json*")),
                version="+".join(map(version, files)),
            )


def read(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    meta = fields(any_json(path.with_name("meta.json")))
    config = fields(meta.get("config"))
    model = word(config.get("model_name")) or word(config.get("active_model"))
    transcript = Transcript(title=word(meta.get("title")), folder=found.folder)
    if path.name == CURRENT:
        for entry in _history(path.parent).values():
            _add(transcript, entry, model)
    else:
        at = time_of(meta.get("start_time"))
        for line in json_lines(path):
            thought = {"text": word(line.get("reasoning_content")), "thought": True}
            parts = [thought, {"text": text_of(line.get("content"))}, *items(line.get("tool_calls"))]
            if line.get("role") == "tool":
                parts = [{**line, "type": "tool_result"}]
            add_parts(transcript, line.get("role"), parts, at, model=model)
            at = None
    state = fields(fields(_generation(path.parent, "projection-state.json").get("snapshot")).get("session"))
    transcript.count(usage_of(state.get("tokenUsage") or meta.get("stats")))  # they are counted for the whole session
    return transcript


def _add(transcript: Transcript, entry: dict[str, Any], model: str) -> None:
    """Add an entry of the store: a message, reasoning, or a call with its result."""
    at, id, kind = time_of(entry.get("createdAt")), word(entry.get("id")), entry.get("type")
    reply = match[0] if (match := _UUID.search(id)) else id
    if kind == "effect":
        detail, state = fields(entry.get("detail")), fields(entry.get("state"))
        transcript.call(id, word(detail.get("toolName")), detail.get("input", {}), at)
        if entry.get("generationStatus") == "completed" or state.get("output"):
            failed = state.get("status") not in ("completed", None)
            output = fields(state.get("output"))
            value = output or word(state.get("outputText"))
            transcript.result(id, value, time_of(entry.get("updatedAt")), failed=failed, details=output)
    elif kind == "reasoning":
        transcript.reply("", at, reasoning=word(entry.get("text")), model=model, id=reply)
    elif kind == "message" and entry.get("role") == "user":
        if entry.get("source") != "harness":
            add_parts(transcript, "user", entry.get("content"), at, id=id)
    elif kind == "message":
        add_parts(transcript, "assistant", entry.get("content"), at, model=model, id=reply)


def _history(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a session by id, each as it was stored last."""
    chunks = fields(_generation(folder, "manifest.json").get("projection_state")).get("chunks")
    entries: list[dict[str, Any]] = []
    for name in chunks if isinstance(chunks, list) else []:
        entries += items(any_json(folder / "chunks" / f"{Path(word(name)).name}.json"))
    for path in _journal(folder):
        with suppress(OSError):
            deltas = [fields(line.get("payload")).get("delta") for line in json_lines(path)]
            entries += [fields(change.get("entry")) for delta in deltas for change in items(delta)]
    return {id: entry for entry in entries if (id := word(entry.get("id")))}


def _journal(folder: Path) -> list[Path]:
    segment = fields(_generation(folder, "manifest.json").get("recovery_journal_segment"))
    path = folder / "journal" / Path(word(segment.get("path"))).name
    return [path] if path.is_file() else []


def _generation(folder: Path, file: str) -> dict[str, Any]:
    """Return a file of the generation that is current."""
    name = Path(word(fields(any_json(folder / CURRENT)).get("generation"))).name
    return fields(any_json(folder / "generations" / name / file)) if name else {}
