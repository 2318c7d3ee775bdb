"""Find in the open conversation: a line above the prompt, and steps from match to match, loaded or not.

The engine returns the turns with the text; the matches in a turn are found when it is loaded. Loaded when first used.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.requests.turns import FindText
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.host import FIND_BAR, Host
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.transcript.cursor import Spot

WATCH_SECONDS = 0.5
"""Interval for checking whether another conversation was opened, which ends the search."""


class FindBar(Horizontal):
    """The search text, and the place of the current match among all."""

    DEFAULT_CSS = """
    FindBar { height: 1; padding: 0 2; margin-top: 1; }
    FindBar #find-mark { width: auto; color: $accent; }
    FindBar Input { width: 1fr; background: $background; }
    FindBar #find-where { width: auto; max-width: 60%; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "step(1)", "Next", show=False),
        Binding("up,shift+enter", "step(-1)", "Previous", show=False),
        Binding("escape", "screen.escape", "Close", show=False),
        Binding("tab", "to_chat", "To the chat", show=False),
    ]

    class Closed(Message):
        """The search is over; the prompt has the keyboard."""

    def __init__(self, host: Host, text: str = "", *, focus: bool = True) -> None:
        super().__init__(id=FIND_BAR)
        self._take_focus = focus
        self._host = host
        self._session = host.session
        self._transcript = host.transcript
        self._conversation = host.session.state.conversation_id
        self._field = Input(text, placeholder="find in this conversation", compact=True, select_on_focus=False)
        self._where = Static(id="find-where", markup=False)
        self._turns: list[int] = []
        self._turn = 0
        self._spot: Spot | None = None
        self._origin = host.transcript.turn_in_view
        """The turn in view when typing started, or the last one stepped to. Each letter searches from there, so that
        the
        result does not depend on the speed of typing.
        """
        self._text = ""
        self._only_loaded = False
        self._pause: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out a label, the text and the place."""
        yield Static("find  ", id="find-mark", markup=False)
        yield self._field
        yield self._where

    def on_mount(self) -> None:
        """Take the focus; search for an initial text at once."""
        if self._take_focus:
            self._field.focus()
        self.set_interval(WATCH_SECONDS, self._check_conversation)
        if self._field.value:
            self._search()

    def _check_conversation(self) -> None:
        if self._session.state.conversation_id != self._conversation:
            self.close(keep_focus=not self._field.has_focus)

    def search_for(self, text: str) -> None:
        """Search for another text."""
        self._origin = self._transcript.turn_in_view
        self._field.value = text
        self._field.focus()

    def on_input_changed(self) -> None:
        """Search after a pause in typing; the initial text is searched already."""
        if self._field.value == self._text:
            return
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(SCREEN.settle, self._search)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next match."""
        event.stop()
        self.action_step(1)

    async def on_key(self, event: events.Key) -> None:
        """Use up and down for steps instead of moving in the field."""
        if event.key in ("up", "down", "shift+enter"):
            event.stop()
            event.prevent_default()
            self.action_step(1 if event.key == "down" else -1)

    def action_step(self, by: int) -> None:
        """Go to the next (1) or previous (-1) match."""
        if self._field.value != self._text or not self._turns:
            self._search()
        else:
            self._session.spawn(self._step(by), group="find")

    def action_to_chat(self) -> None:
        """Focus the chat; n and N continue the search there."""
        self._transcript.focus()

    def escape(self) -> bool:
        """End the search; the chat stays where it is."""
        self.close()
        return True

    def close(self, *, keep_focus: bool = False) -> None:
        """Remove the line; the prompt gets the focus, unless `keep_focus` is set."""
        self._transcript.highlight("")
        if not keep_focus:
            self._host.prompt.focus()
            self.post_message(self.Closed())
        self.remove()

    def _search(self) -> None:
        if self._pause is not None:
            self._pause.stop()
            self._pause = None
        self._text = self._transcript.finder.last_text = self._field.value
        self._session.spawn(self._find(self._text), group="find", exclusive=True)

    async def _find(self, text: str) -> None:
        transcript = self._transcript
        self._turns, self._spot, self._only_loaded = [], None, False
        transcript.highlight(text)
        if not text:
            self._where.update("")
            return
        found = transcript.finder.turns_with(text)
        self._show("searching …")
        try:
            conversation_id = self._session.state.conversation_id
            stored = await self._session.ask(FindText(conversation_id=conversation_id, text=text))
            found.update(stored)
        except RagforgeError:
            self._only_loaded = True
        if text != self._text:
            return
        self._turns = sorted(found)
        # The match before the first one at or after the turn in view: the next step goes to that.
        self._turn = max(
            (turn for turn in self._turns if turn < self._origin), default=self._turns[-1] if self._turns else 0
        )
        if self._turns:
            await self._go_to_turn(self._after(self._turn, 1), 1)
        else:
            self._show("not in the loaded turns; the graph is unavailable" if self._only_loaded else "no match")

    def _after(self, turn: int, by: int) -> int:
        """Return the next turn with a match, wrapping around."""
        at = self._turns.index(turn) if turn in self._turns else -1
        return self._turns[(at + by) % len(self._turns)]

    async def _step(self, by: int) -> None:
        if not self._turns:
            return
        spots = self._transcript.finder.spots(self._turn, self._text)
        if self._spot in spots:
            at = spots.index(self._spot) + by
            if 0 <= at < len(spots):
                self._go(spots, at)
                return
        await self._go_to_turn(self._after(self._turn, by), by)
        self._origin = self._turn

    async def _go_to_turn(self, turn: int, by: int) -> None:
        self._turn, self._spot = turn, None
        await self._host.navigator.show_turn(turn)
        spots = self._transcript.finder.spots(turn, self._text)
        if spots:
            self._go(spots, 0 if by > 0 else len(spots) - 1)
        else:
            self._show_place("")

    def _go(self, spots: list[Spot], at: int) -> None:
        self._spot = self._transcript.finder.show_spot(spots[at], self._text)
        self._show_place(f"line {at + 1} of {len(spots)} in " if len(spots) > 1 else "")

    def _show_place(self, within: str) -> None:
        """Show the place of the match: among the lines of its turn, and its turn among all."""
        turn = self._turns.index(self._turn) + 1
        turns = counted(len(self._turns), "loaded turn" if self._only_loaded else "turn")
        self._show(f"{within}turn {self._turn}, {turn} of {turns} · ↓↑ · esc")

    def _show(self, text: str) -> None:
        self._where.update(Content(f"  {plain_text(text)}"))
