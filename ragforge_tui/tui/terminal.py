"""Sequences written straight to the terminal: the clipboard (OSC 52), the bell and desktop notifications.

`copy_sequence` and `call_sequence` are pure.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any, Literal

from textual.app import App

from ragforge_tui.tui.drawing.lines import one_line

LONG_SECONDS = 20.0
"""After a turn this long the user may have left."""
BELL = "\x07"
_TITLE = "ragforge-chat"
_MAX_CHARS = 200
_OSC_9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty"})
_OSC_777 = ("foot", "rxvt")

Notify = Literal["auto", "bell", "off"]


def copy_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return OSC 52 for `text`, also in tmux's pass-through: tmux swallows a bare sequence unless configured."""
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{payload}\x07"
    if not env.get("TMUX"):
        return sequence
    # Both forms: the bare one serves `set-clipboard on`, the wrapped one `allow-passthrough on`.
    escaped = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{escaped}\x1b\\"


def call_sequence(text: str, notify: Notify, env: Mapping[str, str]) -> str:
    """Return the sequence that notifies the user with a text; empty for none.

    Inside a multiplexer it is the bell, which marks the window; a notification would be swallowed.
    """
    if notify == "off":
        return ""
    line = one_line(text)[:_MAX_CHARS]
    if notify == "bell" or env.get("TMUX") or env.get("STY"):
        return BELL
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if program in _OSC_9 or "kitty" in term or "ghostty" in term:
        # A leading number would be another command of some terminals.
        return f"\x1b]9;{_TITLE}: {line}{BELL}"
    if term.startswith(_OSC_777):
        return f"\x1b]777;notify;{_TITLE};{line.replace(';', ',')}{BELL}"
    return BELL


class Attention:
    """Notifies a user whose terminal reports that it lost the focus; a terminal that never reports stays silent."""

    def __init__(self, app: App[Any], notify: Notify) -> None:
        self._app = app
        self.notify = notify

    def call(self, text: str) -> None:
        """Notify the user, unless the terminal has the focus."""
        sequence = "" if self._app.app_focus else call_sequence(text, self.notify, os.environ)
        driver = self._app._driver
        if sequence and driver is not None:
            driver.write(sequence)

    def answer_finished(self, seconds: float) -> None:
        """Notify the user of an answer that took long."""
        if seconds > LONG_SECONDS:
            self.call("The answer is ready.")
