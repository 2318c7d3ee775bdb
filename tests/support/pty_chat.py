"""`ragforge-chat` as a shell starts it, in the foreground of a terminal of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte

from tests.support.waiting import PATIENCE

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
TEXTUAL = b"\x1b[?1004h"
"""Sent by Textual when it takes the terminal over."""
SIZE = (30, 100)


class Start:
    """`ragforge-chat` as a shell starts it: in the foreground of its terminal.

    Args:
        ignore_hang_up: Ignore SIGHUP, as `nohup` and some supervisors do.
    """

    def __init__(self, home: Path, *arguments: str, term: str = "xterm-256color", ignore_hang_up: bool = False) -> None:
        self.home = home
        go, released = os.pipe()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.read(go, 1)  # Until the size is set.
            # Not as these tests were started, which may be with nohup.
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore_hang_up else signal.SIG_DFL)
            graph = {"RAGFORGE_MODEL": "offline", "NEO4J_URI": "bolt://127.0.0.1:9"}
            environment = {
                **os.environ,
                **graph,
                "COLUMNS": "",
                "LINES": "",
                "RAGFORGE_HOME": str(home),
                "TERM": term,
                "COLORTERM": "truecolor",
            }
            os.execve(sys.executable, [sys.executable, "-m", "ragforge_tui", *arguments], environment)
        self.resize(*SIZE)
        self.attributes = termios.tcgetattr(self.terminal)
        os.write(released, b"\n")
        os.close(go)
        os.close(released)
        self.written = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def raw(self) -> bool:
        lflag: int = termios.tcgetattr(self.terminal)[3]
        return not lflag & termios.ICANON

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def wait_until(self, ready: Callable[[], Any]) -> None:
        """Read what is written until `ready`."""
        until = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < until, self.written[-2000:]
            self.read(0.005)

    def read(self, seconds: float) -> bool:
        """Read what is written now; return False when the program has ended."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            read = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.written += read
        return bool(read)

    def wait_for(self, text: bytes) -> None:
        self.wait_until(lambda: text in self.written)

    def wait_for_shown(self, text: str) -> None:
        """Wait until a text stands on the screen; it may have been written in pieces, as only changed cells are."""
        self.wait_until(lambda: any(text in line for line in self._screen()))

    def _screen(self) -> list[str]:
        rows, columns = SIZE
        screen = pyte.Screen(columns, rows)
        pyte.ByteStream(screen).feed(self.written)
        return list(screen.display)

    def sent(self) -> list[str]:
        """The messages that were sent, from the history of the prompt."""
        return [
            sent["text"]
            for file in self.home.glob("state/history/*.jsonl")
            for sent in map(json.loads, file.read_text("utf-8").splitlines())
            if "text" in sent
        ]

    def end(self) -> int:
        """Wait for the end; return the status of the process."""
        status = self.ended_before()
        assert status is not None
        return status

    def ended_before(self, text: bytes | None = None) -> int | None:
        """Return the status of the process when it ends, or None when it has written the text first."""
        until = time.monotonic() + PATIENCE
        while self.read(0.1):
            assert time.monotonic() < until, self.written[-2000:]
            if text is not None and text in self.written:
                return None
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.0) and select.select([self.terminal], [], [], 0.0)[0]:
                    pass
                return status
        return os.waitpid(self.pid, 0)[1]

    def assert_restored(self) -> None:
        assert termios.tcgetattr(self.terminal) == self.attributes
        assert self.written.count(ENTER) == self.written.count(LEAVE)
        if LEAVE in self.written:
            assert self.written.rfind(b"\x1b[?25h") >= self.written.rfind(b"\x1b[?25l")
            assert self.written.rfind(b"\x1b[?2004l") >= self.written.rfind(b"\x1b[?2004h")


def close(started: Start) -> None:
    """Kill what still runs and let go of the terminal."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(started.pid, signal.SIGKILL)
        os.waitpid(started.pid, 0)
    os.close(started.terminal)
