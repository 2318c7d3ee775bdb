"""A screen for a long text, such as a whole block of the chat, a tool call, or a file. Fast for any length.

The text is cut into pieces of some lines; only those in view are highlighted and drawn. Text that is not very long is
highlighted as a whole in a thread before it is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import ceil
from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.timer import Timer
from textual.widgets import Static

from ragforge_tui.shared.code_views import code_of
from ragforge_tui.shared.events import Event, ToolCallFinished, ToolCallStarted
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.work import FileDiff
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import tool_label
from ragforge_tui.tui.dialogs.detail import Section, call_sections, call_title, diff_section, is_numbered
from ragforge_tui.tui.drawing.code import by_line, code_rows, highlight
from ragforge_tui.tui.drawing.diff_lines import Diff
from ragforge_tui.tui.drawing.diff_parser import diff_counts
from ragforge_tui.tui.drawing.lines import Line, Run, clean, line_of, one_line, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.blocks import MEASURE, Block, HeadBlock, UserBlock
from ragforge_tui.tui.transcript.diff_block import WIDEST, DiffBlock
from ragforge_tui.tui.transcript.markdown import Unit, clean_source, parse, render_unit
from ragforge_tui.tui.transcript.tool_block import CallState, ToolBlock
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog

PIECE_LINES = 60
PIECE_CHARS = 6_000
CODE_ACTION = "code"
"""Action of a call's screen that shows the code the call was about."""
HIGHLIGHTED_WHOLE = 200_000
"""Longer code is highlighted piece by piece, which may miss what spans pieces."""
_WIDE_UNITS = frozenset({"fence", "code_block", "table_open"})
"""Kinds of Markdown that use all the width there is."""


class HeadingBlock(Block):
    """The title of a section."""

    kind = "head"

    def __init__(self, title: str, *, gap: int) -> None:
        super().__init__(0, gap=gap)
        self._title = title

    def draw(self, width: int, palette: Palette) -> list[Line]:
        return [line_of([(self._title, palette.strong_heading)], width)]


class HighlightedCode:
    """The code of a section, highlighted as a whole once for each palette."""

    def __init__(self, code: str, language: str) -> None:
        self._code = code
        self._language = language
        self._made: tuple[Palette, list[list[Run]]] | None = None

    def lines(self, palette: Palette) -> list[list[Run]]:
        """Return the highlighted lines."""
        if self._made is None or self._made[0] is not palette:
            self._made = palette, by_line(highlight(self._code, self._language, palette))
        return self._made[1]


class PieceBlock(Block):
    """Some lines of a section."""

    kind = "text"

    def __init__(self, section: Section, lines: Sequence[str], start: int, whole: HighlightedCode | None) -> None:
        super().__init__(0, gap=0)
        self._section = section
        self._text = lines
        self._start = start
        self.whole = whole

    @property
    def source(self) -> str:
        return "\n".join(self._text)

    def draw(self, width: int, palette: Palette) -> list[Line]:
        section = self._section
        if section.kind in ("prose", "struck", "error"):
            style = palette.failed if section.kind == "error" else palette.text
            if section.kind == "struck":
                style = palette.muted + Style(strike=True)
            return wrap([(clean(self.source), style)], width)
        if self.whole is not None:
            highlighted = self.whole.lines(palette)[self._start : self._start + len(self._text)]
        else:
            bare = [_bare(line, section) for line in self._text]
            highlighted = by_line(highlight("\n".join(bare), section.language, palette))
        drawn: list[Line] = []
        for line, runs in zip(self._text, highlighted, strict=False):
            first: list[Run] = [("│ ", palette.faint)]
            number = is_numbered(line) if section.numbered else None
            if number is not None:
                first = [(f"{number[0].rstrip()} ", palette.muted), *first]
            rest = [(" " * sum(len(text) for text, _ in first[:-1]), palette.muted), first[-1]]
            drawn += code_rows(runs, width, first=first, rest=rest)
        return drawn

    def estimate(self, width: int) -> int:
        inner = max(1, width - 2)
        return sum(max(1, ceil(len(line) / inner)) for line in self._text)


