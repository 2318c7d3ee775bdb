"""Copying by key and by click: a block as it was written, or its code piece by piece."""

from __future__ import annotations

from ragforge_tui.tui.drawing.code import COPY
from ragforge_tui.tui.hint import Hint
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.blocks import Block
from ragforge_tui.tui.transcript.cursor import Cursor
from ragforge_tui.tui.transcript.fences import FenceCycle, said


class Copier:
    """Copies from the blocks of one view, and says what."""

    def __init__(self, view: BlockView, cursor: Cursor) -> None:
        self._view = view
        self._cursor = cursor
        self.cycle = FenceCycle()

    def block(self) -> None:
        """Copy the source of the block at the cursor, or of the last answer."""
        block = self._cursor.copyable()
        if block is None or not block.source:
            self._say("nothing to copy here")
        else:
            self._copy(block.source, f"{'block' if self._cursor.block else 'last answer'} sent to the clipboard")

    def code(self) -> None:
        """Copy the next piece of code at the cursor."""
        text, fences = self._cursor.code()
        if fences:
            fence, words = self.cycle.take(text, fences)
            self._copy(fence.code, words)
        else:
            self._say("no code here")

    def all_code(self) -> None:
        """Copy all code at the cursor, a blank line between its pieces."""
        _, fences = self._cursor.code()
        if fences:
            self._copy("\n".join(fence.code for fence in fences), f"all code copied, {len(fences)} in one")
        else:
            self._say("no code here")

    def clicked(self, block: Block, line: int) -> None:
        """Copy the code that begins on a line of a block."""
        from ragforge_tui.tui.transcript.markdown import fences_of

        lines = block.lines(self._view.text_width, self._view.palette)[: line + 1]
        at = sum(any(style and style.meta.get(COPY) for _, style, _ in one.strip) for one in lines) - 1
        fences = fences_of(block.source)
        if 0 <= at < len(fences):
            self._copy(fences[at].code, said(fences, at))

    def _copy(self, text: str, words: str) -> None:
        self._view.app.copy_to_clipboard(text)
        self._say(words)

    def _say(self, words: str) -> None:
        self._view.post_message(Hint(words))
