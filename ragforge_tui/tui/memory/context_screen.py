"""Contents of a request to the model: each section with its tokens, each item with its source, verbatim.

Loaded when first used. The lines of the list are pure; `ContextRows` draws them, `ContextScreen` shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.export.context import context_text, item_headline, item_kind, item_turns
from ragforge_tui.shared.context_choices import Choice, ChosenItem, compared, item_key
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.formatting import short_count
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection
from ragforge_tui.shared.requests.memory import ChooseContext, FetchNext, FetchSent, SentRequest
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.drawing.lines import Run, clip, one_line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.memory.topics_screen import Ask
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog
from ragforge_tui.tui.widgets.virtual_list import TreeList, VirtualList

BAR_CELLS = 8
_PREVIEW_CELLS = 16
"""Cells of an item's text that are shown next to its source."""
_PREVIEW_CHARS = 400


class ContextLine(msgspec.Struct, frozen=True):
    """A section, or an item of one.

    Attributes:
        share: The section's part of the request, from 0 to 1.
        open: Whether the section's items are listed; None if it has none.
        choice: What the user chose for the item's next requests; empty for nothing.
    """

    key: str
    section: ContextSection
    item: ContextItem | None = None
    share: float = 0.0
    open: bool | None = None
    choice: Choice | Literal[""] = ""


def lines_of(record: ContextRecord, folded: set[str], chosen: Sequence[ChosenItem] = ()) -> list[ContextLine]:
    """Return the non-empty sections in the order they were sent, then what the user left out or pinned since."""
    choices: dict[str, Choice] = {one.key: "pin" if one.pinned else "exclude" for one in chosen}
    found: list[ContextLine] = []
    whole = max(sum(section.tokens for section in record.sections), 1)
    for place, section in enumerate(record.sections):
        if not section.items and not section.left_out:
            continue
        key = f"s{place}"
        opened = key not in folded if section.items else None
        found.append(ContextLine(key, section, share=section.tokens / whole, open=opened))
        if opened:
            found += [
                ContextLine(f"{key}.{n}", section, item, choice=choices.get(item_key(item, record.conversation_id), ""))
                for n, item in enumerate(section.items)
            ]
    return found


def bar(share: float, cells: int = BAR_CELLS) -> tuple[str, str]:
    """Return a bar of two parts, the filled one first; any share above zero fills at least one cell."""
    filled = min(cells, max(round(share * cells), 1 if share > 0 else 0))
    return "▰" * filled, "▱" * (cells - filled)


def percent(share: float) -> str:
    """Return a share in percent; a share above zero is never shown as zero."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def headline(sent: SentRequest) -> str:
    """Return turn, request number, model, tokens and the form of the history."""
    record = sent.record
    if sent.preview:
        return (
            f"Next request, not sent yet · {short_count(record.sent_tokens)} tokens, {short_count(record.tokens)} of "
            f"{short_count(record.budget)} for the past · {record.model}"
        )
    which = f" · request {sent.number} of {sent.count}" if sent.count > 1 else ""
    replies = f" · for {sent.replies} replies" if sent.replies > 1 else ""
    budget = f" of {short_count(record.budget)}" if record.budget else ""
    tokens = f"{short_count(record.sent_tokens)} tokens, {short_count(record.tokens)}{budget} for the past"
    how = "whole conversation" if record.whole else record.strategy
    return f"Turn {record.turn_index} of {sent.last_turn}{which} · {tokens} · {how} · {record.model}{replies}"


def warnings(record: ContextRecord) -> str:
    """Return what the user should know about a request: a source that changed, and searches that are missing."""
    return " ".join([*([] if record.verified else [CHANGED]), *record.missing])


def window_note(model: ModelChanged | None) -> str:
    """Return what the user should know about the model's window; empty if it is known for certain."""
    if model is None or not (model.window_assumed or model.window_learned):
        return ""
    window, change = short_count(model.context_window), "/settings model.context_window changes it"
    if model.window_learned is None:
        return f"The window of {model.name} is assumed: {window}. {change}."
    day = f"{model.window_learned.astimezone():%-d %b}"
    return f"The window of {model.name} was found to be {window} on {day}. {change}, /model {model.name} resets it."


def source_of(item: ContextItem, own: str) -> tuple[str, int, int] | None:
    """Return the conversation, first and last turn of an item's source; None if it is no turn."""
    if not item.turn_index:
        return None
    return item.conversation_id or own, item.turn_index, max(item.last_turn, item.turn_index)