class UnitBlock(Block):
    """A piece of rendered Markdown: code and tables may be as wide as the window, sentences stay readable."""

    kind = "text"
    measure = WIDEST

    def __init__(self, unit: Unit, *, gap: int) -> None:
        super().__init__(0, gap=gap)
        self._unit = unit
        self._wide = unit.ordinal is None and unit.tokens[0].type in _WIDE_UNITS

    def draw(self, width: int, palette: Palette) -> list[Line]:
        return render_unit(self._unit, width if self._wide else min(width, MEASURE), palette, first=True)

    def estimate(self, width: int) -> int:
        first, last = self._unit.tokens[0].map, self._unit.tokens[-1].map
        lines = (last or first or [0, 1])[1] - (first or [0, 1])[0]
        return self.gap + max(1, lines)


def _bare(line: str, section: Section) -> str:
    number = is_numbered(line) if section.numbered else None
    return clean(line[number.end() :] if number is not None else line)


def blocks_of(sections: Sequence[Section]) -> list[Block]:
    """Return the blocks of sections, in order."""
    blocks: list[Block] = []
    for section in sections:
        gap = 1 if blocks else 0
        if section.title:
            blocks.append(HeadingBlock(section.title, gap=gap))
        if section.kind == "diff":
            blocks.append(DiffBlock(Diff(section.text, section.note), gap=0 if section.title else gap))
            continue
        if section.kind == "markdown":
            units = parse(clean_source(section.text)).units
            blocks += [UnitBlock(unit, gap=int(unit.gap)) for unit in units]
            continue
        text = section.text.replace("\r\n", "\n").rstrip("\n")
        lines = [part for line in text.split("\n") for part in _parts(line)]
        small = section.kind == "code" and len(text) <= HIGHLIGHTED_WHOLE
        whole = HighlightedCode("\n".join(_bare(line, section) for line in lines), section.language) if small else None
        start = 0
        while start < len(lines):
            end, size = start, 0
            while end < len(lines) and end - start < PIECE_LINES and (size < PIECE_CHARS or end == start):
                size += len(lines[end])
                end += 1
            blocks.append(PieceBlock(section, lines[start:end], start, whole))
            start = end
    for serial, block in enumerate(blocks):
        block.serial = serial
    return blocks


def _parts(line: str) -> list[str]:
    """Split a line that is longer than a piece. Carriage returns and the like do not make further lines."""
    line = " ".join(plain_text(line[:PIECE_CHARS]).split("\n")) if len(line) <= PIECE_CHARS else line
    if len(line) <= PIECE_CHARS:
        return [line]
    return [" ".join(plain_text(line[at : at + PIECE_CHARS]).split("\n")) for at in range(0, len(line), PIECE_CHARS)]


