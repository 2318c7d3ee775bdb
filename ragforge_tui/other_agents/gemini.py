"""Sessions of gemini-cli and of its descendant Qwen Code.

gemini-cli: ``tmp/<project>/chats/*.json`` whole, or ``.jsonl`` with records that change what came before them
(google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts). What the user took back by a rewind is
kept, as nothing that was said is dropped. Qwen: ``projects/<folder>/chats/*.jsonl`` with the parts of Google's API.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, usage_of
from ragforge_tui.other_agents.reading import (
    any_json,
    fields,
    file_sessions,
    head,
    items,
    json_lines,
    session_lines,
    time_of,
    whole_json,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

GEMINI = "gemini-cli"
QWEN = "qwen"


def store_gemini(home: Path) -> Path:
    """Return the folder of gemini-cli."""
    return Path(os.environ.get("GEMINI_CLI_HOME") or home) / ".gemini"


def store_qwen(home: Path) -> Path:
    """Return the folder of Qwen Code."""
    return Path(os.environ.get("QWEN_HOME") or home / ".qwen")


def find_gemini(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions; files in both forms, and those of a resumed session, have its id."""
    root = store_gemini(home)
    folders = _folders(root)
    for found in file_sessions(GEMINI, [*root.glob("tmp/*/chats/*.json"), *root.glob("tmp/*/chats/*.jsonl")]):
        path = Path(found.path)
        first = session_head(path)
        if not (id := word(first.get("sessionId"))) or first.get("kind") == "subagent":
            continue
        project = path.parent.parent
        folder = folders.get(project.name) or _root_file(project) or folders.get(word(first.get("projectHash")), "")
        yield msgspec.structs.replace(found, id=id, folder=folder)


def find_qwen(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of Qwen Code."""
    root = store_qwen(home)
    for found in file_sessions(QWEN, root.glob("projects/*/chats/*.jsonl")):
        folder = next((word(line.get("cwd")) for line in head(Path(found.path)) if line.get("cwd")), "")
        yield msgspec.structs.replace(found, folder=folder)


def is_gemini(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these objects is a session of gemini-cli."""
    return any("sessionId" in line and "startTime" in line for line in lines)


def is_qwen(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a session of Qwen Code."""
    return any("sessionId" in line and "parts" in fields(line.get("message")) for line in lines)


def read_gemini(found: FoundSession) -> Transcript:
    """Read a session of gemini-cli. A resume stores all messages again, in a shorter form.

    Raises:
        OSError: A file cannot be read.
    """
    transcript = Transcript(folder=found.folder)
    messages: dict[str, dict[str, Any]] = {}
    for line in _lines(found):
        changed = fields(line.get("$set")) or line
        transcript.title = word(changed.get("summary")) or transcript.title
        for message in items(changed.get("messages")) or ([line] if "type" in line else []):
            id = word(message.get("id")) or f"#{len(messages)}"
            # What is known stays where the message is stored again without it, and so does its time.
            known = messages.get(id, {})
            richer = "tokens" in known and "tokens" not in message
            messages[id] = {**message, **known} if richer else {**known, **message, **_time(known)}
    for id, message in messages.items():
        _add_gemini(transcript, id, message)
    return transcript


def read_qwen(found: FoundSession) -> Transcript:
    """Read a session of Qwen Code. What was written late is put after what it answers.

    Raises:
        OSError: A file cannot be read.
    """
    transcript = Transcript(folder=found.folder)
    lines = list(session_lines(found))
    for line in _in_turns(lines):
        message, at, kind = fields(line.get("message")), time_of(line.get("timestamp")), line.get("type")
        if kind not in ("user", "assistant", "tool_result"):
            continue
        transcript.folder = transcript.folder or word(line.get("cwd"))
        role = "user" if kind == "user" and message.get("role") != "model" else "tool" if kind != "assistant" else kind
        add_parts(
            transcript,
            role,
            message.get("parts"),
            at,
            id=word(line.get("uuid")),
            model=word(line.get("model")),
            usage=usage_of(line.get("usageMetadata")),
            details=fields(line.get("toolCallResult")).get("resultDisplay"),
        )
    return transcript


def _in_turns(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines by the user's message that each belongs to, found through their parents, else in order."""
    turns: dict[str, str] = {}
    by_turn: dict[str, list[dict[str, Any]]] = {}
    at = ""
    for line in lines:
        own, before = word(line.get("uuid")), word(line.get("parentUuid"))
        asks = line.get("type") == "user" and fields(line.get("message")).get("role") != "model"
        at = own if asks else turns.get(before, at)
        turns[own] = at
        by_turn.setdefault(at, []).append(line)
    return [line for turn in by_turn.values() for line in turn]


def _add_gemini(transcript: Transcript, id: str, message: dict[str, Any]) -> None:
    at, content = time_of(message.get("timestamp")), message.get("content")
    thoughts = [f"{word(t.get('subject'))}: {word(t.get('description'))}" for t in items(message.get("thoughts"))]
    parts = [content] if isinstance(content, dict) else content
    parts = [{"text": parts}] if isinstance(parts, str) else items(parts)
    if thoughts:
        thought = {"text": "\n\n".join(thoughts), "thought": True}
        parts = [thought, *(part for part in parts if part.get("thought") is not True)]
    model, usage = word(message.get("model")), usage_of(message.get("tokens"))
    role = "user" if message.get("type") == "user" else message.get("type")
    add_parts(transcript, role, parts, at, id=id, model=model, usage=usage)
    for call in items(message.get("toolCalls")):
        moment, id = time_of(call.get("timestamp")) or at, word(call.get("id"))
        transcript.call(id, word(call.get("name")), call.get("args", {}), moment)
        if (status := call.get("status")) in ("success", "error", "cancelled"):
            shown = call.get("resultDisplay")
            result = [word(part.get("text")) or part for part in items(call.get("result"))] or call.get("result")
            value = [fields(part).get("functionResponse", part) for part in result] if isinstance(result, list) else ""
            transcript.result(id, value or result or shown, moment, failed=status != "success", details=shown)


def _lines(found: FoundSession) -> Iterator[dict[str, Any]]:
    """Yield the records of a session's files; one of the older form is a single record."""
    for path in (found.path, *found.parts):
        if path.endswith(".jsonl"):
            yield from json_lines(Path(path))
        else:
            yield fields(whole_json(Path(path)))


def _time(message: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": message["timestamp"]} if "timestamp" in message else {}


def session_head(path: Path) -> dict[str, Any]:
    """Return the record at the head of a session's file; empty for another file."""
    if path.suffix == ".jsonl":
        return next((line for line in head(path) if "sessionId" in line), {})
    return fields(any_json(path))


def _folders(root: Path) -> dict[str, str]:
    """Return the folder of each project, by its short name and by the digest that older versions used."""
    projects = fields(fields(any_json(root / "projects.json")).get("projects"))
    by_name = {word(name): folder for folder, name in projects.items()}
    return by_name | {hashlib.sha256(folder.encode()).hexdigest(): folder for folder in projects}


def _root_file(project: Path) -> str:
    try:
        return (project / ".project_root").read_text(errors="replace").strip()
    except OSError:
        return ""