class ContextRows(TreeList[ContextLine]):
    """The list of sections and items."""

    def key_of(self, line: ContextLine) -> str:
        return line.key

    def draw(self, line: ContextLine, width: int, palette: Palette) -> list[Run]:
        """Draw the text on the left and the size on the right."""
        if line.item is None:
            return _section_runs(line, width, palette)
        return _item_runs(line.item, line.choice, width, palette)


def _section_runs(line: ContextLine, width: int, palette: Palette) -> list[Run]:
    section = line.section
    filled, empty = bar(line.share)
    budget = f" of {short_count(section.budget)}" if section.budget else ""
    right: list[Run] = [(f"{section.left_out} left out  ", palette.running)] if section.left_out else []
    right += [
        (filled, palette.you),
        (empty, palette.faint),
        (f" {percent(line.share):>4} {f'{short_count(section.tokens)}{budget}':>12}", palette.muted),
    ]
    arrow = "▾ " if line.open else "▸ " if line.open is False else "  "
    cells = sum(cell_len(text) for text, _ in right)
    if width - cells < 16:
        right, cells = [(f" {short_count(section.tokens)}", palette.muted)], cell_len(short_count(section.tokens)) + 1
    title = clip(one_line(section.title), max(4, width - cells - 3))
    gap = max(1, width - 2 - cell_len(title) - cells)
    return [(arrow, palette.arrow), (title, palette.strong_heading), (" " * gap, palette.text), *right]


_CHOICES: dict[str, str] = {"": "    ", "pin": "  ◆ ", "exclude": "  × "}


def _item_runs(item: ContextItem, choice: str, width: int, palette: Palette) -> list[Run]:
    right = f" {f'{short_count(item.cut)} chars cut ' if item.cut else ''}{short_count(item.tokens):>5}"
    date = f"{item.date.astimezone():%Y-%m-%d}" if item.date is not None else ""
    level = f"L{item.level}" if item.level else ""
    away = one_line(item.title) or (f"from {item.conversation_id[:8]}" if item.conversation_id else "")
    form = item.form if item.form not in ("", "whole", "kept") else ""
    named = " ".join(part for part in (level, item_turns(item)) if part)
    runs: list[Run] = [(_CHOICES[choice], palette.accent), (item_kind(item), palette.text)]
    if named:
        runs.append((f" {named}", palette.you))
    for part, style in ((away, palette.link if item.conversation_id else palette.text), (date, palette.muted)):
        if part:
            runs += [(" · ", palette.faint), (part, style)]
    if form:
        runs += [(" · ", palette.faint), (form, palette.muted)]
    room = max(1, width - cell_len(right))
    shown = _clipped(runs, room)
    left = room - sum(cell_len(text) for text, _ in shown)
    text = one_line(item.text[:_PREVIEW_CHARS])
    if left >= _PREVIEW_CELLS and text != away:
        preview = clip(f"  {text}", left - 1)
        shown.append((preview, palette.muted))
        left -= cell_len(preview)
    return [*shown, (" " * left, palette.text), (right, palette.muted)]


def _clipped(runs: list[Run], room: int) -> list[Run]:
    """Return the runs that fit, the last one truncated."""
    found: list[Run] = []
    for text, style in runs:
        if cell_len(text) > room:
            if room > 1:
                found.append((clip(text, room), style))
            break
        found.append((text, style))
        room -= cell_len(text)
    return found


_CHOSEN: dict[Choice, str] = {
    "exclude": "The next requests of this session leave it out. x takes that back.",
    "pin": "Each next request of this session holds it. p unpins it.",
    "usual": "It is sent again when it matters.",
}
CHANGED = "A source has changed since: the text sent may have differed."

Source = tuple[str, int, int]
"""A conversation, and the first and last turn of a source."""


