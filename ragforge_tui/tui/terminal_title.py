"""The terminal's own title and progress bar, so that one of ten tabs can be told from the others.

The title before the chat comes back at its end (see `chat_driver`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from textual.app import App

from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.session.state import EngineState

SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""XTWINOPS: push the title on the terminal's stack, and pop it."""
TITLE_CHARS = 60
_SIGNS = {"working": "◐", "waiting": "?", "ready": "✓", "idle": "●"}
_BUSY, _DONE = "\x1b]9;4;3\x07", "\x1b]9;4;0\x07"
"""OSC 9;4: progress without an end, and none."""

TitleState = Literal["working", "waiting", "ready", "idle"]
"""``ready``: an answer has come while the terminal did not have the focus."""


def title_sequence(state: TitleState, title: str, folder: str) -> str:
    """Return the sequence that sets the title, such as ``◐ Fix the retry · courier``."""
    name = folder.rstrip("/").rpartition("/")[2]
    parts = ("".join(filter(str.isprintable, one_line(part)))[:TITLE_CHARS].strip() for part in (title, name))
    words = " · ".join(filter(None, parts))
    return f"\x1b]2;{_SIGNS[state]} {words or 'ragforge-chat'}\x07"


def has_title(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal has a title; a Linux console would print it."""
    return environment.get("TERM", "") not in ("", "dumb", "linux")


def has_progress(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal shows progress; others would show a notification with two numbers."""
    if environment.get("TMUX") or environment.get("STY"):
        return False
    return bool(
        environment.get("WT_SESSION")
        or environment.get("ConEmuANSI") == "ON"
        or environment.get("TERM_PROGRAM") == "ghostty"
    )


class TerminalTitle:
    """Title and progress of one chat, written when they change."""

    def __init__(self, app: App[Any], environment: Mapping[str, str], *, shown: bool) -> None:
        self._app = app
        self._title = shown and has_title(environment)
        self._progress = shown and has_progress(environment)
        self._written = ""
        self._unseen = False
        self._worked = False

    def show(self, state: EngineState, *, waiting: bool) -> None:
        """Show the state of the chat.

        Args:
            waiting: Whether a question waits for the user.
        """
        working = state.busy
        if self._app.app_focus or working:
            self._unseen = False
        elif self._worked:
            self._unseen = True
        self._worked = working
        doing: TitleState = "waiting" if waiting else "working" if working else "ready" if self._unseen else "idle"
        title = state.conversation.title if state.conversation is not None else ""
        sequence = title_sequence(doing, title, state.folder) if self._title else ""
        if self._progress:
            sequence += _BUSY if working and not waiting else _DONE
        if sequence != self._written:
            self._written = sequence
            self._write(sequence)

    def again(self) -> None:
        """Write the title once more, after the terminal was given to another program."""
        self._write(self._written)

    def clear(self) -> None:
        """End the progress; the title comes back by itself."""
        if self._progress:
            self._write(_DONE)

    def _write(self, sequence: str) -> None:
        driver = self._app._driver
        if sequence and driver is not None:
            driver.write(sequence)
