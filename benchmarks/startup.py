"""Start to first paint and to accepted typing, in a pseudo-terminal, against an empty Textual app.

    python -m benchmarks.startup [--runs N]

The runs of both apps alternate, so that a busy machine slows both. The chat draws its prompt, and shows keys in it,
before Textual is loaded; this is `first paint` and `typing`, as from its second start on. `Textual` is the same once
Textual has drawn the whole screen, in runs without an earlier key. The chat is the very command, with the offline
assistant and a graph that is not there, so that no server is left behind; its engine starts meanwhile. `--version` is
measured against bare python. Python's compiled files are made by a first run of each and kept in a folder of this
benchmark, as an installation has them.
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
from pathlib import Path

MARK = b"zqx"
TEXTUAL = b"\x1b[?1004h"
"""Sent by Textual when it takes the terminal over."""
PLACEHOLDER = b"type / for"
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


def prompt(code: str) -> tuple[float, float]:
    """Seconds until the prompt is on the screen, and until a key that is typed as soon as it is taken is seen there."""
    pid, terminal, since = _begin(code)
    try:
        painted = _wait(terminal, lambda seen: PLACEHOLDER in seen, since)
    finally:
        _end(pid, terminal)
    pid, terminal, since = _begin(code)
    try:
        while termios.tcgetattr(terminal)[3] & termios.ICANON:
            time.sleep(0.0005)
        os.write(terminal, MARK)
        return painted, _wait(terminal, lambda seen: MARK in seen, since)
    finally:
        _end(pid, terminal)


def keep_first_screen(code: str, file: Path) -> None:
    """Start the chat, and let it keep its first screen for later starts."""
    pid, terminal, since = _begin(code)
    try:
        _wait(terminal, lambda _: file.exists(), since)
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
        measure(runs, Path(folder, "home"))


def measure(runs: int, home: Path) -> None:
    """All of it, printed."""
    start(EMPTY), start(CHAT)  # Warm the caches of the file system, compile.
    keep_first_screen(CHAT, home / "state" / "first_screens.json")
    rounds = [(start(EMPTY), prompt(CHAT), start(CHAT)) for _ in range(runs)]
    command("-m", "ragforge_tui.cli", "--version")
    python = [command("-c", "pass") for _ in range(runs)]
    version = [command("-m", "ragforge_tui.cli", "--version") for _ in range(runs)]
    figures: dict[str, float] = {}
    for n, name in enumerate(("empty", "chat", "textual")):
        figures[f"{name}_paint_ms"] = median_ms([one[n][0] for one in rounds])
        figures[f"{name}_typed_ms"] = median_ms([one[n][1] for one in rounds])
    ratios = {
        f"{what}_ratio{suffix}": statistics.median([one[n][m] / one[0][m] for one in rounds])
        for n, suffix in ((1, ""), (2, "_textual"))
        for m, what in enumerate(("paint", "typed"))
    }
    print(f"{'':28}{'first paint':>14}{'typing':>10}{'ratios (median)':>20}")
    print(f"{'empty Textual app':28}{figures['empty_paint_ms']:>11.0f} ms{figures['empty_typed_ms']:>7.0f} ms")
    for label, name, suffix in (("ragforge-chat", "chat", ""), ("ragforge-chat, Textual", "textual", "_textual")):
        print(
            f"{label:28}{figures[f'{name}_paint_ms']:>11.0f} ms{figures[f'{name}_typed_ms']:>7.0f} ms"
            f"{ratios[f'paint_ratio{suffix}']:>14.2f}{ratios[f'typed_ratio{suffix}']:>6.2f}"
        )
    print(f"{'--version':28}{median_ms(version):>11.0f} ms, bare python {median_ms(python):.0f} ms")
    rest = " ".join(f"{name}={value:.2f}" for name, value in ratios.items())
    print(f"startup {rest} " + " ".join(f"{name}={value:.0f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
