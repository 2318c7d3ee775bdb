"""A text to read over the chat: what a request held, the memory, topics. Loaded when one is first opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ragforge_tui.errors import RagforgeError
from ragforge_tui.text import plain_text

MIN_HANGING_WIDTH = 30
"""In less there is no room for indentation."""


class Reader(ModalScreen[None]):
    """Shows plain text that may still be on its way; arrows, pages, home and end scroll it.

    Args:
        load: Gives the text while the screen is already there.
        hang: Lines go on under their own indentation, as a tree needs it; a copy then has the line breaks shown.
    """

    CSS = """
    Reader { align: center middle; }
    Reader > Vertical {
        width: 110; max-width: 98%; height: 92%; background: $surface; border: round $border; padding: 0 1;
    }
    Reader #reader-title { text-style: bold; height: 1; }
    Reader VerticalScroll { scrollbar-size-vertical: 1; margin: 1 0; height: 1fr; }
    Reader #reader-keys { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(self, title: str, load: Callable[[], Awaitable[str]], *, hang: bool = False) -> None:
        super().__init__()
        self._title = title
        self._load = load
        self._hang = hang
        self._lines: list[Content] = []
        self._text = Static("loading …", markup=False)

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        with Vertical():
            yield Static(self._title, id="reader-title", markup=False)
            with VerticalScroll():
                yield self._text
            yield Static("↑ ↓ page up/down scroll · esc back", id="reader-keys", markup=False)

    def on_mount(self) -> None:
        """Fetch the text while the screen is already there."""
        self.query_one(VerticalScroll).focus()
        self.run_worker(self._fill(), name="text", group="text", exclusive=True, exit_on_error=False)

    async def _fill(self) -> None:
        try:
            text = await self._load()
        except RagforgeError as error:
            self._text.update(Content.styled(error.info.sentence(), "$error"))
            return
        self._lines = [_line(line) for line in plain_text(text).split("\n")]
        self._show()
        self.call_after_refresh(self._text.refresh, layout=True)

    def _show(self) -> None:
        width = self.query_one(VerticalScroll).scrollable_content_region.width
        lines = self._lines
        if self._hang and width > MIN_HANGING_WIDTH:
            lines = [part for line in lines for part in _hanging(line, width - 1)]
        self._text.update(Content("\n").join(lines))

    def on_resize(self) -> None:
        """Break hanging lines anew."""
        if self._hang and self._lines:
            self.call_after_refresh(self._show)

    def action_scroll(self, lines: int) -> None:
        """Scroll like the arrow keys do."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def _hanging(line: Content, width: int) -> list[Content]:
    """The line in parts of that width, all as far from the left as its first word; a bullet stands out."""
    text = line.plain
    indent = len(text) - len(text.lstrip(" "))
    body = line[indent:]
    hang = 2 if body.plain.startswith("- ") else 0
    first, *rest = body.wrap(max(width - indent - hang, MIN_HANGING_WIDTH // 2)) or [body]
    return [first.pad_left(indent), *(part.pad_left(indent + hang) for part in rest)]


def _line(line: str) -> Content:
    """Headings and lines on sources stand out; the text itself is as it was sent."""
    if line.startswith("## "):
        return Content.styled(line[3:], "bold $primary")
    if line.startswith("--- "):
        return Content.styled(line[4:], "$secondary dim")
    return Content(line)
