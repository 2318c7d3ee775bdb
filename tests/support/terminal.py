"""The real program in a pseudo-terminal: keys go in, what it drew comes out as text."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import psutil
import pyte

from ragforge_tui.shared.sanitize import plain_text
from tests.support.waiting import PATIENCE


class Terminal:
    """`ragforge-chat`, or another module, with its arguments in a terminal of its own."""

    def __init__(
        self,
        arguments: list[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        size: tuple[int, int] = (120, 40),
        module: str = "ragforge_tui",
    ) -> None:
        self._master, slave = pty.openpty()
        columns, rows = size
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)},
            start_new_session=True,
        )
        os.close(slave)
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = bytearray()
        """Every byte the terminal was sent."""
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            read = os.read(self._master, 65536)
            self.written += read
            self._stream.feed(read)
        except OSError:
            asyncio.get_running_loop().remove_reader(self._master)

    @property
    def drawn(self) -> str:
        """Everything drawn so far, without its escape sequences: only what differed from what was shown before."""
        return plain_text(self.written.decode("utf-8", "replace"))

    @property
    def shown(self) -> str:
        """What the screen shows now."""
        return "\n".join(self._screen.display)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    async def wait_for(self, text: str) -> None:
        """Wait until a text is shown, or was drawn."""
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in self.shown and text not in self.drawn:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{text!r} was never shown; what is:\n{self.shown}") from None

    def engine(self) -> psutil.Process:
        """The engine's process."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if "ragforge_tui.engine.child" in child.cmdline():
                return child
        raise AssertionError("no engine runs")

    def kill(self) -> None:
        """kill -9 of the screen."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End what is left and let go of the terminal."""
        asyncio.get_running_loop().remove_reader(self._master)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
        os.close(self._master)
