"""From a file or a line to the turns that made it: git names the commit, the graph the turn.

The turn of a commit is, in this order: the turn that made it, the turn its message names in a trailer, the turn whose
files the user committed afterwards, and finally the turn that last wrote the file before the commit. The last one is
stored, so that the next question about the commit is answered by the graph alone.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from ragforge_tui.conversation.turn.commits import CLOCK_SECONDS, GIT_SECONDS
from ragforge_tui.graph import Store
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.files import open_regular
from ragforge_tui.shared.git import commit_of_line, commits_of_file, git_is_installed, in_repository
from ragforge_tui.shared.records import Commit
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import BlameEntry, BlameResult, CommitTurn
from ragforge_tui.shared.sanitize import storable

_TRAILER = re.compile(r"([0-9a-fA-F-]{8,36})\s+t(\d{1,6})")


async def blame(store: Store, workspace: Path, path: str, line: int, limit: int) -> BlameResult:
    """Return the commit of a line, or the newest commits of a file, with the turns behind them.

    Raises:
        RagforgeError: Git is missing, the folder is not in a repository, or there is no such file or line.
    """
    relative = await asyncio.to_thread(_relative, workspace, path)
    if line:
        found = await asyncio.to_thread(commit_of_line, workspace, relative, line, timeout=GIT_SECONDS)
        if found is None:
            await asyncio.to_thread(_reject_line, workspace, relative, line)
        commit, text = found or (None, "")
        entry = await _entry(store, workspace, relative, commit)
        return BlameResult(path=relative, line=line, text=mask_secrets(storable(text)), entries=[entry])
    commits = await asyncio.to_thread(commits_of_file, workspace, relative, most=limit, timeout=GIT_SECONDS)
    entries = [await _entry(store, workspace, relative, commit) for commit in commits or (None,)]
    return BlameResult(path=relative, entries=entries)


def _relative(workspace: Path, path: str) -> str:
    if not git_is_installed():
        raise RagforgeError("git is not installed, so nobody knows the commits of a file.", todo="Install git.")
    if not in_repository(workspace):
        raise RagforgeError(f"{workspace} is not in a git repository.", todo="Name another folder with --workspace.")
    try:
        relative = (workspace / path).resolve().relative_to(workspace.resolve()).as_posix()
    except ValueError:
        raise RagforgeError(f"{path} is outside of {workspace}.", todo="Name its folder with --workspace.") from None
    if not (workspace / relative).is_file():
        raise NotFoundError(f"There is no file {path!r} in {workspace}.")
    return relative


def _reject_line(workspace: Path, path: str, line: int) -> None:
    """Return for a file that git does not know; raise if the file has no such line."""
    with open_regular(workspace / path) as file:
        count = sum(1 for _ in file)
    if line > count:
        lines = "one line" if count == 1 else f"{count} lines"
        raise NotFoundError(f"{path} has {lines}, so there is no line {line}.")


async def _entry(store: Store, workspace: Path, path: str, commit: Commit | None) -> BlameEntry:
    folder = str(workspace)
    if commit is None:
        return BlameEntry(turn=await store.commits.writer_of(path, folder))
    turn = await store.commits.turn_of(commit.hash, folder)
    if turn is None or turn.relation != "committed":
        turn = await _named(store, commit) or turn
    if turn is None:
        turn = await store.commits.writer_of(path, folder, commit.committed_at + CLOCK_SECONDS)
        if turn is not None:
            await store.commits.store(turn.message, [_masked(commit)], folder, found=True)
            turn = await store.commits.turn_of(commit.hash, folder)
    return BlameEntry(commit=_masked(commit), turn=turn)


def _masked(commit: Commit) -> Commit:
    return Commit(
        hash=commit.hash,
        author=mask_secrets(storable(commit.author)),
        subject=mask_secrets(storable(commit.subject)),
        committed_at=commit.committed_at,
        trailer=mask_secrets(storable(commit.trailer)),
    )


async def _named(store: Store, commit: Commit) -> CommitTurn | None:
    match = _TRAILER.fullmatch(commit.trailer)
    if match is None:
        return None
    try:
        conversation = await store.conversations.resolve(match[1])
    except RagforgeError:
        return None
    return await store.commits.turn_at(conversation.uuid, int(match[2]))
