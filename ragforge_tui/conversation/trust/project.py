"""Files of a project that start programs or instruct the agent, used only after the user allowed exactly their text.

As with AGENTS.md, the user is asked once for each text, and again when it changes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from ragforge_tui.conversation.trust.instructions import TrustBook, WorkspaceInstructions
from ragforge_tui.shared.events import Event, Notice, TrustRequested
from ragforge_tui.shared.sanitize import revealed, storable, visible

MOST_SHOWN = 90_000
"""Characters of all texts of one question; a question shows little more, and what is not shown is not allowed."""


def _shown(content: str) -> str:
    return revealed("\n".join(map(visible, storable(content).split("\n"))))


class ProjectTrust:
    """The user's answers about files of one workspace.

    Args:
        book: File of the answers.
        interactive: Whether a user can answer; otherwise what is not allowed yet stays unused.
    """

    def __init__(self, workspace: Path, book: Path, emit: Callable[[Event], None], *, interactive: bool) -> None:
        self._workspace = workspace
        self._book = TrustBook(book)
        self._emit = emit
        self._interactive = interactive
        self._asked: dict[str, tuple[WorkspaceInstructions, asyncio.Future[bool]]] = {}

    async def allowed(self, subject: str, question: str, files: list[tuple[str, str]]) -> bool:
        """Return whether files may be used; ask if the user has not decided about exactly these texts.

        Args:
            subject: What they are, such as ``mcp``; answers are kept by it.
            question: Shown above the texts.
            files: Their names and texts.
        """
        digest = hashlib.sha256(msgspec.json.encode(files)).hexdigest()
        asked = WorkspaceInstructions(root=f"{self._workspace}#{subject}", files=files, digest=digest)
        answer = self._book.answer(asked)
        if answer is not None:
            return answer
        names = [name for name, _ in files]
        if not self._interactive:
            listed = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            self._emit(Notice(text=f"Not used, because you have not allowed it in this folder yet: {listed}."))
            return False
        if sum(len(content) for _, content in files) > MOST_SHOWN:
            self._emit(Notice(text=f"Not used, because it is too long to be read: {', '.join(names[:3])}."))
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked[asked.root] = asked, future
        # To the letter, as commands are shown: what is masked or removed could hide what runs.
        text = "\n\n".join(f"{name}\n{_shown(content)}" for name, content in files)
        self._emit(TrustRequested(root=asked.root, files=names, text=text, question=question))
        return await asyncio.shield(future)

    def answer(self, root: str, allowed: bool) -> None:
        """Apply and store the user's answer."""
        asked, future = self._asked.pop(root, (None, None))
        if asked is None or future is None:
            return
        self._book.remember(asked, allowed)
        if not future.done():
            future.set_result(allowed)

    def close(self) -> None:
        """Stop asking, because the user is gone."""
        self._interactive = False
        for _, future in self._asked.values():
            if not future.done():
                future.set_result(False)
        self._asked.clear()
