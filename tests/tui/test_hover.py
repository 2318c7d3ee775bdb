"""The row at the cursor, and the one under the mouse: shown where a click does something."""

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
        self.choices.show([Choice("a", "a", heading="Group"), Choice("b", "b", heading="Group")])


def grounds(strip: Strip) -> set[object]:
    """Return the backgrounds of the cells."""
    return {segment.style.bgcolor for segment in strip if segment.style is not None}


async def test_a_row_that_a_click_opens_is_lit_up_and_a_heading_is_not() -> None:
    app = Listing()
    async with app.run_test(size=(40, 10)) as pilot:
        plain = [grounds(app.rows.render_line(y)) for y in range(4)]
        assert await pilot.hover(app.rows, offset=(20, 2))
        await pilot.pause()
        lit = [grounds(app.rows.render_line(y)) for y in range(4)]
        assert lit[2] != plain[2] and [*lit[:2], lit[3]] == [*plain[:2], plain[3]]
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
        await pilot.hover(app.choices, offset=(30, 2))
        await pilot.pause()
        lit = [grounds(app.choices.render_line(y)) for y in range(3)]
        assert lit[2] != plain[2] and lit[:2] == plain[:2]
        assert len(lit[2]) == 1, "the cells next to the words too"
        await pilot.hover(app.choices, offset=(30, 0))
        await pilot.pause()
        assert [grounds(app.choices.render_line(y)) for y in range(3)] == plain


async def test_the_row_at_the_cursor_stands_out_while_its_list_has_the_keyboard() -> None:
    app = Listing()
    async with app.run_test(size=(40, 10)) as pilot:
        heading, one, two, _ = (grounds(app.rows.render_line(y)) for y in range(4))
        assert one != two == heading and len(one) == 1
        await pilot.press("down")
        assert [grounds(app.rows.render_line(y)) for y in range(3)] == [heading, two, one]
        heading, first, second = (grounds(app.choices.render_line(y)) for y in range(3))
        assert first != second == heading and len(first) == 1
        app.screen.set_focus(None)
        await pilot.pause()
        assert [grounds(app.rows.render_line(y)) for y in range(3)] == [heading, two, two]
