"""Calling the person back to a terminal they have left: when something waits for them, or a long answer is there.

Only while the terminal says that it is not focused; one that never says so is never rung. What is written is the
bell, or a desktop notification where the terminal is known to have them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from ragforge_tui.text import plain_text

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

LONG_SECONDS = 20.0
"""A turn that took this long is one a person may have walked away from."""
BELL = "\x07"
_TITLE = "ragforge-chat"
_MAX_CHARS = 200
_OSC_9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty"})
_OSC_777 = ("foot", "rxvt")

Notify = Literal["auto", "bell", "off"]


def call_sequence(text: str, notify: Notify, env: Mapping[str, str]) -> str:
    """What is written to the terminal to say a text; empty for nothing.

    Inside a multiplexer it is the bell, which that shows at the window; a notification would be swallowed.
    """
    if notify == "off":
        return ""
    said = " ".join(plain_text(text).split())[:_MAX_CHARS]
    if notify == "bell" or env.get("TMUX") or env.get("STY"):
        return BELL
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if program in _OSC_9 or "kitty" in term or "ghostty" in term:
        # A number first would be another command of some terminals.
        return f"\x1b]9;{_TITLE}: {said}{BELL}"
    if term.startswith(_OSC_777):
        return f"\x1b]777;notify;{_TITLE};{said.replace(';', ',')}{BELL}"
    return BELL


class Attention:
    """Calls the person of one chat screen."""

    def __init__(self, app: ChatApp, notify: Notify) -> None:
        self._app = app
        self.notify = notify

    def call(self, text: str) -> None:
        """Say something to a person who is elsewhere."""
        sequence = "" if self._app.app_focus else call_sequence(text, self.notify, os.environ)
        driver = self._app._driver
        if sequence and driver is not None:
            driver.write(sequence)

    def turn_ended(self, started: float | None) -> None:
        """A turn ended by itself; `started` is when, by the app's clock."""
        if started is not None and self._app.clock() - started > LONG_SECONDS:
            self.call("The answer is there.")
