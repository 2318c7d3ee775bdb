"""The end of the chat when its terminal is gone, also where SIGHUP is ignored.

`nohup`, some terminals and supervisors ignore that signal; then only reads and writes fail, in threads, and the rest of
the chat would wait forever. So a thread looks at the terminal from the start on. It ends the process without the event
loop, which may itself wait for a write to the terminal. The engine finds the end of its input and finishes alone.
"""

from __future__ import annotations

import os
import signal
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from ragforge_tui.tui.quiet_start import leave_terminal

LOOK_SECONDS = 1.0
HUNG_UP = 128 + signal.SIGHUP
"""Exit status, as a shell reports it for a process that SIGHUP has ended."""

_ending = threading.RLock()
_last_actions: list[Callable[[], None]] = []


def watch_terminal() -> None:
    """Let this process end once the terminal of its standard input is gone."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: hang_up())
    threading.Thread(target=_watch, name="hang-up", daemon=True).start()


def before_hang_up(action: Callable[[], None]) -> None:
    """Run a function before the process ends, in any thread."""
    _last_actions.append(action)


def hang_up() -> NoReturn:
    """End the process at once, from any thread: its terminal is gone."""
    with _ending:  # A second thread waits here for the end.
        for action in _last_actions:
            with suppress(Exception):
                action()
        leave_terminal()  # A signal may come from elsewhere, while it is still there.
        os._exit(HUNG_UP)


def _watch() -> None:
    with suppress(termios.error):
        while True:
            termios.tcgetattr(0)
            time.sleep(LOOK_SECONDS)
    hang_up()
