"""Textual's driver of the terminal, extended so that it takes over from the early prompt.

It passes no key on before the prompt has the focus, because the first ones would be lost.
"""

from __future__ import annotations

import os
import selectors
import threading
from codecs import getincrementaldecoder
from functools import partial
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.strip import Strip
from textual.widget import Widget

from ragforge_tui.tui.early_prompt import ALTERNATE_SCREEN, EarlyPrompt
from ragforge_tui.tui.hang_up import hang_up
from ragforge_tui.tui.terminal_answers import split_unfinished, without_answers

WAIT_SECONDS = 0.1
READ_BYTES = 4096
_SCREEN_START = "\x1b[1;1H"


class ChatDriver(LinuxDriver):
    """Driver that continues to read where the early prompt stopped, once Textual's prompt has the focus.

    Attributes:
        early: The early prompt, if there is one; `driver_after` sets it.
        first_screen: The newest drawing of the whole screen, recorded while `recording` is set.
        typed_before: Whether the early prompt has read any keys.
    """

    early: EarlyPrompt | None = None

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self.first_screen = ""
        self.typed_before = False
        self.recording = True
        self._typed = b""
        self._entering = False
        self._focused = threading.Event()

    def start_application_mode(self) -> None:
        """Take over from the early prompt; also called after the chat was suspended, when it has nothing left."""
        if self.early is not None:
            self._typed = self.early.hand_over()
            self.typed_before = self.typed_before or bool(self._typed)
            self._entering = self.early.on_screen and self.recording
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._entering = False
        if self.early is not None and self.early.attributes is not None:
            self.attrs_before = self.early.attributes  # Textual has found the raw mode of the early prompt.

    def write(self, data: str) -> None:
        """Write to the terminal, but do not enter the alternate screen twice: some terminals would clear it."""
        if self._entering and data == ALTERNATE_SCREEN:
            return
        if self.recording and data.startswith(_SCREEN_START) and data.count("\n") == self._app.size.height - 1:
            self.first_screen = data
        super().write(data)

    def prompt_focused(self) -> None:
        """Pass keys on from now on: the prompt has the focus."""
        self._focused.set()

    def run_input_thread(self) -> None:
        """Read keys until the driver stops, after parsing those that the early prompt has read."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        while not self._focused.wait(WAIT_SECONDS):
            if self.exit_event.is_set():
                return
        read, self._typed = self._typed, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            unfinished = b""
            while True:
                typed = without_answers(unfinished + read)
                typed, unfinished = split_unfinished(typed) if read else (typed, b"")
                if text := decode(typed):
                    for event in parser.feed(text):
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
                if self.exit_event.is_set():
                    return
                read = b""
                if selector.select(WAIT_SECONDS) and not (read := self._read()):
                    hang_up()

    def _read(self) -> bytes:
        """Return bytes from the terminal; none once it is gone."""
        try:
            return os.read(self.fileno, READ_BYTES)
        except OSError:
            return b""


def driver_after(early: EarlyPrompt | None) -> type[ChatDriver] | None:
    """Return the driver that takes over from an early prompt; None if the user has chosen another driver."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return None
    return type(ChatDriver.__name__, (ChatDriver,), {"early": early})


def keep_first_screen(app: App[Any], prompt: Widget) -> None:
    """Keep the first screen for the early prompt of the next start, unless it shows typed text."""
    driver = app._driver
    if not isinstance(driver, ChatDriver):
        return
    driver.recording = False
    drawn, driver.first_screen = driver.first_screen, ""
    if not drawn or driver.typed_before or driver.early is None or driver.early.attributes is None:
        return
    field = prompt.content_region
    save = partial(
        driver.early.save,
        drawn,
        row=field.y + 1,
        column=field.x + 1,
        room=field.width,
        text=_sequence(app, prompt.rich_style),
        cursor=_sequence(app, prompt.get_component_rich_style("text-area--cursor")),
    )
    threading.Thread(target=save, name="first-screen", daemon=True).start()


def _sequence(app: App[Any], style: Style) -> str:
    """Return the escape sequence that sets a style, after the filters of the app."""
    strip = Strip([Segment("x", style)])
    for line_filter in app.get_line_filters():
        strip = strip.apply_filter(line_filter, Color(0, 0, 0))
    return strip.render(app.console).partition("x")[0]
