"""The terminal while the chat starts: keys are not echoed, and wait in it until the prompt reads them.

However the process ends, except by SIGKILL or SIGQUIT, the terminal is left as it was. Imports the standard library
only, because the chat calls `silence` before it imports anything else.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import termios
from contextlib import suppress
from types import FrameType
from typing import Any

WRITE_SECONDS = 1.0
"""Longest wait for a terminal that takes nothing, such as one that is stopped; SIGTERM must end the chat there too."""
INTERRUPTED = 130
"""Exit status after ctrl+c."""
_LEAVE_TEXTUAL = (
    "\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[?2048l\x1b[?7h"
    "\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h\x1b[23;2t"
)
"""Ends the modes that Textual sets and restores the title, as nobody else does when a signal ends the process."""


class _Terminal:
    """What has to be restored."""

    before: list[Any] | None = None
    textual = False


_terminal = _Terminal()


def silence() -> None:
    """Let the terminal keep what is typed, unless this process is not in its foreground."""
    try:
        if not (os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp()):
            return
    except OSError:
        return
    # Registered first, so that an interrupt at any later line cannot leave the terminal in raw mode.
    atexit.register(_restore)
    _terminal.before = termios.tcgetattr(0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    termios.tcsetattr(0, termios.TCSANOW, _raw(_terminal.before))


def before_start() -> list[Any] | None:
    """Return the attributes of the terminal before `silence`; None if they were not changed."""
    return _terminal.before


def textual_draws(draws: bool) -> None:
    """Note whether Textual has taken over the screen."""
    _terminal.textual = draws


def leave_terminal() -> None:
    """Leave the terminal as it was before the chat."""
    if _terminal.textual:
        _write(_LEAVE_TEXTUAL.encode())
    _restore()


def _restore() -> None:
    if _terminal.before is not None:
        with suppress(termios.error):  # The terminal is gone.
            termios.tcsetattr(0, termios.TCSANOW, _terminal.before)


def _end(number: int, _: FrameType | None) -> None:
    """Restore the terminal and end the process at once.

    A KeyboardInterrupt instead would be raised inside half-imported modules.
    """
    leave_terminal()
    if number == signal.SIGINT:
        os._exit(INTERRUPTED)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _write(data: bytes) -> None:
    with suppress(OSError):
        while data and select.select([], [1], [], WRITE_SECONDS)[1]:
            data = data[os.write(1, data) :]


def _raw(attributes: list[Any]) -> list[Any]:
    """Return the attributes that Textual sets, except that ctrl+c still interrupts."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, characters = attributes
    iflag &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
    lflag &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    characters = list(characters)
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    characters[termios.VSUSP] = characters[termios.VQUIT] = os.fpathconf(0, "PC_VDISABLE").to_bytes(1, "big")
    return [iflag, oflag, cflag, lflag, ispeed, ospeed, characters]
