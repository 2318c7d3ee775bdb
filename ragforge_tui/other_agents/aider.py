"""Chats of aider: one Markdown file per folder, in which each start of the program begins a chat.

Lines of the user begin with ``####``, those of the program with ``>``, and aider ends both with two blanks, by which
they differ from the same marks in an answer. Files without the blanks exist too. Times are of the start alone, in
local time. Format: vshulcz/deja-vu, docs/registry/aider.md; files of 0.86.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ragforge_tui.other_agents.blocks import without_elements
from ragforge_tui.other_agents.reading import MOST_WHOLE, version
from ragforge_tui.other_agents.stored_edits import search_blocks
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.records import Commit, Usage

AGENT = "aider"
FILE = ".aider.chat.history.md"

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_PLACES = ("", "*/", "*/*/", "*/*/*/")
"""Folders below the home that are searched: three levels, as repositories usually lie there."""
_USER, _PROGRAM, _END = "####", ">", "  "
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_THOUGHT = re.compile(r"think(?:ing)?[\w-]*")
_MODEL = re.compile(r"^> (?:Main model|Model): (\S+)", re.MULTILINE)
_TOKENS = re.compile(r"Tokens: (\d+(?:\.\d+)?[kM]?) sent,.{0,100}? (\d+(?:\.\d+)?[kM]?) received")
_EDITED = re.compile(r"Applied edit to (.+)")
_COMMIT = re.compile(r"Commit ([0-9a-f]{7,40}) (.*)")
_COMMAND = re.compile(r"[/!](\S*)\s*(.*)", re.DOTALL)
_ASKING = frozenset({"ask", "code", "architect", "context", "chat-mode"})
"""Commands whose argument is a message."""
_UNITS = {"k": 1_000, "M": 1_000_000}


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the chats in the home folder and three levels below it."""
    files = [path for place in _PLACES for path in home.glob(place + FILE)]
    if named := os.environ.get("AIDER_CHAT_HISTORY_FILE"):
        files.append(Path(named))
    yield from _in_files(files)


def near(folders: Iterable[Path]) -> Iterator[FoundSession]:
    """Yield the chats in folders and those above them, wherever these are."""
    yield from _in_files(place / FILE for folder in folders for place in (folder, *folder.parents))


def _in_files(files: Iterable[Path]) -> Iterator[FoundSession]:
    for path in dict.fromkeys(path.absolute() for path in files if path.is_file()):
        try:
            yield from in_file(path)
        except OSError:
            continue


def in_file(path: Path) -> Iterator[FoundSession]:
    """Yield the chats of one file.

    Raises:
        OSError: The file cannot be read.
    """
    folder = str(path.absolute().parent)
    for started, text in _chats(path):
        if f"\n{_USER}" in text:
            size = len(text.encode())
            yield FoundSession(
                agent=AGENT,
                id=f"{folder}@{started}",
                folder=folder,
                path=str(path.absolute()),
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
    model = match[1] if (match := _MODEL.search(text)) else ""
    at, answer = _local_time(started), ""
    for role, words in _messages(text):
        if role == "user":
            # In its architect mode aider gives an answer to a second model as if the user had said it.
            if (said := _own_words(words)) and said.split() != answer.split():
                transcript.user(said, at)
                at = None
        elif role == "assistant":
            answer, thoughts = without_elements(words, _THOUGHT)
            answer = answer.strip()
            transcript.reply(answer, reasoning="\n\n".join(thoughts), model=model)
        elif transcript:
            _note(transcript, words, answer)
    return transcript


def _note(transcript: Transcript, line: str, answer: str) -> None:
    """Take in a line of the program about the last answer."""
    if tokens := _TOKENS.search(line):
        transcript.count(Usage(input_tokens=_count(tokens[1]), output_tokens=_count(tokens[2])))
    elif edited := _EDITED.match(line):
        path = edited[1].strip()
        transcript.edited(path, list(search_blocks(path, answer)))
    elif commit := _COMMIT.match(line):
        transcript.commit(Commit(hash=commit[1], subject=commit[2].strip(), committed_at=transcript.last_time))


def _count(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    return round(float(text.rstrip("kM")) * unit)


def _own_words(text: str) -> str:
    """Return a message without the command that sends it; empty for a command that sends none."""
    command = _COMMAND.fullmatch(text)
    if command is None:
        return text
    return command[2].strip() if command[1] in _ASKING else ""


def _chats(path: Path) -> list[tuple[str, str]]:
    """Return the start and the text of each chat; chats of the same second are one."""
    pieces = _START.split(read_regular(path, MOST_WHOLE).decode("utf-8", "replace").replace("\r\n", "\n"))
    chats: dict[str, str] = {}
    for started, text in zip(pieces[1::2], pieces[2::2], strict=True):
        chats[started] = chats.get(started, "") + text
    return list(chats.items())


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Yield the messages of a chat: of the user, the assistant, and the lines of the program one by one."""
    begin = text.find(f"\n{_USER}") + 1
    ended = text[begin : text.find("\n", begin)].endswith(_END)
    role, lines = "", list[str]()
    for kind, line in _kinds(text[begin:].splitlines(), ended):
        kind = kind or role
        if kind != role or kind == "program":
            if any(entry.strip() for entry in lines):
                yield role, "\n".join(lines).strip()
            role, lines = kind, []
        lines.append(line)
    if any(entry.strip() for entry in lines):
        yield role, "\n".join(lines).strip()


def _kinds(lines: Iterable[str], ended: bool) -> Iterator[tuple[str, str]]:
    """Yield the author of each line, with its text; no author for an empty line.

    Args:
        ended: The file ends lines of the user and the program with blanks. Otherwise code in a fence is the model's.
    """
    fence, open_note = "", False
    for line in lines:
        own = line.endswith(_END) if ended else not fence
        if open_note:  # a commit message of several lines
            open_note = not own
        elif own and line.startswith(_USER):
            yield "user", line[len(_USER) :].strip().replace("<blank>", "")
        elif line.startswith(f"{_PROGRAM} ") and (own or _COMMIT.match(line[2:]) or _TOKENS.search(line)):
            open_note, fence = ended and not own, ""
            yield "program", line[2:].strip()
        elif own and line.startswith(_PROGRAM):
            yield "program", ""
        else:
            if mark := _FENCE.match(line):
                closes = fence and mark[1].startswith(fence)
                fence = "" if closes else fence or mark[1]
            yield "assistant" if line.strip() else "", line


def _local_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