class Viewer(BlockView, can_focus=True):
    """Scrolling text."""

    DEFAULT_CSS = """
    Viewer { height: 1fr; width: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("space", "page_down", show=False),
    ]

    def headings(self) -> list[int]:
        """Return the lines of the headings."""
        starts: list[Block] = []
        before: Block | None = None
        for block in self.document.blocks:
            own_title = isinstance(block, DiffBlock) and not isinstance(before, HeadingBlock)
            if own_title or isinstance(block, HeadingBlock):
                starts.append(block)
            before = block
        return [self.viewport.start(block) + block.gap for block in starts]


class DetailScreen(Dialog[str | None]):
    """Sections of text. Returns the chosen action, None if it was closed.

    Args:
        load: Returns title and sections while the screen is already visible.
        actions: Actions by key, with words for the key line: `g` to ``("turn", "go to its turn")``.
        concerns: Returns whether an event changes the text, which is loaded again then.
        title_now: Returns the title of something that is running, once a second; empty once it is over.
        has_diff: The text has a diff, or other parts that need all the width there is.
    """

    DEFAULT_CSS = """
    DetailScreen > Vertical { width: 116; }
    DetailScreen.-diff > Vertical { width: 200; }
    DetailScreen .title { height: 1; }
    DetailScreen Viewer { margin: 1 0; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "leave", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("n", "section(1)", "next", show=False),
        Binding("N", "section(-1)", "previous", show=False),
    ]

    def __init__(
        self,
        title: str,
        load: Callable[[], Awaitable[tuple[str, Sequence[Section]]]],
        *,
        actions: dict[str, tuple[str, str]],
        concerns: Callable[[Event], bool] | None = None,
        title_now: Callable[[], str] | None = None,
        has_diff: bool = False,
    ) -> None:
        super().__init__()
        self.set_class(has_diff, "-diff")
        self._load = load
        self._concerns = concerns
        self._title_now = title_now
        self._ticker: Timer | None = None
        self._actions = dict(actions)
        self._title = Static(plain_text(title), classes="title", markup=False)
        self._viewer = Viewer()
        self.sections: Sequence[Section] = []
        self._keys = KeyBar(self)
        self._keys.show_note("loading …")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._viewer
            yield self._keys

    def on_mount(self) -> None:
        """Fetch the text while the screen is already visible."""
        self._viewer.focus()
        self._fill_soon()
        if self._title_now is not None and self._title_now():
            self._ticker = self.set_interval(1.0, self._tick)

    def _fill_soon(self) -> None:
        self.run_guarded(self._fill(), group="detail")

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the keys."""
        self._keys.show_note(sentence, "$error")

    def engine_event(self, event: Event) -> None:
        """Reload the text if the event changes it."""
        if self._concerns is not None and self._concerns(event):
            self._fill_soon()

    def _tick(self) -> None:
        title = self._title_now() if self._title_now is not None else ""
        if title:
            self._show_title(title)
        elif self._ticker is not None:
            self._ticker.stop()

    def _show_title(self, title: str) -> None:
        self._title.update(Content(one_line(title)))

    def offer(self, key: str, action: str, words: str) -> None:
        """Let a key close the screen with an action; it may be known only once the text is loaded."""
        self._actions[key] = (action, words)

    def on_key(self, event: Key) -> None:
        """Close the screen with the action of an offered key."""
        if event.key in self._actions:
            event.stop()
            self.dismiss(self._actions[event.key][0])

    async def _fill(self) -> None:
        title, self.sections = await self._load()
        blocks = await asyncio.to_thread(prepared_blocks, self.sections, self._viewer.palette)
        self._show_title(title)
        self._viewer.view(blocks)
        self._keys.show_keys(self.key_hints())

    def key_hints(self) -> list[KeyHint]:
        """Return the keys that help with the loaded text."""
        hints = [KeyHint("dismiss(None)", "esc", "back")]
        hints += [KeyHint(f"dismiss('{action}')", key, words) for key, (action, words) in self._actions.items()]
        if len(self.sections) > 1:
            hints += [KeyHint("section(1)", "n", "next section"), KeyHint("section(-1)", "N", "previous")]
        return [*hints, KeyHint("copy", "y", "copy")]

    def action_copy(self) -> None:
        """Copy the last section: the result, the file."""
        if self.sections:
            self.app.copy_to_clipboard(self.sections[-1].text)
            self._keys.show_note(f"{self.sections[-1].title} sent to the clipboard")

    def action_section(self, step: int) -> None:
        """Go to the next section, after the last one to the first; or to the previous one."""
        top, lines = self._viewer.top, self._viewer.headings()
        if step > 0:
            below = [line for line in lines if line > top] if top < self._viewer.max_scroll_y else []
            self._viewer.scroll_to(y=below[0] if below else 0)
        else:
            self._viewer.scroll_to(y=max((line for line in lines if line < top), default=0))


class DiffScreen(DetailScreen):
    """All files that the agent changed: the first known contents against the current ones."""

    def __init__(self, fetch: Callable[[], Awaitable[list[FileDiff]]], *, empty: str) -> None:
        super().__init__("Changes by the agent …", self._load_diffs, actions={}, has_diff=True)
        self._empty = empty
        self._fetch = fetch
        self._diffs: list[FileDiff] = []

    async def _load_diffs(self) -> tuple[str, list[Section]]:
        self._diffs = await self._fetch()
        if not self._diffs:
            return "No changes by the agent", [Section(title="", text=self._empty, kind="prose")]
        counts = [diff_counts(one.diff) for one in self._diffs]
        added, removed = sum(one for one, _ in counts), sum(one for _, one in counts)
        files = counted(len(self._diffs), "file")
        return f"Changes by the agent: {files}, +{added} −{removed}", [diff_section(one) for one in self._diffs]

    def key_hints(self) -> list[KeyHint]:
        """Return keys for files instead of sections."""
        hints = [KeyHint("section(1)", "n", "next file"), KeyHint("section(-1)", "N", "previous file")]
        return [*hints, KeyHint("copy", "y", "copy"), KeyHint("dismiss(None)", "esc", "back")]

    def action_copy(self) -> None:
        if self._diffs:
            self.app.copy_to_clipboard(plain_text("".join(one.diff for one in self._diffs)))
            self._keys.show_note("The diff was sent to the clipboard.")


def prepared_blocks(sections: Sequence[Section], palette: Palette) -> list[Block]:
    """Return the blocks of sections with their code highlighted; for a thread."""
    blocks = blocks_of(sections)
    for whole in {id(b.whole): b.whole for b in blocks if isinstance(b, PieceBlock) and b.whole is not None}.values():
        whole.lines(palette)
    return blocks


def call_screen(
    host: Host,
    call_id: str,
    name: str,
    turn: int,
    *,
    fetch: Callable[[], Awaitable[ToolCall]],
    state: Callable[[], CallState],
) -> DetailScreen:
    """Return a screen for a call, updated while it runs.

    Args:
        fetch: Returns the call with its result, if the chat does not show it.
        state: Returns the state of the call while it has no result.
    """

    def title_of(call: ToolCall) -> str:
        return call_title(call, turn, state(), host.now())

    async def load() -> tuple[str, list[Section]]:
        block = _block_of_call(host, call_id)
        call = block.call if block is not None else await fetch()
        if code_of(call) is not None:
            screen.offer("v", CODE_ACTION, "its code")
        return title_of(call), call_sections(call)

    def concerns(event: Event) -> bool:
        return isinstance(event, ToolCallStarted | ToolCallFinished) and event.call.uuid == call_id

    def title_now() -> str:
        block = _block_of_call(host, call_id)
        return title_of(block.call) if block is not None and block.call.result is None else ""

    shown = _block_of_call(host, call_id)
    screen = DetailScreen(
        f"{tool_label(name)} · turn {turn}",
        load,
        actions={"g": ("turn", "go to its turn")},
        concerns=concerns,
        title_now=title_now,
        has_diff=shown is not None and shown.has_diff,
    )
    return screen


def _block_of_call(host: Host, call_id: str) -> ToolBlock | None:
    """Return the block of a call in the chat, if there is one."""
    blocks = reversed(host.transcript.document.blocks)
    return next((block for block in blocks if isinstance(block, ToolBlock) and block.call.uuid == call_id), None)


def block_screen(host: Host, block: Block) -> DetailScreen:
    """Return a screen for a block of the chat that is no answer."""
    if isinstance(block, ToolBlock):
        call = block.call

        async def fetch() -> ToolCall:
            return call

        def state() -> CallState:
            # If its turn was rendered again meanwhile, the new block has the current state.
            return (_block_of_call(host, call.uuid) or block).state

        return call_screen(host, call.uuid, call.tool_name, block.turn_index, fetch=fetch, state=state)
    match block:
        case UserBlock():
            name = block.name
        case HeadBlock():
            name = "Reasoning"
        case _:
            name = "Notice"
    title = f"{name} · turn {block.turn_index}" if block.turn_index else name

    async def load() -> tuple[str, list[Section]]:
        return title, [Section(title=f"{counted(len(block.source))} characters", text=block.source, kind="prose")]

    return DetailScreen(title, load, actions={})
