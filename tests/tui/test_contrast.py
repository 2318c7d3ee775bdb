"""What is dimmed can be read."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from ragforge_tui.tui.drawing.palette import contrast
from ragforge_tui.tui.terminal import ReadableDim


@pytest.mark.parametrize(
    ("ink", "paper", "least"),
    [("#e6edf3", "#0d1117", 4.5), ("#586e75", "#fdf6e3", 4.5), ("#839496", "#fdf6e3", 2.9)],
    ids=["dark", "solarized", "fainter than readable"],
)
def test_text_is_dimmed_no_further_than_it_can_be_read(ink: str, paper: str, least: float) -> None:
    (drawn,) = ReadableDim().apply([Segment("x", Style(color=ink, dim=True))], Color.parse(paper))
    assert drawn.style is not None and drawn.style.color is not None and not drawn.style.dim
    dimmed = Color.from_rich_color(drawn.style.color)
    assert least <= contrast(dimmed, Color.parse(paper)) <= contrast(Color.parse(ink), Color.parse(paper))


def test_where_the_terminal_knows_the_color_it_dims() -> None:
    segments = [Segment("x", Style(dim=True)), Segment("y", Style(color="blue", dim=True)), Segment("z")]
    assert ReadableDim().apply(segments, Color.parse("#000000")) == segments
