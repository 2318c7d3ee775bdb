"""A program in a pseudo-terminal, with the times at which texts appear on it.

All times are `time.monotonic()`, which on Linux and macOS is the same clock in every process.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

import pyte

TIMEOUT = 120.0
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=$ ]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")


class PseudoTerminal:
    """A program in a terminal of its own.

    The terminal echoes nothing by itself: a letter that appears was drawn by the program.

    Attributes:
        pid: Process id of the program.
        started: When it was started.
        received: Number of bytes that the program has written.
    """

    def __init__(
        self, command: Sequence[str], *, cwd: str, env: Mapping[str, str], size: tuple[int, int] = (120, 40)
    ) -> None:
        columns, rows = size
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._drawn = b""
        self._ended = False
        self.received = 0
        self.started = time.monotonic()
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            flags = termios.tcgetattr(0)
            flags[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, flags)
            os.chdir(cwd)
            os.execve(command[0], list(command), dict(env))

    def type(self, text: str, *, pause: float = 0.0) -> float:
        """Press keys, with so many seconds after each; return when the last one was pressed."""
        if not pause:
            at = time.monotonic()
            os.write(self._end, text.encode())
            return at
        at = 0.0
        for letter in text:
            at = self.type(letter)
            self.idle(pause)
        return at

    def forget(self) -> None:
        """Let `wait_for` look only at what is drawn from now on."""
        self.idle(0.0)
        self._drawn = b""

    def wait_for(self, pattern: str) -> float:
        """Return when a text that matches the pattern had been drawn, or was on the screen.

        Of a text that differs little from what was there before, only the difference is drawn.

        Raises:
            TimeoutError: Nothing drawn in two minutes matches, or the program has ended.
        """
        wanted, on_screen = re.compile(pattern.encode()), re.compile(pattern)
        until = time.monotonic() + TIMEOUT
        while (left := until - time.monotonic()) > 0 and not self._ended:
            if wanted.search(_ESCAPES.sub(b"", self._drawn)) or on_screen.search("\n".join(self._screen.display)):
                return self._read_at
            self._take(left)
        words = _ESCAPES.sub(b"", self._drawn).decode("utf-8", "replace").split()
        raise TimeoutError(f"{pattern!r} was not drawn; the last words are: {' '.join(words[-200:])}")

    def idle(self, seconds: float) -> None:
        """Let time pass, and take in what is drawn so that the program never waits for a full terminal."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            if not self._take(left) and not left:
                return

    def quiet(self, seconds: float) -> None:
        """Wait until the program has written nothing for so many seconds, at most two minutes."""
        until, before = time.monotonic() + TIMEOUT, -1
        while self.received != before and time.monotonic() < until:
            before = self.received
            self.idle(seconds)

    def close(self, patience: float = 20.0) -> None:
        """Quit with ctrl+c twice; a program that does not end in so many seconds is killed."""
        until = time.monotonic() + patience
        while not self._gone():
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            if not self._ended:
                self.type("\x03")
            self.idle(0.1)
        os.close(self._end)

    def _gone(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid

    def _take(self, seconds: float) -> bool:
        if self._ended:
            time.sleep(min(seconds, 0.01))
            return False
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            read = os.read(self._end, 65_536)
        except OSError:
            read = b""
        self._read_at = time.monotonic()
        self._ended = not read
        self._drawn += read
        self._stream.feed(read)
        self.received += len(read)
        return True
