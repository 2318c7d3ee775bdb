"""A failed turn in three lines: the cause, the provider's own words, and the keys that help.

The keys act while the chat has the keyboard, on the newest turn alone; a click on one does the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.style import Style

from ragforge_tui.shared.errors import told
from ragforge_tui.tui.drawing.lines import Line, Run, clean, line_of, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import BOLD, MOST_NOTE_CHARS, Block

RUNS = "runs"
"""Key in the meta of a style; its value is the command that a click runs."""
MOST_LINES = 2
"""Lines of foreign words; the rest is shown unfolded."""


class Remedy(msgspec.Struct, frozen=True):
    """A key that helps after a failure, and the command that it runs."""

    key: str
    word: str
    command: str


RETRY, MODEL, SETTINGS = (
    Remedy("r", "retry", "retry"),
    Remedy("m", "other model", "model"),
    Remedy("s", "settings", "settings"),
)
CONNECT = Remedy("a", "add a key", "connect")


class FailureBlock(Block):
    """How a turn failed.

    Attributes:
        newest: Whether its turn is the newest one, which alone can be retried.
    """

    kind = "state"

    def __init__(self, turn_index: int, sentence: str) -> None:
        super().__init__(turn_index)
        self._sentence = sentence
        self._told = told(sentence[:MOST_NOTE_CHARS])
        self.newest = True
        self.folded = True if self._told.words or self._told.rest else None

    @property
    def source(self) -> str:
        return self._sentence

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The keys that act, the most useful first; none if a newer turn has begun."""
        if not self.newest:
            return ()
        lacks_key = "/connect" in self._told.rest
        return (CONNECT, RETRY, MODEL, SETTINGS) if lacks_key else (RETRY, MODEL, SETTINGS)

    def set_newest(self, newest: bool) -> bool:
        """Offer the keys or not; return whether that is a change."""
        if newest is self.newest:
            return False
        self.newest = newest
        self.touch()
        return True

    def draw(self, width: int, palette: Palette) -> list[Line]:
        """Return the cause, other words, and the keys."""
        rest: list[Run] = [("  ", palette.text)]
        first = [(f"{'error:' if palette.plain else '✗'} ", palette.failed)]
        cause = [(clean(self._told.cause), palette.text + BOLD)]
        if self.folded is not None:
            cause.append(self.arrow(palette))
        lines = wrap(cause, width, first=first, rest=rest)
        words = f"“{self._told.words}”" if self._told.words else ""
        texts = [words or self._told.rest] if self.folded else [words, self._told.rest]
        for text in filter(None, texts):
            drawn = wrap([(clean(text), palette.muted)], width, first=rest, rest=rest)
            if self.folded and len(drawn) > MOST_LINES:
                cut = clean(text)[: (width - 4) * MOST_LINES].rstrip() + "…"
                drawn = wrap([(cut, palette.muted)], width, first=rest, rest=rest)[:MOST_LINES]
            lines += drawn
        return lines + self._keys(width, palette)

    def _keys(self, width: int, palette: Palette) -> list[Line]:
        if not self.remedies:
            return []
        runs: list[Run] = [("  tab, then ", palette.muted)]
        for at, remedy in enumerate(self.remedies):
            click = Style(meta={RUNS: remedy.command})
            runs += [(" · ", palette.muted)] if at else []
            runs += [(remedy.key, palette.accent + click), (f" {remedy.word}", palette.text + click)]
        return [line_of(runs, width)]

    def estimate(self, width: int) -> int:
        return self.gap + 3


def failure_at(block: Block | None, blocks: Sequence[Block]) -> FailureBlock | None:
    """Return the failure that keys act on: the one at the cursor, or without a cursor the end of the chat."""
    if block is None:
        block = next((one for one in reversed(blocks) if one.kind != "notice"), None)
    return block if isinstance(block, FailureBlock) and block.newest else None
