"""What a piece of streamed text costs the screen, in CPU time: ``python -m benchmarks.streaming [--batches N]``.

The transcript in an app without a terminal; one open block (a paragraph, a list, a table, a fence) of a given size
goes on by a batch of deltas for each frame, as many as 300 tokens a second give. CPU time of the process, from the
delta to the bytes for the terminal, so that a busy machine does not change the figures much. `benchmarks.echo`
measures what the person feels of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from itertools import count

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import TextArea

from benchmarks.echo_app import CONVERSATION, LOADED_TURNS, PROMPT_CSS, STREAMS, TOKEN, stored_turn, user_message
from ragforge_tui.shared.events import MessageStarted, TextDelta, TurnStarted
from ragforge_tui.tui.shown_cells import ShownCells
from ragforge_tui.tui.transcript import Transcript

SIZES = (1_000, 10_000, 100_000)
DELTAS_PER_FRAME = 15
FRAME = 0.05


def _paragraph(number: int) -> str:
    return f"Sentence {number} says **why** `file_{number}.py` has to change *before* the others do, and by how much. "


KINDS: dict[str, Callable[[int], str]] = {
    "paragraph": _paragraph,
    **{kind: STREAMS[kind] for kind in ("list", "table", "fence")},
}


class Stage(App[None]):
    """The transcript above a text area; what would go to the terminal is made and counted."""

    CSS = PROMPT_CSS + "Transcript { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.transcript = Transcript()
        self.written = 0
        self._shown = ShownCells("xterm-256color")

    def compose(self) -> ComposeResult:
        """Both."""
        yield self.transcript
        yield TextArea()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            self.written += len(self._shown.only_changes(renderable).render_segments(self.console))
        super()._display(screen, renderable)

    def say(self, text: str, turn: int) -> None:
        """A delta of the answer."""
        self.transcript.apply(
            TextDelta(conversation_id=CONVERSATION, turn_index=turn, message_id=f"m-{turn}-1", text=text)
        )


class Source:
    """Text of a kind, in pieces."""

    def __init__(self, kind: str) -> None:
        self._piece = KINDS[kind]
        self._numbers = count()
        self._waiting = ""

    def take(self, length: int) -> str:
        """The next characters."""
        while len(self._waiting) < length:
            self._waiting += self._piece(next(self._numbers))
        text, self._waiting = self._waiting[:length], self._waiting[length:]
        return text


async def cost(kind: str, size: int, batches: int, turns: int) -> tuple[float, float]:
    """Milliseconds of CPU and bytes written for each delta."""
    app, source = Stage(), Source(kind)
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.transcript
        if turns:
            view.load([stored_turn(index) for index in range(1, turns + 1)], first=1, last=turns)
        turn = turns + 1
        asked = user_message(turn)
        view.apply(TurnStarted(conversation_id=CONVERSATION, turn_index=turn, message=asked))
        view.apply(MessageStarted(conversation_id=CONVERSATION, turn_index=turn, message_id=f"m-{turn}-1"))
        for _ in range(5):
            app.say(source.take(size // 5), turn)
            await _drawn(view)
        await pilot.pause(0.1)
        written, spent = app.written, 0.0
        for _ in range(batches):
            began = time.process_time()
            for _ in range(DELTAS_PER_FRAME):
                app.say(source.take(TOKEN), turn)
            await _drawn(view)
            spent += time.process_time() - began
        deltas = batches * DELTAS_PER_FRAME
        return spent / deltas * 1000, (app.written - written) / deltas


async def _drawn(view: Transcript) -> None:
    await asyncio.sleep(FRAME)
    while view.stream_painter.busy:  # noqa: ASYNC110 - drawing has no end of its own to wait for
        await asyncio.sleep(0.01)
    await asyncio.sleep(1 / 60)


def main(batches: int, kinds: list[str]) -> None:
    """Measure, print the table and the last line."""
    sys.setswitchinterval(0.001)
    figures: dict[str, float] = {}
    print(f"{'ms CPU for a delta':22}" + "".join(f"{size // 1000:>8} kB" for size in SIZES) + f"{'5000 turns':>12}")
    for kind in kinds:
        cells = [asyncio.run(cost(kind, size, batches, 0)) for size in SIZES]
        cells.append(asyncio.run(cost(kind, SIZES[0], batches, LOADED_TURNS)))
        print(f"{kind:22}" + "".join(f"{ms:>11.3f}" for ms, _ in cells) + f"   {cells[2][1]:.0f} bytes")
        figures[f"{kind}_ms"] = cells[-2][0]
    print("streaming " + " ".join(f"{key}={value:.3f}" for key, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What a piece of streamed text costs the screen, in CPU time.")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    main(arguments.batches, arguments.kinds)
