"""Type-ahead: keys take effect in the order they were typed, even while the focus is moving.

Base of the app. The focused field takes in a letter at once, but the event of a key with a binding bubbles from widget
to widget up to the app before its command runs, and later letters would overtake it. So a field's own keys, such as
backspace, run in the field's message queue, and after other keys everything typed is buffered here until they have run.
A pane or a screen needs a moment to open; letters typed meanwhile belong to it and are buffered too.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.widget import Widget

from ragforge_tui.tui.alt_keys import give_letter
from ragforge_tui.tui.limits import SCREEN

POLL_SECONDS = 0.005
QUIET_POLLS = 50
"""A finished command that has not moved the focus for this many checks is not going to."""
PALETTE_KEY = "ctrl+p"
FOCUS_KEYS = frozenset({"tab", "shift+tab"})
SCROLLS = ("scroll_", "page_", "cursor_page_")
"""Actions that every widget has for keys; if there is nothing to scroll, its parents get them."""
AT_ONCE = frozenset({"ctrl+c", "ctrl+q"})
"""Keys that are never buffered: stop and quit."""


class TypeAheadApp(App[str]):
    """An app that finishes a key that moves the focus before it handles the next one.

    Attributes:
        opening_keys: Keys of commands that move the focus elsewhere, a moment later.
    """

    @dataclass
    class Passed(Message):
        """Follows a key while it bubbles: when it arrives, the key has run."""

        key: str
        before: Widget | None
        again: bool = False

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self.opening_keys: frozenset[str] = frozenset({PALETTE_KEY})
        self._held: deque[events.Key | events.Paste] = deque()
        self._holds = self._holding = 1
        """Number of the active hold, 0 for none; a late end of an earlier hold has no effect. The first one waits for
        the first focus."""
        self._opening = False
        """Whether the held key opens something."""
        self._requested_before = 0
        """Number of commands requested before the held key."""
        self._commands_requested = 0
        self._commands_running = 0
        self.last_key = 0.0
        """Monotonic time of the last key."""
        self.key_gap = math.inf
        """Seconds between the last two keys."""

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, or buffer it until the focus has moved."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        now = monotonic()
        self.key_gap, self.last_key = now - self.last_key, now
        if len(self.screen_stack) == 1:
            give_letter(event, self.screen)
        if (self._holding or self._held) and not (isinstance(event, events.Key) and event.key in AT_ONCE):
            self._held.append(event)
        else:
            await self._give(event)

    async def _give(self, event: events.Key | events.Paste) -> None:
        if not isinstance(event, events.Key):
            await super().on_event(event)
            return
        moves, passes = self._moves(event), not event.is_printable and self.in_field
        if passes and not moves and self._run_in_field(event.key):
            return
        if not moves and not passes:
            await super().on_event(event)
            return
        self._holds += 1
        self._holding = hold = self._holds
        self._opening = moves and event.key in self.opening_keys
        self._requested_before = self._commands_requested
        self.set_timer(SCREEN.type_ahead, lambda: self._end_hold(hold))
        before = self.focused
        passed = self.Passed(event.key, before)
        await super().on_event(event)
        (self.focused or self.screen).post_message(passed)
        if not moves:
            self.set_timer(POLL_SECONDS, lambda: self._until_left(before, hold))

    @property
    def in_field(self) -> bool:
        """Whether letters are typed into a text field."""
        return self.focused is not None and self.focused.check_consume_key("a", "a")

    def _run_in_field(self, key: str) -> bool:
        """Let the field handle its own key, after the letters before it."""
        field = self.focused
        bound = self.screen.active_bindings.get(key)
        if key in AT_ONCE and not getattr(field, "selected_text", ""):
            return False  # A field of a dialog copies with ctrl+c, which closes the dialog where nothing is selected.
        if field is None or bound is None or bound.node is not field or not bound.enabled:
            return False
        if bound.binding.action.startswith(SCROLLS):
            return False
        return field.call_later(self.run_action, bound.binding.action, field)

    def _moves(self, event: events.Key) -> bool:
        key = event.key
        if key in FOCUS_KEYS or (key in self.opening_keys and len(self.screen_stack) == 1):
            return True
        return (self.letters_move and event.is_printable) or (self.enter_moves and key == "enter")

    def first_field_focused(self) -> None:
        """Handle what was typed before anything had the focus."""
        self._end_hold(1)

    @property
    def letters_move(self) -> bool:
        """Whether a printable key moves the focus now."""
        return False

    @property
    def enter_moves(self) -> bool:
        return False

    def hold_until_moved(self) -> None:
        """Buffer keys until the focus has moved, since the current key opens something."""
        self._opening = True

    def command_requested(self) -> None:
        """Note that a key or the prompt runs a command."""
        self._commands_requested += 1

    @contextmanager
    def command_running(self) -> Iterator[None]:
        """Note while a command runs: it may still move the focus."""
        self._commands_running += 1
        try:
            yield
        finally:
            self._commands_running -= 1

    def on_type_ahead_app_passed(self, event: Passed) -> None:
        """Continue once the key has run; what it opens may not be visible yet."""
        event.stop()
        hold = self._holding
        if self._opening and (self._commands_requested > self._requested_before or event.key == PALETTE_KEY):
            self._until_moved(event.before, hold)
        elif not event.again:
            # The key may have posted a focus request: queue behind it.
            (event.before or self.screen).post_message(self.Passed(event.key, event.before, again=True))
        else:
            self.call_later(self._end_hold, hold)  # Behind the change of focus, which is called later too.

    def _until_moved(self, before: Widget | None, hold: int, quiet: int = 0) -> None:
        if not self.screen_stack:
            return  # The app is closing.
        # While a screen opens nothing has the focus: that does not count as quiet.
        still = before is not None and self.focused is before and not self._commands_running
        quiet = quiet + 1 if still else 0
        if self.focused not in (before, None) or quiet > QUIET_POLLS:
            self._end_hold(hold)
        elif self._holding == hold:
            self.set_timer(POLL_SECONDS, lambda: self._until_moved(before, hold, quiet))

    def _until_left(self, before: Widget | None, hold: int) -> None:
        """End the hold when the field has closed: it may have taken the message after the key with it."""
        if self._holding == hold and self.screen_stack:
            if self.focused is before:
                self.set_timer(POLL_SECONDS, lambda: self._until_left(before, hold))
            else:
                self._end_hold(hold)

    def _end_hold(self, hold: int) -> None:
        if hold and hold == self._holding:
            self._holding = 0
            self.call_later(self._give_held)

    async def _give_held(self) -> None:
        """Handle the buffered keys in the app's message queue, where no newer key can come in between."""
        while self._held and not self._holding:
            await self._give(self._held.popleft())
