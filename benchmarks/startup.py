"""Start to first paint and to accepted typing, in a pseudo-terminal, against an empty Textual app.

    python -m benchmarks.startup [--runs N]

The runs of both apps alternate, so that a busy machine slows both. `typing` is the time until letters are on the screen
that were typed as soon as the terminal keeps them for the app (`typed early`), or once the screen was drawn (`typed`).
The chat is the very command, with the offline assistant and a graph that is not there, so that no server is left
behind; its engine starts meanwhile. `--version` is measured against bare python. Python's compiled files are made by a
first run of each and kept in a folder of this benchmark, as an installation has them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable

MARK = b"zqx"
TEXTUAL = b"\x1b[?1004h"
"""Sent by Textual when it takes the terminal over."""
TIMEOUT = 60.0
EMPTY = """
from textual.app import App
from textual.widgets import Input
class Empty(App):
    def compose(self):
        yield Input()
Empty().run()
"""
CHAT = """
import sys
from ragforge_tui.cli import main
sys.argv = ["ragforge-chat"]
main()
"""


def start(code: str) -> tuple[float, float]:
    """Seconds until the first frame of Textual, and until a typed word is seen on the screen."""
    pid, terminal, since = _begin(code)
    try:
        painted = _wait(terminal, lambda seen: len(seen.partition(TEXTUAL)[2]) > 2_000, since)
        os.write(terminal, MARK)
        # The letters may be drawn one by one: the last one is what counts.
        typed = _wait(terminal, lambda seen: MARK[-1:] in seen, since)
    finally:
        _end(pid, terminal)
    return painted, typed


def early(code: str) -> float:
    """Seconds until letters are seen that are typed as soon as the terminal does not echo them."""
    pid, terminal, since = _begin(code)
    try:
        while termios.tcgetattr(terminal)[3] & termios.ICANON:
            time.sleep(0.0005)
        os.write(terminal, MARK)
        return _wait(terminal, lambda seen: MARK in seen, since)
    finally:
        _end(pid, terminal)


def _begin(code: str) -> tuple[int, int, float]:
    """Start a process in a terminal; return its id, the terminal and the time of its exec."""
    ready, go = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.read(ready, 1)  # Until the terminal has its size.
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS="", LINES="")
        os.execv(sys.executable, [sys.executable, "-c", code])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    since = time.perf_counter()
    os.write(go, b"\n")
    os.close(go)
    os.close(ready)
    return pid, terminal, since


def _end(pid: int, terminal: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)


def _wait(terminal: int, seen_enough: Callable[[bytes], bool], since: float) -> float:
    seen = b""
    while time.perf_counter() - since < TIMEOUT:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if ready:
            seen += os.read(terminal, 65_536)
        if seen_enough(seen):
            return time.perf_counter() - since
    raise TimeoutError(f"nothing to see after {TIMEOUT:.0f} s: {seen[-200:]!r}")


def command(*arguments: str) -> float:
    """Seconds of a whole process."""
    since = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - since


def median_ms(values: list[float]) -> float:
    """In milliseconds."""
    return statistics.median(values) * 1_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        os.environ |= {
            "RAGFORGE_HOME": f"{folder}/home",
            "RAGFORGE_MODEL": "offline",
            "NEO4J_URI": "bolt://127.0.0.1:9",
        }
        measure(runs)


def measure(runs: int) -> None:
    """All of it, printed."""
    start(EMPTY), start(CHAT)  # Warm the caches of the file system, compile.
    rounds = [(start(EMPTY), start(CHAT), early(CHAT)) for _ in range(runs)]
    command("-m", "ragforge_tui.cli", "--version")
    python = [command("-c", "pass") for _ in range(runs)]
    version = [command("-m", "ragforge_tui.cli", "--version") for _ in range(runs)]
    print(f"{'':28}{'first paint':>14}{'typed':>10}{'typed early':>14}")
    empty, chat = ([one[n] for one in rounds] for n in range(2))
    for label, times, last in (
        ("empty Textual app", empty, ""),
        ("ragforge-chat", chat, f"{median_ms([one[2] for one in rounds]):>11.0f} ms"),
    ):
        paint, typed = (median_ms([one[n] for one in times]) for n in range(2))
        print(f"{label:28}{paint:>11.0f} ms{typed:>7.0f} ms{last}")
    ratio = statistics.median(own[0] / other[0] for own, other in zip(chat, empty, strict=True))
    print(f"{'first paint, ratio (median)':28}{ratio:>11.2f}")
    print(f"{'--version':28}{median_ms(version):>11.0f} ms, bare python {median_ms(python):.0f} ms")


if __name__ == "__main__":
    main()