class ContextScreen(Dialog[Source | None]):
    """Returns the source that the user wants to see, None if it was closed.

    Args:
        ask: Asks the engine.
        conversation_id: The conversation of the requests.
        turn: The first turn to show, 0 for the newest, the one after it for the next request.
        draft: Message that the next request is shown for; empty for the text of the last one.
        window: What is to be said about the model's window.
    """

    CSS = """
    ContextScreen > Vertical { width: 130; }
    ContextScreen .title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    ContextScreen #sent-note { height: auto; min-height: 1; color: $warning; }
    ContextScreen ContextRows { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "leave", show=False),
        Binding("n", "turn(1)", "next", show=False),
        Binding("N", "turn(-1)", "previous", show=False),
        Binding("equals_sign", "compare", "compare", show=False),
        Binding("x", "choose('exclude')", "leave out, split off", show=False),
        Binding("p", "choose('pin')", "pin", show=False),
        Binding("right_square_bracket", "request(1)", "next request", show=False),
        Binding("left_square_bracket", "request(-1)", "previous request", show=False),
        Binding("g", "source", "go to its turn", show=False),
        Binding("y", "copy", "copy", show=False),
    ]

    def __init__(
        self,
        ask: Ask,
        conversation_id: str,
        *,
        turn: int,
        last_turn: int,
        draft: str = "",
        window: str = "",
    ) -> None:
        super().__init__()
        self._ask = ask
        self._draft = draft
        self._conversation_id = conversation_id
        self._turn = turn
        self._window = window
        self._number = 0
        self._last = last_turn
        self.sent: SentRequest | None = None
        self._compared: ContextRecord | None = None
        """How it differs from the request before it, while that is shown."""
        self._folded: set[str] = set()
        self._title = Static("What was sent", classes="title", markup=False)
        self._note = Static("", id="sent-note", markup=False)
        self.rows = ContextRows(empty="loading …")
        self._keys = KeyBar(self)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._note
            yield self.rows
            yield self._keys

    def on_mount(self) -> None:
        """Fetch the request while the screen is already visible."""
        self.rows.focus()
        self._fetch()

    # -- drawing

    def _fetch(self) -> None:
        self.run_guarded(self._fill(), group="sent")

    async def _fill(self) -> None:
        self._compared = None
        self.sent = sent = await self._load(self._turn, self._number)
        self._turn, self._number, self._last = sent.record.turn_index, sent.number, sent.last_turn
        self._folded.clear()
        self._title.update(Content(plain_text(headline(sent))))
        self._note.update(plain_text(" ".join(filter(None, [warnings(sent.record), self._window]))))
        self._show()
        self.rows.action_move_end(-1)
        self._show_keys()

    async def _load(self, turn: int, number: int) -> SentRequest:
        if turn == self._last + 1 > 1:
            return await self._ask(FetchNext(conversation_id=self._conversation_id, text=self._draft))
        return await self._ask(FetchSent(conversation_id=self._conversation_id, turn_index=turn, number=number))

    @property
    def _shown_record(self) -> ContextRecord | None:
        if self._compared is not None:
            return self._compared
        return self.sent.record if self.sent is not None else None

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the items."""
        self.sent = self._compared = None
        self._title.update(Content(f"Turn {self._turn}" if self._turn else "What was sent"))
        self._note.update("")
        self.rows.show([], empty=plain_text(sentence))
        self._show_keys()

    def _show(self) -> None:
        record = self._shown_record
        if self.sent is not None and record is not None:
            empty = "nothing was sent before this message"
            if self._compared is not None:
                empty = "nothing came in or went out"
            self.rows.show(lines_of(record, self._folded, self.sent.chosen), empty=empty)

    def _show_keys(self) -> None:
        hints = [KeyHint("dismiss(None)", "esc", "back")]
        if self._turn > 1:
            hints.append(KeyHint("turn(-1)", "N", f"turn {self._turn - 1}"))
        if self._turn <= self._last:
            hints.append(
                KeyHint("turn(1)", "n", f"turn {self._turn + 1}" if self._turn < self._last else "next request")
            )
        if self.sent is not None and self.sent.count > 1:
            hints.append(KeyHint("request(1)", "[ ]", "request"))
        if self.sent is not None:
            hints += [KeyHint("choose('exclude')", "x", "leave out"), KeyHint("choose('pin')", "p", "pin")]
            hints.append(KeyHint("compare", "equals_sign", "compare", on=self._compared is not None))
        self._keys.show_keys([*hints, KeyHint("source", "g", "source"), KeyHint("copy", "y", "copy")])

    def _item(self) -> ContextItem | None:
        """Return the item at the cursor."""
        section, _, number = self.rows.chosen.removeprefix("s").partition(".")
        record = self._shown_record
        if record is None or not number:
            return None
        return record.sections[int(section)].items[int(number)]

    # -- keys

    def action_turn(self, by: int) -> None:
        """Go to the previous or next turn; after the newest one, to the next request."""
        newest = self._last + 1 if by > 0 else self._last
        wanted = min(max(self._turn + by, 1), max(newest, 1))
        if wanted != self._turn:
            self._turn, self._number = wanted, 0
            self._fetch()

    def action_request(self, by: int) -> None:
        """Show another request of this turn, wrapping around."""
        if self.sent is not None and self.sent.count > 1 and self._compared is None:
            self._number = (self.sent.number - 1 + by) % self.sent.count + 1
            self._fetch()

    def action_compare(self) -> None:
        """Show what came in and went out since the request before, or the whole request again."""
        if self._compared is not None:
            self._compared = None
            self._turned()
        elif self.sent is not None:
            self.run_guarded(self._compare(self.sent), group="sent")

    async def _compare(self, sent: SentRequest) -> None:
        turn = sent.record.turn_index
        if sent.number < 2 and turn < 2:
            raise RagforgeError("This is the first request: there is none to compare it with.")
        number, before = (sent.number - 1, turn) if sent.number > 1 else (0, turn - 1)
        earlier = await self._ask(FetchSent(conversation_id=self._conversation_id, turn_index=before, number=number))
        self._compared = compared(earlier.record, sent.record)
        by = sent.record.sent_tokens - earlier.record.sent_tokens
        self._turned(f" · {by:+,} tokens since turn {before}" if before != turn else f" · {by:+,} tokens")

    def _turned(self, difference: str = "") -> None:
        if self.sent is not None:
            self._title.update(Content(plain_text(headline(self.sent)) + difference))
            self._folded.clear()
            self._show()
            self.rows.action_move_end(-1)
            self._show_keys()

    def action_choose(self, choice: Choice) -> None:
        """Leave the chosen item out of the next requests, or pin it; the same key takes it back."""
        item = self._item()
        if self.sent is None or item is None:
            self._keys.show_note("Choose one of the items of a section.", seconds=SCREEN.key_note)
            return
        key = item_key(item, self._conversation_id)
        before = {one.key: "pin" if one.pinned else "exclude" for one in self.sent.chosen}.get(key)
        self.run_guarded(self._choose(item, "usual" if before == choice else choice), group="choice")

    async def _choose(self, item: ContextItem, choice: Choice) -> None:
        try:
            chosen = await self._ask(ChooseContext(conversation_id=self._conversation_id, item=item, choice=choice))
        except RagforgeError as error:
            self._keys.show_note(plain_text(error.info.sentence()), "$error", seconds=SCREEN.key_note)
            return
        if self.sent is not None:
            self.sent = msgspec.structs.replace(self.sent, chosen=chosen)
            self._show()
        self._keys.show_note(_CHOSEN[choice], seconds=SCREEN.key_note)

    def action_source(self) -> None:
        """Go to the source of the chosen item."""
        item = self._item()
        source = source_of(item, self._conversation_id) if item is not None else None
        if source is not None:
            self.dismiss(source)
        else:
            self._keys.show_note("This item does not come from a turn.", seconds=SCREEN.key_note)

    def action_copy(self) -> None:
        if self.sent is not None:
            self.app.copy_to_clipboard(context_text(self._shown_record or self.sent.record))
            self._keys.show_note("The request was sent to the clipboard.", seconds=SCREEN.key_note)

    def on_tree_list_folded(self, event: TreeList.Folded) -> None:
        """Open or close a section; from an item, go to its section."""
        event.stop()
        section, _, item = event.key.partition(".")
        if item:
            if event.wanted is False:
                self.rows.choose(section)
        elif event.wanted is not (section not in self._folded):
            self._folded.symmetric_difference_update({section})
            self._show()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Open or close a section, or show an item as it was sent."""
        event.stop()
        if "." not in event.key:
            self._folded.symmetric_difference_update({event.key})
            self._show()
        elif (item := self._item()) is not None:
            self._read(item)

    def _read(self, item: ContextItem) -> None:
        source = source_of(item, self._conversation_id)
        text = item.text

        async def load() -> tuple[str, list[Section]]:
            return item_headline(item), [Section(title="As it was sent", text=text, kind="prose")]

        def closed(action: str | None) -> None:
            if action == "source":
                self.dismiss(source)

        actions = {"g": ("source", "its turn")} if source is not None else {}
        self.app.push_screen(DetailScreen(item_headline(item), load, actions=actions), closed)
