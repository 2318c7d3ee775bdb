"""From a line to the turn that wrote it, and to its commit and the turn that made that.

The writing turn comes from the recorded changes of the file alone, under all the names that git knows for it, whatever
was committed when and by whom (`tools/line_changes.py`). Git names the commit of each line; the turn that made it is
the one whose command did, or the one that a trailer of its message names.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.shared import git
from ragforge_tui.shared.encoding import readable
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.files import open_regular
from ragforge_tui.shared.records import Commit
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import BlamedLines, BlamedTurn, BlameResult
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.line_changes import Write, writers_of
from ragforge_tui.tools.undo.changes import RESTORE
from ragforge_tui.tools.workspace import MAX_FILE_BYTES

BLAME_SECONDS = 60.0
"""Time for git to go through the whole history of a file."""
_TRAILER = re.compile(r"([0-9a-fA-F-]{8,36})\s+t(\d{1,6})")


class _File(msgspec.Struct, frozen=True):
    """File as it is now, with git's view of it."""

    path: str
    content: bytes
    lines: list[str]
    blamed: git.FileBlame

    def commit_of(self, line: int) -> str:
        """Return the commit of a line, counted from 0; empty if it is not committed."""
        return self.blamed.commits[line] if line < len(self.blamed.commits) else ""


async def blame(store: Store, workspace: Path, path: str, line: int) -> BlameResult:
    """Return the turns and commits behind a line of a file, or behind all its lines if `line` is 0.

    Raises:
        RagforgeError: Git is missing or fails, the folder is not in a repository, or there is no such file or line.
    """
    file = await asyncio.to_thread(_read, workspace, path)
    if line > len(file.lines):
        count = "one line" if len(file.lines) == 1 else f"{len(file.lines)} lines"
        raise NotFoundError(f"{file.path} has {count}, so there is no line {line}.")
    asked = range(line - 1, line) if line else range(len(file.lines))
    turns = await _writing_turns(store, workspace, file, asked)
    hashes = sorted({file.commit_of(n) for n in asked} - {""})
    commits = await asyncio.to_thread(git.commits_by_hash, workspace, hashes, timeout=git.GIT_SECONDS)
    if len(commits) < len(hashes):
        raise _git_failed(file.path)
    made_by = await store.commits.turns_of_commits(hashes)
    for commit in commits.values():
        if commit.hash not in made_by and (named := await _named(store, commit)) is not None:
            made_by[commit.hash] = named
    lines = [
        BlamedLines(
            first=first + 1,
            last=last + 1,
            turn=turns.get(first),
            commit=_masked(commits[commit]) if commit else None,
            committed_by=made_by.get(commit),
        )
        for first, last, commit in _ranges(file, turns, asked)
    ]
    return BlameResult(path=file.path, text=mask_secrets(storable(file.lines[line - 1])) if line else "", lines=lines)


def _read(workspace: Path, path: str) -> _File:
    if not git.git_is_installed():
        raise RagforgeError("git is not installed, so nobody knows the commits of a file.", todo="Install git.")
    if not git.in_repository(workspace):
        raise RagforgeError(f"{workspace} is not in a git repository.", todo="Name another folder with --workspace.")
    try:
        relative = (workspace / path).resolve().relative_to(workspace.resolve()).as_posix()
    except ValueError:
        raise RagforgeError(f"{path} is outside of {workspace}.", todo="Name its folder with --workspace.") from None
    place = workspace / relative
    if not place.is_file():
        raise NotFoundError(f"There is no file {path!r} in {workspace}.")
    try:
        with open_regular(place) as opened:
            content = opened.read(MAX_FILE_BYTES)
    except OSError as error:
        raise RagforgeError(f"{relative} cannot be read: {error.strerror or error}.") from error
    blamed = git.blame(workspace, relative, timeout=BLAME_SECONDS)
    if blamed is None:
        raise _git_failed(relative)
    lines = (readable(content) or content.decode("utf-8", "replace")).split("\n")
    return _File(relative, content, lines if lines[-1] else lines[:-1], blamed)


def _git_failed(path: str) -> RagforgeError:
    return RagforgeError(
        f"git failed, or took longer than {BLAME_SECONDS:.0f} seconds to name the commits of {path}.",
        todo="Try `git blame` in that folder.",
    )


async def _writing_turns(store: Store, workspace: Path, file: _File, asked: range) -> dict[int, BlamedTurn]:
    """Return the turn that wrote each of the lines, counted from 0; lines that no turn wrote are left out."""
    places = [place for name in (file.path, *file.blamed.names) for place in _places(workspace, name)]
    changed = await store.files.changed_lines(places)
    writes = [Write(change=each.change, restores=each.tool == RESTORE) for each in changed]
    writers = await asyncio.to_thread(writers_of, writes, visible(storable(file.path)), file.content)
    if writers is None:
        return {}
    messages = {n: changed[index].message for n in asked if (index := writers[n]) is not None}
    turns = await store.commits.turns_of_messages(sorted(set(messages.values())))
    decisions = {
        (turn.conversation_id, turn.turn_index): await store.commits.decision(turn.conversation_id, turn.turn_index)
        for turn in turns.values()
    }
    return {
        n: msgspec.structs.replace(turn, decision=decisions[turn.conversation_id, turn.turn_index])
        for n, message in messages.items()
        if (turn := turns.get(message)) is not None
    }


def _places(workspace: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield the workspaces that hold a file, from its folder up, with its path in them: a chat may run in any."""
    absolute = Path(workspace.resolve(), path)
    for folder in absolute.parents:
        yield storable(str(folder)), visible(storable(absolute.relative_to(folder).as_posix()))


def _ranges(file: _File, turns: dict[int, BlamedTurn], asked: range) -> Iterator[tuple[int, int, str]]:
    """Yield first and last line and commit of consecutive lines that have the same turn and commit."""

    def origin(n: int) -> tuple[str, str, int]:
        turn = turns.get(n)
        return file.commit_of(n), turn.conversation_id if turn else "", turn.turn_index if turn else 0

    for (commit, _, _), group in groupby(asked, origin):
        first, *rest = group
        yield first, rest[-1] if rest else first, commit


def _masked(commit: Commit) -> Commit:
    return msgspec.structs.replace(
        commit,
        author=mask_secrets(storable(commit.author)),
        subject=mask_secrets(storable(commit.subject)),
        trailer=mask_secrets(storable(commit.trailer)),
    )


async def _named(store: Store, commit: Commit) -> BlamedTurn | None:
    match = _TRAILER.fullmatch(commit.trailer)
    if match is None:
        return None
    try:
        conversation = await store.conversations.resolve(match[1])
    except RagforgeError:
        return None
    return await store.commits.turn_at(conversation.uuid, int(match[2]))
