"""Permission, asked once per repository, to use its AGENTS.md. Used by the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ragforge_tui.conversation.workspace_instructions import TrustBook, WorkspaceInstructions, find_instructions
from ragforge_tui.shared.events import Event, Notice, TrustRequested


class Trust:
    """Instructions of one workspace and the user's answer.

    Args:
        book: File of the answers.
        interactive: Whether a user can answer; otherwise instructions that are not allowed yet stay unused.
    """

    def __init__(self, workspace: Path, book: Path, emit: Callable[[Event], None], *, interactive: bool) -> None:
        self._workspace = workspace
        self._book = TrustBook(book)
        self._emit = emit
        self._interactive = interactive
        self._asked: asyncio.Future[bool] | None = None
        self._in_question: WorkspaceInstructions | None = None
        self._noticed = False

    async def instructions(self) -> list[tuple[str, str]]:
        """Return the (path, text) of allowed instructions; wait for the user if they have not been asked yet."""
        instructions = await asyncio.to_thread(find_instructions, self._workspace)
        if instructions is None:
            return []
        allowed = self._book.answer(instructions)
        if allowed is None:
            allowed = await self._ask(instructions)
        return instructions.files if allowed else []

    async def _ask(self, instructions: WorkspaceInstructions) -> bool:
        names = [name for name, _ in instructions.files]
        if not self._interactive:
            if not self._noticed:
                self._noticed = True
                self._emit(Notice(text=f"{', '.join(names)} not used: not allowed yet for {instructions.root}."))
            return False
        if self._asked is None or self._asked.done():
            self._in_question = instructions
            self._asked = asyncio.get_running_loop().create_future()
            text = "\n\n".join(f"{name}\n{content}" for name, content in instructions.files)
            self._emit(TrustRequested(root=instructions.root, files=names, text=text))
        return await asyncio.shield(self._asked)

    def answer(self, root: str, allowed: bool) -> None:
        """Apply and store the user's answer."""
        if self._in_question is None or self._in_question.root != root:
            return
        self._book.remember(self._in_question, allowed)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(allowed)

    def close(self) -> None:
        """Stop asking, because the user is gone; waiting turns continue without the instructions."""
        self._interactive = False
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(False)
