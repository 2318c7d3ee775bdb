"""Diff of all files that the agent changed in this conversation. Loaded when first used.

Draws only the lines in view, so that a diff of many thousand lines opens and scrolls like a short one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.wire import FileDiff
from ragforge_tui.tui.drawing.code import diff_counts, diff_run
from ragforge_tui.tui.style.palette import Palette, palette_of
from ragforge_tui.tui.workers import start_worker

_INDENT = "  "
NOTHING = "Nothing: the files are as they were before this conversation."


class DiffLines(ScrollView, can_focus=True):
    """The lines of all diffs."""

    DEFAULT_CSS = "DiffLines { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[str, bool]] = []
        self.heads: list[int] = []
        """The first line of each file."""

    def show(self, diffs: list[FileDiff]) -> None:
        self._lines, self.heads = [], []
        for one in diffs:
            self.heads.append(len(self._lines))
            self._lines += _lines_of(one)
        widest = max((cell_len(text) for text, _ in self._lines), default=0)
        self.virtual_size = Size(widest, len(self._lines))
        self.refresh()

    def go(self, step: int) -> None:
        """Go to the next or the previous file."""
        here = self.scroll_offset.y
        targets = [head for head in self.heads if (head > here if step > 0 else head < here)]
        if targets:
            self.scroll_to(y=targets[0] if step > 0 else targets[-1], animate=False)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        x, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if top + y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        text, is_head = self._lines[top + y]
        palette = self._palette()
        own = palette.heading if is_head else diff_run(text.removeprefix(_INDENT), palette)[1]
        style = self.rich_style + own
        return Strip([Segment(text, style)]).crop_extend(x, x + width, self.rich_style)

    def _palette(self) -> Palette:
        app = self.app
        return palette_of(app.theme_variables, dark=app.current_theme.dark, ansi=app.native_ansi_color)


class DiffScreen(ModalScreen[None]):
    """All files that the agent changed: the first known contents against the current ones.

    Args:
        load: Returns the diffs while the screen is already visible.
    """

    CSS = """
    DiffScreen { align: center middle; }
    DiffScreen > Vertical {
        width: 120; max-width: 98%; height: 92%; background: $surface; border: round $border; padding: 0 1;
    }
    DiffScreen #diff-title { text-style: bold; height: 1; }
    DiffScreen DiffLines { margin: 1 0; }
    DiffScreen #diff-keys { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("n", "file(1)", show=False),
        Binding("p", "file(-1)", show=False),
        Binding("c", "copy", show=False),
    ]

    def __init__(self, load: Callable[[], Awaitable[list[FileDiff]]]) -> None:
        super().__init__()
        self._load = load
        self._diffs: list[FileDiff] = []
        self._title = Static("Changes by the agent …", id="diff-title", markup=False)
        self._lines = DiffLines()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._lines
            yield Static("↑ ↓ scroll · n p next, previous file · c copy · esc back", id="diff-keys", markup=False)

    def on_mount(self) -> None:
        """Fetch the diffs while the screen is already visible."""
        self._lines.focus()
        start_worker(self, self._fill(), group="diff", exclusive=True)

    async def _fill(self) -> None:
        try:
            self._diffs = await self._load()
        except RagforgeError as error:
            self._title.update(error.info.sentence())
            return
        if not self._diffs:
            self._title.update(NOTHING)
            return
        counts = [diff_counts(one.diff) for one in self._diffs]
        added, removed = sum(one for one, _ in counts), sum(one for _, one in counts)
        files = f"{len(self._diffs)} file{'s' if len(self._diffs) > 1 else ''}"
        self._title.update(f"Changes by the agent: {files}, +{added} −{removed}")
        self._lines.show(self._diffs)

    def action_file(self, step: int) -> None:
        self._lines.go(step)

    def action_copy(self) -> None:
        if self._diffs:
            self.app.copy_to_clipboard(plain_text("".join(one.diff for one in self._diffs)))
            self.notify("The diff was sent to the clipboard.", timeout=2, markup=False)


def _lines_of(one: FileDiff) -> list[tuple[str, bool]]:
    """Return the lines of one file, and for each whether it is the heading."""
    added, removed = diff_counts(one.diff)
    note = f"   {plain_text(one.note)}" if one.note else ""
    lines = [(f"{_flat(plain_text(one.path))}   +{added} −{removed}{note}", True)]
    body = plain_text(one.diff).rstrip("\n").split("\n") if one.diff else []
    lines += [(f"{_INDENT}{_flat(line)}", False) for line in body if not line.startswith(("--- ", "+++ "))]
    return [*lines, ("", False)]


def _flat(line: str) -> str:
    return line.expandtabs(4).replace("\n", " ")
