"""Sessions of gemini-cli and of its descendant Qwen Code.

gemini-cli: ``tmp/<project>/chats/*.json`` whole, or ``.jsonl`` with records that change what came before them
(google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts). What the user took back by a rewind is
kept, as nothing that was said is dropped. Qwen: ``projects/<folder>/chats/*.jsonl`` with the parts of Google's API.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ragforge_tui.other_agents.reading import (
    fields,
    file_sessions,
    head,
    items,
    json_lines,
    number,
    text_of,
    time_of,
    whole_json,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.records import Usage

GEMINI = "gemini-cli"
QWEN = "qwen"


def find_gemini(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions; of one in both forms, the newer form alone."""
    root = Path(os.environ.get("GEMINI_CLI_HOME") or home) / ".gemini"
    folders = _folders(root)
    seen: set[str] = set()
    files = [*root.glob("tmp/*/chats/*.jsonl"), *root.glob("tmp/*/chats/*.json")]
    for found in sorted(file_sessions(GEMINI, files), key=lambda f: not f.path.endswith(".jsonl")):
        path = Path(found.path)
        first = _session(path)
        id = word(first.get("sessionId"))
        if not id or id in seen or first.get("kind") == "subagent":
            continue
        seen.add(id)
        project = path.parent.parent
        folder = folders.get(project.name) or _root_file(project) or folders.get(word(first.get("projectHash")), "")
        yield FoundSession(
            agent=GEMINI, id=id, folder=folder, path=found.path, bytes=found.bytes, version=found.version
        )


def find_qwen(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of Qwen Code."""
    root = Path(os.environ.get("QWEN_HOME") or home / ".qwen")
    for found in file_sessions(QWEN, root.glob("projects/*/chats/*.jsonl")):
        folder = next((word(line.get("cwd")) for line in head(Path(found.path)) if line.get("cwd")), "")
        yield FoundSession(
            agent=QWEN, id=found.id, folder=folder, path=found.path, bytes=found.bytes, version=found.version
        )


def is_gemini(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these objects is a session of gemini-cli."""
    return any("sessionId" in line and "startTime" in line for line in lines)


def is_qwen(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a session of Qwen Code."""
    return any("sessionId" in line and "parts" in fields(line.get("message")) for line in lines)


def read_gemini(found: FoundSession) -> Transcript:
    """Read a session of gemini-cli.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    transcript = Transcript(folder=found.folder)
    messages: dict[str, dict[str, Any]] = {}
    lines = json_lines(path) if path.suffix == ".jsonl" else iter([fields(whole_json(path))])
    for line in lines:
        changed = fields(line.get("$set")) or line
        transcript.title = word(changed.get("summary")) or transcript.title
        for message in items(changed.get("messages")) or ([line] if "type" in line else []):
            messages[word(message.get("id")) or f"#{len(messages)}"] = message
    for message in messages.values():
        _add_gemini(transcript, message)
    return transcript


def read_qwen(found: FoundSession) -> Transcript:
    """Read a session of Qwen Code.

    Raises:
        OSError: The file cannot be read.
    """
    transcript = Transcript(folder=found.folder)
    for line in json_lines(Path(found.path)):
        message, at = fields(line.get("message")), time_of(line.get("timestamp"))
        parts = items(message.get("parts"))
        if line.get("type") not in ("user", "assistant", "tool_result"):
            continue
        transcript.folder = transcript.folder or word(line.get("cwd"))
        said = "\n\n".join(word(part.get("text")) for part in parts if part.get("text") and not part.get("thought"))
        if line.get("type") == "user" and message.get("role") != "model":
            transcript.user(said, at)
        elif line.get("type") == "assistant":
            thought = "\n\n".join(word(part.get("text")) for part in parts if part.get("thought"))
            usage = _qwen_usage(line.get("usageMetadata"))
            transcript.reply(said, at, reasoning=thought, model=word(line.get("model")), usage=usage)
        for part in parts:
            _add_function(transcript, part, at)
    return transcript


def _add_function(transcript: Transcript, part: dict[str, Any], at: datetime | None) -> None:
    if call := fields(part.get("functionCall")):
        transcript.call(
            word(call.get("id")) or word(call.get("name")), word(call.get("name")), call.get("args", {}), at
        )
    if response := fields(part.get("functionResponse")):
        value = fields(response.get("response"))
        failed = "error" in value
        text = text_of(value.get("error" if failed else "output", ""))
        transcript.result(word(response.get("id")) or word(response.get("name")), text, at, failed=failed)


def _add_gemini(transcript: Transcript, message: dict[str, Any]) -> None:
    at, text = time_of(message.get("timestamp")), text_of(message.get("content"))
    if message.get("type") == "user":
        transcript.user(text, at)
    elif message.get("type") in ("gemini", "model"):
        thoughts = [f"{word(t.get('subject'))}: {word(t.get('description'))}" for t in items(message.get("thoughts"))]
        tokens = fields(message.get("tokens"))
        usage = Usage(
            input_tokens=number(tokens.get("input")),
            output_tokens=number(tokens.get("output")) + number(tokens.get("thoughts")),
            cached_tokens=number(tokens.get("cached")),
        )
        model = word(message.get("model"))
        transcript.reply(text, at, reasoning="\n\n".join(thoughts), model=model, usage=usage if tokens else None)
        for call in items(message.get("toolCalls")):
            moment = time_of(call.get("timestamp")) or at
            transcript.call(word(call.get("id")), word(call.get("name")), call.get("args", {}), moment)
            status = call.get("status")
            if status in ("success", "error", "cancelled"):
                result = _gemini_result(call) or word(call.get("resultDisplay"))
                transcript.result(word(call.get("id")), result, moment, failed=status != "success")


def _gemini_result(call: dict[str, Any]) -> str:
    """Return the text of a result: parts with text, or with the response of a function."""
    result = call.get("result")
    if isinstance(result, str):
        return result
    texts = []
    for part in items(result):
        response = fields(fields(part.get("functionResponse")).get("response"))
        texts.append(text_of(response.get("output", response.get("error", ""))) or word(part.get("text")))
    return "\n".join(filter(None, texts))


def _session(path: Path) -> dict[str, Any]:
    if path.suffix == ".jsonl":
        return next((line for line in head(path) if "sessionId" in line), {})
    try:
        return fields(whole_json(path))
    except OSError:
        return {}


def _folders(root: Path) -> dict[str, str]:
    """Return the folder of each project, by its short name and by the digest that older versions used."""
    try:
        projects = fields(fields(whole_json(root / "projects.json")).get("projects"))
    except OSError:
        return {}
    by_name = {word(name): folder for folder, name in projects.items()}
    return by_name | {hashlib.sha256(folder.encode()).hexdigest(): folder for folder in projects}


def _root_file(project: Path) -> str:
    try:
        return (project / ".project_root").read_text(errors="replace").strip()
    except OSError:
        return ""


def _qwen_usage(value: object) -> Usage | None:
    usage = fields(value)
    if not usage:
        return None
    return Usage(
        input_tokens=number(usage.get("promptTokenCount")),
        output_tokens=number(usage.get("candidatesTokenCount")) + number(usage.get("thoughtsTokenCount")),
        cached_tokens=number(usage.get("cachedContentTokenCount")),
    )
