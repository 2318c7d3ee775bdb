"""Chats of aider: one Markdown file per folder, in which each start of the program begins a chat.

Format: vshulcz/deja-vu, docs/registry/aider.md. Lines that begin with ``####`` are the user's, those that begin with
``>`` the program's, others the model's; times are of the start alone, in local time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ragforge_tui.other_agents.reading import MOST_FILE, version
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "aider"
FILE = ".aider.chat.history.md"

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_PLACES = ("", "*/", "*/*/", "*/*/*/")
"""Folders below the home that are searched: three levels, as repositories usually lie there."""
_USER = "#### "


def find(home: Path, folders: Iterable[Path] = ()) -> Iterator[FoundSession]:
    """Yield the chats in the home folder, three levels below it, and in the folders that are given."""
    files = [path for place in _PLACES for path in home.glob(place + FILE)]
    files += [folder / FILE for folder in folders]
    if named := os.environ.get("AIDER_CHAT_HISTORY_FILE"):
        files.append(Path(named))
    for path in dict.fromkeys(path.absolute() for path in files):
        try:
            yield from in_file(path)
        except OSError:
            continue


def in_file(path: Path) -> Iterator[FoundSession]:
    """Yield the chats of one file.

    Raises:
        OSError: The file cannot be read.
    """
    for started, text in _chats(path):
        if _USER in text:
            size = len(text.encode())
            yield FoundSession(
                agent=AGENT,
                id=f"{path.parent}@{started}",
                folder=str(path.parent),
                path=str(path),
                bytes=size,
                version=str(size) if started else version(path),
            )


def read(found: FoundSession) -> Transcript:
    """Read one chat of a file.

    Raises:
        OSError: The file cannot be read.
    """
    started = found.id.rpartition("@")[2]
    text = dict(_chats(Path(found.path))).get(started, "")
    transcript = Transcript(folder=found.folder)
    at = _local_time(started)
    for role, words in _messages(text):
        if role == "user":
            transcript.user(words, at)
        else:
            transcript.reply(words, at)
        at = None
    return transcript


def _chats(path: Path) -> list[tuple[str, str]]:
    """Return the start and the text of each chat; chats of the same second are one."""
    pieces = _START.split(read_regular(path, MOST_FILE).decode("utf-8", "replace"))
    chats: dict[str, str] = {}
    for started, text in zip(pieces[1::2], pieces[2::2], strict=True):
        chats[started] = chats.get(started, "") + text
    return list(chats.items())


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Yield the messages of a chat. Inside a fence of code, all lines are the model's."""
    role, lines, fence = "", list[str](), False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = not fence
        kind = "assistant"
        if not fence and line.startswith(_USER.rstrip()):
            kind, line = "user", line[len(_USER) :].replace("<blank>", "")
        elif not fence and line.startswith(">"):
            kind = ""
        elif not line.strip():
            kind = role
        if kind != role:
            if role and any(entry.strip() for entry in lines):
                yield role, "\n".join(lines).strip()
            role, lines = kind, []
        lines.append(line)
    if role and any(entry.strip() for entry in lines):
        yield role, "\n".join(lines).strip()


def _local_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
