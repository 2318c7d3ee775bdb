"""Draws streaming text with pauses, in a thread if there is much of it, so that typing stays fast.

A pause is three times as long as the last drawing took: drawing takes at most a quarter of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.timer import Timer

from ragforge_tui.tui.transcript.model.blocks import TextBlock
from ragforge_tui.tui.transcript.widget.block_view import BlockView

if TYPE_CHECKING:
    from ragforge_tui.tui.transcript.render.stream import StreamedText

SHORTEST_PAUSE = 0.05
_PAUSE_FACTOR = 3


class StreamPainter:
    """Draws the growing text blocks of one view.

    Attributes:
        shortest_pause: Minimum seconds between two drawings.
    """

    def __init__(self, view: BlockView) -> None:
        self._view = view
        self._waiting: set[TextBlock] = set()
        self._timer: Timer | None = None
        self._drawing = False
        self._last_cost = 0.0
        self.shortest_pause = SHORTEST_PAUSE

    @property
    def busy(self) -> bool:
        """Whether some text has arrived that is not drawn yet."""
        return self._timer is not None or self._drawing or bool(self._waiting)

    def clear(self) -> None:
        """Forget the text that is not drawn yet."""
        self._waiting.clear()

    def text_arrived(self) -> None:
        """Draw what the last delta changed, soon."""
        document = self._view.document
        self._waiting.update(block for block in document.changed if isinstance(block, TextBlock))
        if document.stable != len(document.blocks):
            self._view.sync()
        self.draw_soon()

    def draw_soon(self) -> None:
        """Draw after a pause, unless that is already planned."""
        if self._timer is None and not self._drawing:
            pause = max(self.shortest_pause, _PAUSE_FACTOR * self._last_cost)
            self._timer = self._view.set_timer(pause, self._draw)

    def _draw(self) -> None:
        self._timer = None
        blocks = [block for block in self._waiting if not block.finished]
        self._waiting.clear()
        if not blocks:
            self._view.sync()
            return
        streams = [self._stream_of(block) for block in blocks]
        if all(stream.light for stream in streams):
            start = time.perf_counter()
            for stream in streams:
                stream.advance()
            self._last_cost = time.perf_counter() - start
            self._drawn(blocks)
        else:
            self._drawing = True
            drawing = self._draw_in_thread(blocks, streams)
            self._view.run_worker(drawing, group="transcript", exclusive=False, exit_on_error=True)

    def _stream_of(self, block: TextBlock) -> StreamedText:
        width, palette = self._view.text_width, self._view.palette
        fits = block.streams_at(width, palette)
        return block.stream if fits and block.stream is not None else block.begin_stream(width, palette)

    async def _draw_in_thread(self, blocks: Sequence[TextBlock], streams: Sequence[StreamedText]) -> None:
        start = time.perf_counter()
        try:
            for stream in streams:
                await asyncio.to_thread(stream.advance)
        finally:
            self._drawing = False
        self._last_cost = time.perf_counter() - start
        self._drawn(blocks)

    def _drawn(self, blocks: Sequence[TextBlock]) -> None:
        """Show the drawn blocks."""
        for block in blocks:
            if not block.finished:
                block.touch()
                self._view.correct(block)
        self._view.sync()
        if self._waiting:
            self.draw_soon()
