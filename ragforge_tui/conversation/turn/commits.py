"""Commits that the commands of a conversation make.

Git is asked before and after each command, so a command that commits several times, amends or rebases is covered, and
what it fetches is not: those commits belong to a remote.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.shared.git import GIT_SECONDS, branch_tips, commits_since, in_repository
from ragforge_tui.shared.tool_calls import ToolAccess

MOST_COMMITS = 50
"""Commits of one command; a rebase of more is history, not work of the turn."""


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
