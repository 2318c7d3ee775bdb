"""Lists that draw what is visible."""

from __future__ import annotations

from textual.app import App, ComposeResult

from ragforge_tui.tui.memory.context_screen import ContextRows

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
