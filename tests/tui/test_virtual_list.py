"""Lists that draw what is visible."""

from __future__ import annotations

from textual.app import App, ComposeResult

from ragforge_tui.tui.drawing.lines import Run
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.memory.context_screen import ContextRows
from ragforge_tui.tui.widgets.virtual_list import VirtualList
from tests.support.no_resize import take_new_places
from tests.support.waiting import stirred, until

NOTE = "Nothing was kept of what was sent in turn 2000. It was imported, or held no turn."


class Listing(App[None]):
    """A list alone."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = ContextRows(empty=NOTE)

    def compose(self) -> ComposeResult:
        """The list."""
        yield self.rows


async def test_why_a_list_is_empty_is_reported_to_the_end() -> None:
    app = Listing()
    async with app.run_test(size=(40, 10)):
        told = [app.rows.render_line(y).text.strip() for y in range(10)]
        assert told[3:] == [""] * 7
        assert " ".join(filter(None, told)) == NOTE


class Numbers(VirtualList[int]):
    """Lines that follow their end."""

    def key_of(self, line: int) -> str:
        """Every line can be chosen."""
        return str(line)

    def draw(self, line: int, width: int, palette: Palette) -> list[Run]:
        """The number."""
        return [(f"line {line}", palette.text)]


class Following(App[None]):
    """Such a list alone."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = Numbers(follow=True)

    def compose(self) -> ComposeResult:
        """The list."""
        yield self.rows

    def seen(self) -> list[str]:
        """The lines in view."""
        return [self.rows.render_line(y).text.strip(" ▸") for y in range(self.rows.size.height)]


async def test_the_end_stays_in_view_when_textual_sends_no_resize() -> None:
    app = Following()
    async with app.run_test(size=(40, 12)):
        app.rows.show(range(30))
        await until(lambda: app.seen() == [f"line {number}" for number in range(18, 30)], pause=stirred)
        app.rows.styles.height = 7
        take_new_places(app.screen)
        await until(lambda: app.seen() == [f"line {number}" for number in range(23, 30)], pause=stirred)


async def test_the_end_is_in_view_after_lines_came_while_the_list_was_hidden() -> None:
    app = Following()
    async with app.run_test(size=(40, 12)) as pilot:
        app.rows.show(range(30))
        await pilot.pause()
        app.rows.display = False
        await pilot.pause()
        app.rows.show(range(60))
        await pilot.pause()
        app.rows.display = True
        await until(lambda: app.seen() == [f"line {number}" for number in range(48, 60)], pause=stirred)


async def test_hiding_a_list_leaves_its_lines_where_they_are() -> None:
    app = Following()
    async with app.run_test(size=(40, 12)) as pilot:
        app.rows.show(range(60))
        await pilot.pause()
        app.rows.choose("20")
        app.rows.choose("25")  # In the middle of the window, where showing it again would not bring it.
        await pilot.pause()
        before = app.seen()
        assert before[0] == "line 20"
        app.rows.display = False
        await pilot.pause()
        app.rows.display = True
        await pilot.pause()
        assert app.seen() == before
