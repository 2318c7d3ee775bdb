"""From a key to its letter on the screen, in a real pseudo-terminal: ``python -m benchmarks.echo [--keys N]``.

The transcript with a text area below it, empty, with 5 000 turns, and while 300 tokens a second of mixed text, one
list, one table and one code block stream into it; against an empty Textual app in the same run, measured first and
last. The scenes take turns in rounds, so that a busy machine slows all. The letters are ones that stand nowhere else
on the screen, each used once, so that the echo cannot be mistaken.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import random
import select
import signal
import statistics
import struct
import sys
import termios
import time
from collections.abc import Sequence
from types import TracebackType

import psutil

from benchmarks.echo_app import SCENES, STREAMS

COLUMNS, LINES = 120, 40
LETTERS = "".join(chr(code) for code in (*range(0x0410, 0x0450), *range(0x0391, 0x03A2), *range(0x03B1, 0x03CA)))
WARM_UP = 10
PAUSE = (0.06, 0.18)
"""Seconds between keys, evenly spread, so that keys meet every phase of drawing."""
START_TIMEOUT = 60.0
KEY_TIMEOUT = 10.0


class Terminal:
    """A scene in a pseudo-terminal of its own process."""

    def __init__(self, scene: str) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.execv(sys.executable, [sys.executable, "-m", "benchmarks.echo_app", scene])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def __enter__(self) -> Terminal:
        self._until(b"\x1b[?1049h", START_TIMEOUT)
        self.idle(0.5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def echo(self, letter: str, timeout: float = KEY_TIMEOUT) -> float:
        """Milliseconds from writing a letter to reading it."""
        key = letter.encode()
        since = time.perf_counter()
        os.write(self._terminal, key)
        self._until(key, timeout)
        return (time.perf_counter() - since) * 1000

    def idle(self, seconds: float) -> None:
        """Read what is drawn, so that the app is never held up by a full terminal."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)

    def _until(self, mark: bytes, timeout: float) -> None:
        end, tail = time.perf_counter() + timeout, b""
        while (left := end - time.perf_counter()) > 0:
            tail += self._read(left)
            if mark in tail:
                return
            # A letter's bytes may come in two reads.
            tail = tail[-len(mark) :]
        raise TimeoutError(f"{mark!r} was not seen within {timeout:.0f} s")

    def _read(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self._terminal], [], [], timeout)
        return os.read(self._terminal, 65_536) if ready else b""


def latencies(scene: str, keys: int, chance: random.Random) -> list[float]:
    """Milliseconds of each key in a scene, after some to warm up."""
    letters = LETTERS[: WARM_UP + keys]
    with Terminal(scene) as terminal:
        times = []
        for number, letter in enumerate(letters):
            times.append(terminal.echo(letter, START_TIMEOUT if number == 0 else KEY_TIMEOUT))
            terminal.idle(chance.uniform(*PAUSE))
    return times[WARM_UP:]


def p95(times: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(times, n=100, method="inclusive")[94]


def wanted_and_stolen() -> tuple[float, float]:
    """Seconds the processors were wanted so far, and those of them a virtual machine's host gave to others."""
    times = psutil.cpu_times()
    stolen = getattr(times, "steal", 0.0)
    return times.user + times.system + stolen, stolen


def main(keys: int, rounds: int, seed: int) -> None:
    """Measure, print the table and the last line."""
    wanted, stolen = wanted_and_stolen()
    chance = random.Random(seed)
    times: dict[str, list[float]] = {scene: [] for scene in SCENES}
    for number in range(rounds):
        for scene in (*SCENES, "bare") if number == rounds - 1 else SCENES:
            times[scene] += latencies(scene, keys, chance)
    bare = statistics.median(times["bare"])
    figures: dict[str, float] = {}
    print(f"{'':28}{'keys':>6}{'median ms':>12}{'p95 ms':>10}{'ratio':>8}")
    for scene in SCENES:
        label = f"streaming: {scene}" if scene in STREAMS else f"transcript, {scene}"
        label = "empty Textual app" if scene == "bare" else label
        median, high = statistics.median(times[scene]), p95(times[scene])
        print(f"{label:28}{len(times[scene]):>6}{median:>12.1f}{high:>10.1f}{median / bare:>8.2f}")
        figures |= {f"{scene}_p50_ms": median, f"{scene}_p95_ms": high}
    wanted, stolen = (after - before for after, before in zip(wanted_and_stolen(), (wanted, stolen), strict=True))
    figures["stolen_percent"] = 100 * stolen / max(wanted, 0.01)
    print(f"The host gave {figures['stolen_percent']:.0f} % of the processor time that was wanted to others.")
    streaming = max(figures[f"{scene}_p95_ms"] for scene in STREAMS)
    ratios = " ".join(f"{scene}_ratio={figures[f'{scene}_p50_ms'] / bare:.2f}" for scene in SCENES if scene != "bare")
    rest = " ".join(f"{key}={value:.1f}" for key, value in figures.items())
    print(f"echo {ratios} streaming_p95_ms={streaming:.1f} {rest}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="From a key to its letter on the screen.")
    parser.add_argument(
        "--keys", type=int, default=80, help=f"in each scene and round, at most {len(LETTERS) - WARM_UP}"
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not 2 <= arguments.keys <= len(LETTERS) - WARM_UP:
        parser.error(f"--keys is from 2 to {len(LETTERS) - WARM_UP}")
    main(arguments.keys, arguments.rounds, arguments.seed)
