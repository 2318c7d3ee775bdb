"""The viewport without a widget: which lines are in view, and which stay there."""

from __future__ import annotations

from ragforge_tui.tui.drawing.palette import palette_of
from ragforge_tui.tui.transcript.document import Document
from ragforge_tui.tui.transcript.viewport import Frame, Viewport
from tests.tui.transcript.samples import plain_turns

FRAME = Frame(width=60, height=10, palette=palette_of({}, dark=True, ansi=False))


def shown(viewport: Viewport, top: int) -> list[str]:
    return [row.line.text for row in viewport.rows(top, FRAME, lambda _: False) if row.line is not None]


def loaded(count: int) -> tuple[Document, Viewport]:
    document = Document()
    viewport = Viewport(document)
    document.load(plain_turns(count))
    viewport.sync(FRAME.width)
    return document, viewport


def test_the_end_is_in_view_with_measured_heights() -> None:
    document, viewport = loaded(30)
    top = viewport.place(FRAME, at_end=True)
    assert top == viewport.index.total - FRAME.height
    last = document.blocks[-1].lines(FRAME.width, FRAME.palette)
    assert shown(viewport, top)[-len(last) :] == [line.text for line in last]


def test_a_held_line_stays_at_the_top_when_a_block_above_it_grows() -> None:
    document, viewport = loaded(30)
    held = next(block for block in document.blocks if block.turn_index == 20)
    viewport.hold(held, 1)
    before = shown(viewport, viewport.place(FRAME, at_end=False))
    viewport.index.set(0, viewport.index.height(0) + 7)
    after = shown(viewport, viewport.place(FRAME, at_end=False))
    assert after == before
    assert viewport.start(held) + 1 == viewport.place(FRAME, at_end=False)


def test_a_line_past_the_end_is_in_no_block() -> None:
    document, viewport = loaded(2)
    assert viewport.block_at(viewport.index.total) is None
    assert viewport.block_at(0) == (document.blocks[0], 0)
