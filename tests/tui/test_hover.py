"""The row under the mouse: shown where a click does something."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import Run
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.virtual_list import VirtualList


class Rows(VirtualList[str]):
    """Lines; one in capitals is a heading."""

    def key_of(self, line: str) -> str:
        return "" if line.isupper() else line

    def draw(self, line: str, width: int, palette: Palette) -> list[Run]:
        return [(line, palette.text)]


class Listing(App[None]):
    """Both kinds of lists, one above the other."""

    CSS = "Rows { height: 4; }"

    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows()
        self.choices = ChoiceList()

    def compose(self) -> ComposeResult:
        yield self.rows
        yield self.choices

    def on_mount(self) -> None:
        self.rows.show(["HEADING", "one", "two"])
        self.choices.show([Choice("a", "a", heading="Group"), Choice("b", "b")])


def grounds(strip: Strip) -> set[object]:
    """Return the backgrounds of the cells."""
    return {segment.style.bgcolor for segment in strip if segment.style is not None}


async def test_a_row_that_a_click_opens_is_lit_up_and_a_heading_is_not() -> None:
    app = Listing()
    async with app.run_test(size=(40, 10)) as pilot:
        plain = [grounds(app.rows.render_line(y)) for y in range(4)]
        assert await pilot.hover(app.rows, offset=(20, 1))
        await pilot.pause()
        lit = [grounds(app.rows.render_line(y)) for y in range(4)]
        assert lit[1] != plain[1] and [lit[0], *lit[2:]] == [plain[0], *plain[2:]]
        for y in (0, 3):
            await pilot.hover(app.rows, offset=(20, y))
            await pilot.pause()
            assert [grounds(app.rows.render_line(y)) for y in range(4)] == plain
        await pilot.hover(app.rows, offset=(20, 2))
        await pilot.hover(app.choices, offset=(20, 0))
        await pilot.pause()
        assert [grounds(app.rows.render_line(y)) for y in range(4)] == plain


async def test_a_choice_is_lit_up_over_its_whole_width() -> None:
    app = Listing()
    async with app.run_test(size=(40, 10)) as pilot:
        plain = [grounds(app.choices.render_line(y)) for y in range(3)]
        await pilot.hover(app.choices, offset=(30, 1))
        await pilot.pause()
        lit = [grounds(app.choices.render_line(y)) for y in range(3)]
        assert lit[1] != plain[1] and [lit[0], lit[2]] == [plain[0], plain[2]]
        assert len(lit[1]) == 1, "the cells next to the words too"
        await pilot.hover(app.choices, offset=(30, 0))
        await pilot.pause()
        assert [grounds(app.choices.render_line(y)) for y in range(3)] == plain
