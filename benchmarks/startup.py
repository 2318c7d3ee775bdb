"""Start to the prompt, to first paint and to accepted typing, in a pseudo-terminal, against an empty Textual app.

    python -m benchmarks.startup [--runs N]

The runs of both apps alternate, so that a busy machine slows both. The prompt is there when it shows a key, which
happens before Textual is loaded; first paint and typing are Textual's own, in runs without such a key. The chat is the
very command, with the offline assistant and a graph that is not there, so that no server is left behind; its engine
starts meanwhile. `--version` is measured against bare python. Python's compiled files are made by a first run of each
and kept in a folder of this benchmark, as an installation has them.
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


def prompt(code: str) -> float:
    """Seconds until a key that is typed as soon as the terminal takes keys is seen on the screen."""
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


def _wait(terminal: int, seen_enough: object, since: float) -> float:
    seen = b""
    while time.perf_counter() - since < TIMEOUT:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if ready:
            seen += os.read(terminal, 65_536)
            if callable(seen_enough) and seen_enough(seen):
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
    pairs = [(start(EMPTY), start(CHAT)) for _ in range(runs)]
    prompts = [prompt(CHAT) for _ in range(runs)]
    command("-m", "ragforge_tui.cli", "--version")
    python = [command("-c", "pass") for _ in range(runs)]
    version = [command("-m", "ragforge_tui.cli", "--version") for _ in range(runs)]
    figures = {
        "prompt_ms": median_ms(prompts),
        "empty_paint_ms": median_ms([empty[0] for empty, _ in pairs]),
        "chat_paint_ms": median_ms([chat[0] for _, chat in pairs]),
        "empty_typed_ms": median_ms([empty[1] for empty, _ in pairs]),
        "chat_typed_ms": median_ms([chat[1] for _, chat in pairs]),
        "python_ms": median_ms(python),
        "version_ms": median_ms(version),
    }
    paint = statistics.median([chat[0] / empty[0] for empty, chat in pairs])
    typed = statistics.median([chat[1] / empty[1] for empty, chat in pairs])
    print(f"{'':28}{'first paint':>14}{'typing':>10}")
    print(f"{'empty Textual app':28}{figures['empty_paint_ms']:>11.0f} ms{figures['empty_typed_ms']:>7.0f} ms")
    print(f"{'ragforge-chat':28}{figures['chat_paint_ms']:>11.0f} ms{figures['chat_typed_ms']:>7.0f} ms")
    print(f"{'ratio (median of pairs)':28}{paint:>14.2f}{typed:>10.2f}")
    print(f"{'prompt shows a key':28}{figures['prompt_ms']:>11.0f} ms")
    print(f"{'--version':28}{figures['version_ms']:>11.0f} ms, bare python {figures['python_ms']:.0f} ms")
    rest = " ".join(f"{name}={value:.0f}" for name, value in figures.items())
    print(f"startup paint_ratio={paint:.2f} typed_ratio={typed:.2f} {rest}")


if __name__ == "__main__":
    main()
