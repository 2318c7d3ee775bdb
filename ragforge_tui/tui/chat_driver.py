"""Textual's driver of the terminal: pastes are safe, its answers are dropped, and the chat ends once it is closed.

It leaves the terminal as it was before `quiet_start`, not as Textual finds it.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from ragforge_tui.tui.hang_up import hang_up
from ragforge_tui.tui.quiet_start import before_start, textual_draws
from ragforge_tui.tui.safe_pastes import SafePastes
from ragforge_tui.tui.shown_cells import ShownCells
from ragforge_tui.tui.terminal_answers import split_unfinished, without_answers
from ragforge_tui.tui.terminal_title import RESTORE_TITLE, SAVE_TITLE

WAIT_SECONDS = 0.1
READ_BYTES = 4096


class ChatDriver(LinuxDriver):
    """Driver of the chat.

    Attributes:
        shown: What the terminal shows.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # GNU Screen sets STY, whatever its configuration calls the terminal; it does not erase in colour.
        self.shown = ShownCells("" if "STY" in os.environ else os.environ.get("TERM", ""))

    def start_application_mode(self) -> None:
        """Take over the terminal; also called after the chat was suspended."""
        self.shown.forget()
        textual_draws(True)
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.attrs_before = before_start() or self.attrs_before
        self.write(SAVE_TITLE)

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        self.write(RESTORE_TITLE)
        super().stop_application_mode()
        textual_draws(False)

    def run_input_thread(self) -> None:
        """Read keys until the driver stops."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        pastes = SafePastes()
        read = unfinished = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                typed = without_answers(unfinished + pastes.feed(read))
                typed, unfinished = split_unfinished(typed) if read else (typed, b"")
                if text := decode(typed):
                    for event in parser.feed(text):
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
                read = b""
                if selector.select(WAIT_SECONDS) and not (read := self._read()):
                    hang_up()

    def _read(self) -> bytes:
        """Return bytes from the terminal; none once it is gone."""
        try:
            return os.read(self.fileno, READ_BYTES)
        except OSError:
            return b""
