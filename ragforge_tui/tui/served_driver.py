"""Textual's driver of a browser, which ends the chat once its server is gone.

`ragforge-chat serve` starts each chat with it: keys come through a pipe, and what is drawn goes back the same way.
"""

from __future__ import annotations

from textual import events
from textual.drivers.web_driver import WebDriver

from ragforge_tui.tui.hang_up import hang_up


class ServedDriver(WebDriver):
    """Driver of a chat in a browser."""

    def start_application_mode(self) -> None:
        """Take over the screen, with the focus: Textual waits for the browser to report it, which it rarely does."""
        super().start_application_mode()
        self._app.call_later(self._app.post_message, events.AppFocus())

    def run_input_thread(self) -> None:
        """Read keys until the driver stops, or its pipe ends."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            hang_up()
