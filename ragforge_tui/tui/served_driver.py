"""Textual's driver of a browser, which makes pastes safe and ends the chat once its server is gone.

`ragforge-chat serve` starts each chat with it: keys come through a pipe, and what is drawn goes back the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual import events
from textual.drivers._byte_stream import ByteStream
from textual.drivers._input_reader import InputReader
from textual.drivers.web_driver import WebDriver

from ragforge_tui.tui.hang_up import hang_up
from ragforge_tui.tui.safe_pastes import SafePastes

KEYS = "D"
"""Type of the packets that hold what is typed."""
SIZE_BYTES = 4


class SafePackets(InputReader):
    """The server's packets, with safe pastes."""

    def __iter__(self) -> Iterator[bytes]:
        packets, pastes = ByteStream(), SafePastes()
        for read in super().__iter__():
            safe = b""
            for kind, payload in packets.feed(read) if read else [(KEYS, b"")]:
                content = pastes.feed(payload) if kind == KEYS else payload
                if content:
                    safe += kind.encode() + len(content).to_bytes(SIZE_BYTES, "big") + content
            yield safe


class ServedDriver(WebDriver):
    """Driver of a chat in a browser."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._input_reader = SafePackets()

    def start_application_mode(self) -> None:
        """Take over the screen, with the focus: Textual waits for the browser to report it, which it rarely does."""
        super().start_application_mode()
        self._app.call_later(self._app.post_message, events.AppFocus())

    def run_input_thread(self) -> None:
        """Read keys until the driver stops, or its pipe ends."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            hang_up()
