"""Tasks of Cline and of Roo Code: folders of the editor's extensions, and the sessions of the command line.

Format: vshulcz/deja-vu, docs/registry/cline.md. The extensions put the state of the editor into each message.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, own_words, usage_of
from ragforge_tui.other_agents.reading import any_json, decoded, fields, file_sessions, items, time_of, whole_json, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "cline"
HISTORY = "api_conversation_history.json"
SESSION_END = ".messages.json"

_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_TASK = re.compile(r"</?(?:task|feedback|user_message|answer|user_input)(?: [^<>]{0,200})?>")


def store(home: Path) -> Path:
    """Return the folder in which the command line keeps sessions."""
    return Path(os.environ.get("CLINE_DATA_DIR") or Path(os.environ.get("CLINE_DIR") or home / ".cline") / "data")


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of the command line, then the tasks of the extensions."""
    data = store(home)
    for found in file_sessions(AGENT, data.glob(f"sessions/*/*{SESSION_END}")):
        path = Path(found.path)
        session = fields(any_json(path.with_name(path.name.removesuffix(SESSION_END) + ".json")))
        yield _named(found, path.parent.name, word(session.get("workspace_root") or session.get("cwd")))
    for root in _extension_roots(home):
        tasks = {word(task.get("id")): task for task in items(any_json(root / "state/taskHistory.json"))}
        for found in file_sessions(AGENT, root.glob(f"tasks/*/{HISTORY}")):
            path = Path(found.path)
            task = tasks.get(path.parent.name) or fields(any_json(path.with_name("history_item.json")))
            folder = word(task.get("cwdOnTaskInitialization") or task.get("workspace"))
            yield _named(found, path.parent.name, folder)


def is_ours(value: object) -> bool:
    """Return whether the value of a JSON file is a task."""
    messages = items(value) or items(fields(value).get("messages"))
    return bool(messages) and all("role" in message and "content" in message for message in messages)


def session_id(path: Path, value: object) -> str:
    """Return the id of a task that lies anywhere: the one it names, or that of its folder or file."""
    origin = fields(fields(value).get("sessionHistoryOrigin"))
    name = path.parent.name if path.name == HISTORY else path.name.removesuffix(".json").removesuffix(".messages")
    return word(fields(value).get("sessionId") or origin.get("sessionId")) or name


def read(found: FoundSession) -> Transcript:
    """Read a task.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    value = whole_json(path)
    transcript = Transcript(folder=found.folder)
    if path.name.endswith(SESSION_END):
        session = fields(any_json(path.with_name(path.name.removesuffix(SESSION_END) + ".json")))
        transcript.title = word(fields(session.get("metadata")).get("title"))
    started = time_of(decoded(path.parent.name)) if path.parent.name.isdigit() else None
    for message in items(value) or items(fields(value).get("messages")):
        at = time_of(message.get("ts")) or (started if not transcript else None)
        info = fields(message.get("modelInfo"))
        model, usage = word(info.get("id") or info.get("modelId")), usage_of(message.get("metrics"))
        add_parts(
            transcript, message.get("role"), message.get("content"), at, model=model, usage=usage, words=_own_words
        )
    return transcript


def _own_words(text: str) -> str:
    return own_words(_TASK.sub("", text))


def _named(found: FoundSession, id: str, folder: str) -> FoundSession:
    return msgspec.structs.replace(found, id=id, folder=folder)


def _extension_roots(home: Path) -> list[Path]:
    """Return the folders in which editors keep what the extensions store."""
    if sys.platform == "darwin":
        base = home / "Library/Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or home / "AppData/Roaming")
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    bases = [base / editor / "User" for editor in _EDITORS]
    bases += [home / ".vscode-server/data/User", home / ".cursor-server/data/User"]
    return [folder / "globalStorage" / extension for folder in bases for extension in _EXTENSIONS]
