"""Text that streams into the transcript: drawn with pauses, in a thread when there is much, so that typing is quick.

A base of `widget.py`. A pause is three times what the last drawing took, so drawing takes a quarter of the time at
most, whatever streams.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.timer import Timer

from ragforge_tui.tui.transcript.model.blocks import TextBlock
from ragforge_tui.tui.transcript.widget.finder import SearchedWindow

if TYPE_CHECKING:
    from ragforge_tui.tui.transcript.render.stream import StreamedText

SHORTEST_PAUSE = 0.05
_PAUSE_FACTOR = 3


class StreamingWindow(SearchedWindow):
    """A window into which text streams."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._waiting: set[TextBlock] = set()
        self._timer: Timer | None = None
        self._drawing = False
        self._last_cost = 0.0
        self.shortest_pause = SHORTEST_PAUSE
        """Text that streams is drawn again after this many seconds at the soonest."""

    @property
    def streaming(self) -> bool:
        """Whether text has come that is not drawn yet."""
        return self._timer is not None or self._drawing or bool(self._waiting)

    def _streamed(self) -> None:
        """A piece of text came."""
        self._waiting.update(block for block in self.document.changed if isinstance(block, TextBlock))
        if self.document.stable != len(self.document.blocks):
            self._sync()
        self._wake()

    def _wake(self) -> None:
        """Draw soon, unless that is going to happen anyway."""
        if self._timer is None and not self._drawing:
            pause = max(self.shortest_pause, _PAUSE_FACTOR * self._last_cost)
            self._timer = self.set_timer(pause, self._draw_streams)

    def _draw_streams(self) -> None:
        self._timer = None
        blocks = [block for block in self._waiting if not block.finished]
        self._waiting.clear()
        if not blocks:
            self._sync()
            return
        streams = [self._stream_of(block) for block in blocks]
        if all(stream.light for stream in streams):
            began = time.perf_counter()
            for stream in streams:
                stream.advance()
            self._last_cost = time.perf_counter() - began
            self._drew(blocks)
        else:
            self._drawing = True
            drawing = self._draw_in_thread(blocks, streams)
            self.run_worker(drawing, group="transcript", exclusive=False, exit_on_error=True)

    def _stream_of(self, block: TextBlock) -> StreamedText:
        width, palette = self._text_width, self.palette
        fits = block.streams_at(width, palette)
        return block.stream if fits and block.stream is not None else block.begin_stream(width, palette)

    async def _draw_in_thread(self, blocks: Sequence[TextBlock], streams: Sequence[StreamedText]) -> None:
        began = time.perf_counter()
        try:
            for stream in streams:
                await asyncio.to_thread(stream.advance)
        finally:
            self._drawing = False
        self._last_cost = time.perf_counter() - began
        self._drew(blocks)

    def _drew(self, blocks: Sequence[TextBlock]) -> None:
        """Show what was drawn."""
        for block in blocks:
            if not block.finished:
                block.touch()
                self._correct(block)
        self._sync()
        if self._waiting:
            self._wake()
