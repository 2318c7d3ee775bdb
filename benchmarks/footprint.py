"""Memory and idle CPU of the program: ``python -m benchmarks.footprint [--turns 5000] [--idle 20]``.

The screen's process in a pseudo-terminal, against an empty Textual app in the same run: before the first message, with
a stored conversation resumed, and with all of its turns loaded in the transcript (the scene of `benchmarks.echo`).
Beside it every process the chat started, the embedded graph's server among them, summed as what each adds to the
machine's use (PSS), and the CPU time all of them take while nothing happens. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.resume import conversation_of
from benchmarks.startup import CHAT, EMPTY
from ragforge_tui.export import to_json

SETTLE_SECONDS = 12.0
"""Until the engine is up, the graph too, and what is done in the background after a start is done."""
BUSY = 0.2
MAX_WAITS = 12
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def terminal(*arguments: str) -> Iterator[tuple[int, int]]:
    """A python in a pseudo-terminal: its process and the terminal's end here."""
    pid, end = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(sys.executable, [sys.executable, *arguments])
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        yield pid, end
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(end)


def read_for(end: int, seconds: float) -> None:
    """Take in what is drawn, so that nothing waits for a full terminal."""
    until = time.perf_counter() + seconds
    while (left := until - time.perf_counter()) > 0:
        if select.select([end], [], [], left)[0]:
            os.read(end, 65_536)


def resident(pid: int, name: str = "Rss") -> float:
    """Memory of a process in MB: `Rss` is all it has in memory, `Pss` its share of what several have."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(f"{name}:")) / 1000


def cpu(pid: int) -> float:
    """Seconds of CPU a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def processes_of(home: str) -> list[int]:
    """All processes that run with that RAGFORGE_HOME, or name it on their command line as the graph's server does."""
    mark = home.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes() or mark in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # Gone, or another user's.
    return found


def screen(arguments: tuple[str, ...], seconds: float) -> float:
    """MB of a screen that was left alone for a while."""
    with terminal(*arguments) as (pid, end):
        read_for(end, seconds)
        return resident(pid)


def cpu_of(pids: list[int], end: int, seconds: float) -> dict[int, float]:
    """Seconds of CPU each process takes in that time."""
    before = {one: cpu(one) for one in pids}
    read_for(end, seconds)
    return {one: cpu(one) - before[one] for one in pids if Path(f"/proc/{one}").exists()}


def chat(home: str, idle: float, *arguments: str) -> dict[str, float]:
    """The chat: MB of its screen and of all its processes, and percent of a CPU while idle."""
    code = CHAT.replace('["ragforge-chat"]', repr(["ragforge-chat", *arguments]))
    with terminal("-c", code) as (pid, end):
        read_for(end, SETTLE_SECONDS)
        taken = cpu_of(processes_of(home), end, idle)
        for _ in range(MAX_WAITS):
            if sum(taken.values()) < BUSY * idle:
                break
            # Keys and vectors of what was imported are being made.
            taken = cpu_of(processes_of(home), end, idle)
        return {
            "screen": resident(pid),
            "all": sum(resident(one, "Pss") for one in taken),
            "screen_cpu": 100 * taken.get(pid, 0.0) / idle,
            "all_cpu": 100 * sum(taken.values()) / idle,
        }


def store(folder: str, turns: int) -> None:
    """Import a conversation of that many turns and wait until it is searchable."""
    workspace = str(Path.cwd())
    file = Path(folder) / "long.json"
    file.write_bytes(to_json(conversation_of(turns, workspace)))
    subprocess.run(
        [sys.executable, "-m", "ragforge_tui.cli", "import", str(file)], check=True, stdout=subprocess.DEVNULL
    )


def main(turns: int, idle: float) -> None:
    """Measure, print the table and the last line."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = f"{folder}/home"
        os.environ |= {"RAGFORGE_HOME": home, "RAGFORGE_MODEL": "offline"}
        os.chdir(folder)
        try:
            empty = screen(("-c", EMPTY), 3.0)
            fresh = chat(home, idle)
            store(folder, turns)
            resumed = chat(home, idle, "--continue")
        finally:
            subprocess.run([sys.executable, "-m", "ragforge_tui.cli", "graph", "stop"], stdout=subprocess.DEVNULL)
    os.chdir(Path(__file__).parents[1])
    bare, loaded = (screen(("-m", "benchmarks.echo_app", scene), SETTLE_SECONDS) for scene in ("bare", "loaded"))
    print(f"{'':34}{'screen MB':>10}{'beyond':>8}{'all MB':>8}{'idle CPU':>10}{'of screen':>10}")
    print(f"{'empty Textual app':34}{empty:>10.1f}")
    for label, one in (("chat, before the first message", fresh), (f"chat, {turns} turns resumed", resumed)):
        print(
            f"{label:34}{one['screen']:>10.1f}{one['screen'] - empty:>8.1f}{one['all']:>8.0f}"
            f"{one['all_cpu']:>8.2f} %{one['screen_cpu']:>8.2f} %"
        )
    print(f"{'transcript, 5 000 turns loaded':34}{loaded:>10.1f}{loaded - bare:>8.1f}")
    print(
        f"footprint empty_mb={empty:.1f} fresh_beyond_mb={fresh['screen'] - empty:.1f} "
        f"resumed_beyond_mb={resumed['screen'] - empty:.1f} loaded_beyond_mb={loaded - bare:.1f} "
        f"all_mb={fresh['all']:.0f} resumed_all_mb={resumed['all']:.0f} idle_cpu={fresh['all_cpu']:.2f} "
        f"idle_screen_cpu={fresh['screen_cpu']:.2f} resumed_idle_cpu={resumed['all_cpu']:.2f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Memory and idle CPU of the program.")
    parser.add_argument("--turns", type=int, default=5_000)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds to look at")
    arguments = parser.parse_args()
    main(arguments.turns, arguments.idle)
