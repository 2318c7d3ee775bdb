"""Keys do what they do in the order they were typed, also where one takes the keyboard elsewhere.

The base of the chat's app. A letter is taken in by the field that has the keyboard, but a key that means something
travels from widget to widget up to the app before its command runs, and letters behind it would overtake it: so a
field's own keys, such as backspace, run in its own line of work, and behind other keys what is typed waits here until
they are through. And a pane or a picker needs a moment until it stands; by then the next letters would have gone to
the widget that is left, so they wait for that too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from textual import events
from textual.app import App
from textual.message import Message
from textual.widget import Widget

HOLD_SECONDS = 3.0
"""Nothing that is typed waits longer, whatever became of the key before it."""
LOOK_SECONDS = 0.005
QUIET_LOOKS = 50
"""A command that is done and has moved nothing when it was looked at so often since moves nothing any more."""
PALETTE_KEY = "ctrl+p"
FOCUS_KEYS = frozenset({"tab", "shift+tab"})
SCROLLS = ("scroll_", "page_")
"""Actions every widget has for keys; where there is nothing to scroll, those above it are asked."""
AT_ONCE = frozenset({"ctrl+c", "ctrl+q"})
"""Stopping and leaving wait for nothing."""


class TypeAheadApp(App[str]):
    """An app in which a key that moves the focus is done before the next one is given away.

    Attributes:
        opening_keys: Keys whose command opens something that takes the keyboard, a moment later.
    """

    @dataclass
    class Passed(Message):
        """Follows a key on its way up: when it arrives, the key has done what it does."""

        key: str
        before: Widget | None
        again: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.opening_keys: frozenset[str] = frozenset({PALETTE_KEY})
        self._held: deque[events.Key | events.Paste] = deque()
        self._holding = 0
        """The number of the hold that is on, 0 for none; a late end of an earlier one ends nothing."""
        self._opening = False
        """Whether the key that is held for turned out to open something."""
        self._holds = 0
        self._asked_before = 0
        """How many commands were asked for when the key that is held for was given away."""
        self._commands_asked = 0
        self._commands_running = 0
        self.last_key = 0.0
        """When a key came last, by the monotonic clock."""

    async def on_event(self, event: events.Event) -> None:
        """Give an event to who it is for, or keep it until the keyboard is where it is going."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self.last_key = monotonic()
        if (self._holding or self._held) and not (isinstance(event, events.Key) and event.key in AT_ONCE):
            self._held.append(event)
        else:
            await self._give(event)

    async def _give(self, event: events.Key | events.Paste) -> None:
        if not isinstance(event, events.Key):
            await super().on_event(event)
            return
        moves, passes = self._moves(event), not event.is_printable and self._in_field
        if passes and not moves and self._run_in_field(event.key):
            return
        if not moves and not passes:
            await super().on_event(event)
            return
        self._holds += 1
        self._holding = hold = self._holds
        self._opening = moves and event.key in self.opening_keys
        self._asked_before = self._commands_asked
        self.set_timer(HOLD_SECONDS, lambda: self._end_hold(hold))
        before = self.focused
        passed = self.Passed(event.key, before)
        await super().on_event(event)
        (self.focused or self.screen).post_message(passed)
        if not moves:
            self.set_timer(LOOK_SECONDS, lambda: self._until_left(before, hold))

    @property
    def _in_field(self) -> bool:
        """Whether letters are written into what has the keyboard."""
        return self.focused is not None and self.focused.check_consume_key("a", "a")

    def _run_in_field(self, key: str) -> bool:
        """Let the field do what its own key means, behind the letters that came before."""
        field = self.focused
        bound = self.screen.active_bindings.get(key)
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

    @property
    def letters_move(self) -> bool:
        """Whether a letter, or any other sign, takes the keyboard elsewhere now."""
        return False

    @property
    def enter_moves(self) -> bool:
        """Whether Enter may take the keyboard elsewhere now."""
        return False

    def hold_until_moved(self) -> None:
        """What the key that runs now has begun takes the keyboard: what is typed behind the key waits for that."""
        self._opening = True

    def command_requested(self) -> None:
        """A key, or what was typed, runs a command."""
        self._commands_asked += 1

    @contextmanager
    def command_running(self) -> Iterator[None]:
        """Around a command: until it is done it may still take the keyboard."""
        self._commands_running += 1
        try:
            yield
        finally:
            self._commands_running -= 1

    def on_type_ahead_app_passed(self, event: Passed) -> None:
        """The key has run; what it opens may still be on its way."""
        event.stop()
        hold = self._holding
        if self._opening and (self._commands_asked > self._asked_before or event.key == PALETTE_KEY):
            self._until_moved(event.before, hold)
        elif not event.again:
            # What the key did may have been to ask for the focus by a message of its own: this one goes behind it.
            (event.before or self.screen).post_message(self.Passed(event.key, event.before, again=True))
        else:
            self.call_later(self._end_hold, hold)  # Behind the change of focus, which is called later too.

    def _until_moved(self, before: Widget | None, hold: int, quiet: int = 0) -> None:
        if not self.screen_stack:
            return  # The app is closing.
        # Nothing has the focus while a screen comes up: that is no quiet.
        still = before is not None and self.focused is before and not self._commands_running
        quiet = quiet + 1 if still else 0
        if self.focused not in (before, None) or quiet > QUIET_LOOKS:
            self._end_hold(hold)
        elif self._holding == hold:
            self.set_timer(LOOK_SECONDS, lambda: self._until_moved(before, hold, quiet))

    def _until_left(self, before: Widget | None, hold: int) -> None:
        """A key that closes its field may take the message behind it along."""
        if self._holding == hold and self.screen_stack:
            if self.focused is before:
                self.set_timer(LOOK_SECONDS, lambda: self._until_left(before, hold))
            else:
                self._end_hold(hold)

    def _end_hold(self, hold: int) -> None:
        if hold and hold == self._holding:
            self._holding = 0
            self.call_later(self._give_held)

    async def _give_held(self) -> None:
        """In the app's own line of work, where no newer key can come in between."""
        while self._held and not self._holding:
            await self._give(self._held.popleft())
