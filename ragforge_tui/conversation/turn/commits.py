"""Commits of a conversation: those that its commands make, and those that the user makes of its files afterwards.

Git is asked before and after each command, so a command that commits several times, amends or rebases is covered, and
what it fetches is not: those commits belong to a remote. A commit that appears between two turns belongs to the turn of
this conversation that last wrote one of its files, if there is one; otherwise it is the user's own and is not stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.git import branch_tips, commits_since, files_of_commit, in_repository
from ragforge_tui.shared.records import Commit
from ragforge_tui.shared.tool_calls import ToolAccess

log = logging.getLogger(__name__)

GIT_SECONDS = 5.0
BETWEEN_SECONDS = 0.5
"""Time for each of the queries between two turns, which wait for them."""
MOST_COMMITS = 50
"""Commits of one command, or of one pause between turns; a rebase of more is history, not work of the turn."""
CLOCK_SECONDS = timedelta(seconds=1)
"""A commit's time has no fractions: it may contain a file written within the same second."""


@asynccontextmanager
async def noted_commits(workspace: Path, access: ToolAccess) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield a list that holds, after the block, the commits which a command made in it, as values for its result."""
    found: list[dict[str, Any]] = []
    if access != "command":
        yield found
        return
    existed = in_repository(workspace)
    before = await asyncio.to_thread(branch_tips, workspace, timeout=GIT_SECONDS)
    yield found
    if before is None and existed:
        return  # Git failed, so that nobody knows which commits are new.
    made = await asyncio.to_thread(
        commits_since, workspace, before or frozenset(), most=MOST_COMMITS, timeout=GIT_SECONDS
    )
    found += [msgspec.to_builtins(commit) for commit in made]


class LaterCommits:
    """Commits that appear between the turns of a conversation."""

    def __init__(self, workspace: Path, conversation_id: str) -> None:
        self._workspace = workspace
        self._conversation_id = conversation_id
        self._tips: frozenset[str] | None = None

    async def turn_ended(self) -> None:
        self._tips = await asyncio.to_thread(branch_tips, self._workspace, timeout=BETWEEN_SECONDS)

    async def store_new(self, store: Store) -> None:
        """Store the commits since the last turn that hold what a turn of this conversation wrote."""
        if self._tips is None:
            return
        new = await asyncio.to_thread(
            commits_since, self._workspace, self._tips, most=MOST_COMMITS, timeout=BETWEEN_SECONDS
        )
        for commit in new:
            try:
                await self._attribute(store, commit)
            except GraphError as error:
                log.warning("commit %s not stored: %s", commit.hash, error)
                return

    async def _attribute(self, store: Store, commit: Commit) -> None:
        workspace = str(self._workspace)
        files = await asyncio.to_thread(files_of_commit, self._workspace, commit.hash, timeout=GIT_SECONDS)
        before = commit.committed_at + CLOCK_SECONDS
        writers = [
            turn
            for path in files[:MOST_COMMITS]
            if (turn := await store.commits.writer_of(path, workspace, before, self._conversation_id)) is not None
        ]
        if writers:
            newest = max(writers, key=lambda turn: turn.turn_index)
            await store.commits.store(newest.message, [commit], workspace, found=True)
