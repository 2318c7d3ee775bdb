"""What requests to models took, as a table with plots: by day, model, folder, persona and cause.

Loaded when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.requests.past import FetchUsage
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.usage_records import GROUPINGS, UsageBy, UsageReport
from ragforge_tui.shared.usage_table import COLUMNS, UsageLine, footnotes, usage_lines
from ragforge_tui.tui.drawing.lines import clip
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.memory.topics_screen import Ask
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog

_DAYS = {"30 days": 30, "7 days": 7, "today": 0, "always": None}
_KEYS: dict[UsageBy, str] = {by: str(number) for number, by in enumerate(GROUPINGS, 1)}
_NAME, _BAR = 0, 1
_GIVES_WAY = (1, 5, 3, 6, 4)
"""Columns that a narrow screen leaves out, one after the other."""
_LEAST_NAME = 16
_BETWEEN = 2


class UsageScreen(Dialog[None]):
    """A table that keys group in another way, for another place or time; Escape or q leaves.

    Args:
        places: Names of the places to choose from, with what `FetchUsage` needs to choose them; the first is shown.
        said: What was spent since the chat was started, as a sentence.
    """

    CSS = """
    UsageScreen > Vertical { width: 100%; max-width: 116; }
    UsageScreen VerticalScroll { height: 1fr; margin: 1 0; scrollbar-size-vertical: 1; }
    UsageScreen #usage-said { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "leave", show=False),
        *(
            Binding(key, f"group('{by}')", "list, filter or finding of that number", show=False)
            for by, key in _KEYS.items()
        ),
        Binding("tab,right", "turn(1)", show=False, priority=True),
        Binding("shift+tab,left", "turn(-1)", show=False, priority=True),
        Binding("w", "place", "this folder or all", show=False),
        Binding("t", "time", "choose the time", show=False),
    ]

    def __init__(
        self, ask: Ask, places: Mapping[str, Mapping[str, str]], *, said: str, now: Callable[[], datetime]
    ) -> None:
        super().__init__()
        self._ask = ask
        self._now = now
        self._by: UsageBy = "day"
        self._shown_by: UsageBy = "day"
        self._places = places
        self._place = next(iter(places))
        self._time = next(iter(_DAYS))
        self._report: UsageReport | None = None
        self._title = Static("Usage", classes="title", markup=False)
        self._said = Static(plain_text(said), id="usage-said", markup=False)
        self._table = Static("adding up …", markup=False)
        self._keys = KeyBar(self)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._said
            with VerticalScroll():
                yield self._table
            yield self._keys

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()  # so that the arrow keys scroll
        self._show_choice()
        self._load()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self._draw)

    @property
    def text(self) -> str:
        """The table as it is shown."""
        return str(self._table.render())

    # --- keys

    def action_group(self, by: UsageBy) -> None:
        """Group in another way."""
        self._load(_by=by)

    def action_turn(self, step: int) -> None:
        """Go to the next grouping."""
        self.action_group(GROUPINGS[(GROUPINGS.index(self._by) + step) % len(GROUPINGS)])

    def action_place(self) -> None:
        """Show all folders, this one, or this conversation."""
        self._load(_place=_next(list(self._places), self._place))

    def action_time(self) -> None:
        """Show more or fewer days."""
        self._load(_time=_next(list(_DAYS), self._time))

    def show_error(self, sentence: str) -> None:
        self._keys.show_note(plain_text(sentence), "$error", seconds=SCREEN.key_note)

    # --- what is shown

    def _load(self, **choice: str) -> None:
        self.switch(self._fetch, group="usage", **choice)

    def _show_choice(self) -> None:
        self._title.update(
            Content.assemble(
                ("Usage", "bold"), f" by {self._by} · {self._place} · ", self._time.replace("always", "all")
            )
        )
        groupings = [KeyHint(f"group('{by}')", key, by, on=by == self._by) for by, key in _KEYS.items()]
        self._keys.show_keys(
            [
                *groupings,
                KeyHint("time", "t", "time"),
                KeyHint("place", "w", "where"),
                KeyHint("dismiss(None)", "esc", "back"),
            ]
        )

    async def _fetch(self) -> None:
        fields = self._places[self._place]
        self._report = await self._ask(FetchUsage(by=self._by, since=self._since(), **fields))
        self._shown_by = self._by
        self._show_choice()
        self._draw()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _since(self) -> datetime | None:
        days = _DAYS[self._time]
        if days is None:
            return None
        return self._now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)

    def _draw(self) -> None:
        if self._report is None:
            return
        lines = usage_lines(self._report)
        if not lines:
            self._table.update("No request to a model is stored for this place and time.")
            return
        head = UsageLine((self._shown_by, *COLUMNS[1:]))
        room = max(self._table.container_size.width, _LEAST_NAME)
        notes = [(f"\n{note}", "dim") for note in footnotes(self._report)]
        self._table.update(Content.assemble(*_drawn([head, *lines], room), *notes))


def _next(names: Sequence[str], current: str) -> str:
    return names[(names.index(current) + 1) % len(names)]


def _drawn(lines: Sequence[UsageLine], room: int) -> list[tuple[str, str]]:
    """Return the lines in columns, the first one as their heads and the last one as the total."""
    widths = [max(cell_len(line.cells[column]) for line in lines if not line.heading) for column in range(len(COLUMNS))]
    least = min(widths[_NAME], _LEAST_NAME)
    shown = list(range(len(COLUMNS)))
    for column in _GIVES_WAY:
        if _others(widths, shown) + least <= room:
            break
        shown.remove(column)
    widths[_NAME] = max(least, min(widths[_NAME], room - _others(widths, shown)))
    parts: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        if line.heading:
            parts.append((f"\n{clip(line.cells[_NAME], room)}\n", "bold"))
            continue
        ends = number in (0, len(lines) - 1)
        for column in shown:
            cell = clip(line.cells[column], widths[column])
            gap = " " * (widths[column] - cell_len(cell))
            text = f"{cell}{gap}" if column in (_NAME, _BAR) else f"{gap}{cell}"
            style = "dim" if number == 0 else "bold" if ends else "$primary" if column == _BAR else ""
            parts.append((text if column == shown[-1] else text + " " * _BETWEEN, style))
        parts.append(("\n", ""))
    return parts


def _others(widths: Sequence[int], shown: Sequence[int]) -> int:
    """Return the cells of all shown columns but the name."""
    return sum(widths[column] + _BETWEEN for column in shown) - widths[_NAME] - _BETWEEN
