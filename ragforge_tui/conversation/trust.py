"""Asks, once per repository, whether the AGENTS.md found there may be used. Used by the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ragforge_tui.conversation.workspace_instructions import TrustBook, WorkspaceInstructions, find_instructions
from ragforge_tui.events import Event, Notice, TrustRequested


class Trust:
    """Instructions of one workspace and the person's answer.

    Args:
        book: File of the answers given.
        interactive: Whether somebody answers; otherwise instructions not yet allowed stay unused.
    """

    def __init__(self, workspace: Path, book: Path, emit: Callable[[Event], None], *, interactive: bool) -> None:
        self._workspace = workspace
        self._book = TrustBook(book)
        self._emit = emit
        self._interactive = interactive
        self._asked: asyncio.Future[bool] | None = None
        self._found: WorkspaceInstructions | None = None
        self._noticed = False

    async def instructions(self) -> list[tuple[str, str]]:
        """The (path, text) of what may be used; waits for the person when they were not asked yet."""
        found = await asyncio.to_thread(find_instructions, self._workspace)
        if found is None:
            return []
        allowed = self._book.answer(found)
        if allowed is None:
            allowed = await self._ask(found)
        return found.files if allowed else []

    async def _ask(self, found: WorkspaceInstructions) -> bool:
        names = [name for name, _ in found.files]
        if not self._interactive:
            if not self._noticed:
                self._noticed = True
                self._emit(Notice(text=f"{', '.join(names)} not used: it was not allowed for {found.root} yet."))
            return False
        if self._asked is None or self._asked.done():
            self._found = found
            self._asked = asyncio.get_running_loop().create_future()
            text = "\n\n".join(f"{name}\n{content}" for name, content in found.files)
            self._emit(TrustRequested(root=found.root, files=names, text=text))
        return await asyncio.shield(self._asked)

    def answer(self, root: str, allowed: bool) -> None:
        """Give the person's answer and remember it."""
        if self._found is None or self._found.root != root:
            return
        self._book.remember(self._found, allowed)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(allowed)

    def close(self) -> None:
        """Nobody is there to answer any more: what waits goes on without the instructions."""
        self._interactive = False
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(False)
