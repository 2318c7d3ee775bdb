"""From Enter to the first token, with the real program in a pseudo-terminal: ``python -m benchmarks.first_token``.

    python -m benchmarks.first_token [--python .venv/bin/python]... [--scenario NAME]... [--turns N] [--home DIR]

A scripted server in a process of its own answers at once and notes when each request arrived. A run starts the chat,
waits for its first paint, presses a key, types a question and presses Enter, all as early as the screen allows; then it
sends more questions at the pace of a typist. Times are in milliseconds:

    paint     from starting the process until the prompt is on the screen
    keys      until the first key is echoed
    token     until the first token of the first answer is on the screen
    request   from Enter to the arrival of the first question's request
    answer    from Enter to the first question's first token on the screen
    later     as `request`, for every later question, with Enter as soon as its last letter is drawn
    read      the same for as many questions that the user reads for 0.4 s before Enter
    wall      a whole command, from its start to its end
    text      of a conversation that is resumed: from starting the process until its last words are on the screen
    memory    MB of all processes of the program some seconds after the first answer, as what they add to the machine

Each `--python` is the interpreter of an installation or checkout; several take turns within each run, so that a busy
machine slows all of them. `--home` is a folder whose graph is used, and filled if it has none (for a large one, which
takes minutes to make); without it everything is temporary. Needs a checkout (it uses tests/support). Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.pseudo_terminal import PseudoTerminal
from ragforge_tui.export import to_json

REPLIES = 5_000
PROMPT = r"type / for"
"""Part of the prompt's placeholder; its first letter is drawn apart, under the cursor."""
QUESTION = "Which part of the parser reads a line that is empty, and what does it return then "
GREETING = "Hello there"
"""The offline assistant calls tools for a question."""
LETTERS = "абвгдежзийклмнопрстуфхцчшщъыьэю"
"""A question ends in one of these, which nothing else on the screen has: it is typed when that one is drawn."""
FIRST_KEY = "я"
TURNS_EACH = 1_000
"""Of the conversations that fill a graph."""
LAST_WORDS = 3
SETTLE_SECONDS = 3.0
READ_SECONDS = 0.4
"""Time in which a user reads a question again before Enter."""
GRAPH_STARTS = 5
"""Commands that may give up waiting for the graph on a busy machine."""

Figures = dict[str, list[float]]


class Server:
    """The scripted model server, and what it noted.

    Args:
        steps: What it answers, one for each request of a turn; without them, numbered lines.

    Attributes:
        requests: Requests of turns, as far as `arrived` has read; each got the answer of its number.
    """

    def __init__(self, folder: Path, steps: list[dict[str, Any]] | None = None) -> None:
        self._log, port, script = folder / "requests.jsonl", folder / "port", folder / "script.json"
        self._log.touch()
        self._read = self.requests = 0
        steps = steps or [
            {"text": f"zq{number:04} " + "It skips such a line. " * 8 + f"end{number:04}"} for number in numbers()
        ]
        script.write_text(json.dumps(steps))
        arguments = ["--port-file", str(port), "--script", str(script), "--log", str(self._log)]
        self.process = subprocess.Popen([sys.executable, "-m", "tests.support.openai_server", *arguments])
        while not port.exists():
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{port.read_text()}/v1"

    def arrived(self) -> float:
        """Return when the last request of a turn arrived, among those since this was called before."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines = log.readlines()
            self._read = log.tell()
        times: list[float] = []
        for line in lines:
            noted = json.loads(line)
            if noted["path"].endswith("/chat/completions") and noted["body"].get("tools"):
                times.append(noted["at"])
        if not times:
            raise RuntimeError("no request arrived at the scripted server")
        self.requests += len(times)
        return times[-1]


def numbers() -> range:
    """Return the numbers of the server's answers."""
    return range(1, REPLIES)


class Program:
    """One installation of the program, with a home of its own."""

    def __init__(self, python: Path, home: Path, workspace: Path, server: Server) -> None:
        self.python, self.home, self._workspace, self.server = python, home, workspace, server
        kept = {
            name: value
            for name, value in os.environ.items()
            if not re.match(r"PYTHON|RAGFORGE_|NEO4J_|XDG_|TMUX|.*_API_KEY$", name)
        }
        self.env = kept | {
            "RAGFORGE_HOME": str(home),
            "RAGFORGE_MODEL": "openai/scripted",
            "RAGFORGE_API_BASE": server.url,
            "OPENAI_API_KEY": "none",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        self._letters = iter(LETTERS)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the program with these arguments."""
        return [str(self.python.with_name("ragforge-chat")), *arguments]

    def run(self, *arguments: str) -> tuple[float, float]:
        """Run a command to its end; return when it was started and the seconds it took."""
        since = time.monotonic()
        subprocess.run(self.command(*arguments), env=self.env, cwd=self._workspace, check=True, capture_output=True)
        return since, time.monotonic() - since

    def sessions(self) -> list[dict[str, Any]]:
        """Start the graph if it is not running, and return its conversations."""
        for _ in range(GRAPH_STARTS):
            done = subprocess.run(
                self.command("sessions", "--json"), env=self.env, cwd=self._workspace, capture_output=True
            )
            if done.returncode == 0:
                found: list[dict[str, Any]] = json.loads(done.stdout)
                return found
        raise RuntimeError(f"the graph does not start: {done.stderr.decode()}")

    @contextmanager
    def chat(self, *arguments: str) -> Iterator[PseudoTerminal]:
        """Open the chat in a terminal."""
        self._letters = iter(LETTERS)
        terminal = PseudoTerminal(self.command(*arguments), cwd=str(self._workspace), env=self.env)
        try:
            yield terminal
        finally:
            terminal.close()

    def first_question(self, terminal: PseudoTerminal) -> Figures:
        """Ask as soon as the screen lets the user, and wait for the whole answer."""
        painted = terminal.wait_for(PROMPT)
        terminal.type(FIRST_KEY)
        echoed = terminal.wait_for(FIRST_KEY)
        request, answer, shown = self._asked(terminal, 0.0)
        since = terminal.started
        return {
            "paint": [_ms(painted - since)],
            "keys": [_ms(echoed - since)],
            "token": [_ms(shown - since)],
            "request": [request],
            "answer": [answer],
        }

    def later_questions(self, terminal: PseudoTerminal, count: int) -> Figures:
        """Ask that many more questions at the pace of a typist, and as many that are read before Enter."""
        times: Figures = {"later": [], "read": []}
        for _ in range(count):
            for name, read in (("later", 0.0), ("read", READ_SECONDS)):
                terminal.idle(1.0)
                times[name].append(self._asked(terminal, 0.02, read)[0])
        return {name: values for name, values in times.items() if values}

    def _asked(self, terminal: PseudoTerminal, pause: float, read: float = 0.0) -> tuple[float, float, float]:
        """Return milliseconds from Enter to the request and to the first token, and when that was drawn."""
        letter = next(self._letters)
        terminal.type(QUESTION + letter, pause=pause)
        terminal.wait_for(letter)
        terminal.idle(read)
        terminal.forget()
        entered = terminal.type("\r")
        # With its number, because earlier answers may be drawn again.
        number = self.server.requests + 1
        shown = terminal.wait_for(f"zq{number:04}")
        terminal.wait_for(f"end{number:04}")
        return _ms(self.server.arrived() - entered), _ms(shown - entered), shown

    def stop(self) -> None:
        """End every process of this home, so that the next start finds nothing."""
        self.run("graph", "stop")
        until = time.monotonic() + 10.0
        while left := self.processes():
            if time.monotonic() > until:
                for process in left:
                    process.kill()
            time.sleep(0.1)

    def processes(self) -> list[psutil.Process]:
        """Return all processes that have this home in their environment or command line, and their children."""
        mark = str(self.home)
        found: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                # An engine hides its environment from all but root; its parent, the screen, does not.
                if any(mark in word for word in words) or mark in process.environ().get("RAGFORGE_HOME", ""):
                    found |= {one.pid: one for one in (process, *process.children(recursive=True))}
            except psutil.Error:
                continue
        return [one for one in found.values() if one.pid != os.getpid() and one.status() != psutil.STATUS_ZOMBIE]

    def memory(self) -> float:
        """Return the MB that all processes of this home add to the machine's use."""
        return sum(_proportional(process) for process in self.processes())


def _ms(seconds: float) -> float:
    return seconds * 1000


def _proportional(process: psutil.Process) -> float:
    try:
        rows = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1000
    except PermissionError:
        # Only root may read this of an engine: what it alone has in memory, without its part of what it shares.
        used = process.memory_info()
        return float(used.rss - used.shared) / 1_000_000
    except OSError:
        return 0.0


class Benchmark:
    """The scenarios: each is one run of one program.

    Args:
        turns: Turns of the conversation that is resumed, and of the one that is imported.
        messages: Questions after the first one.
    """

    def __init__(self, turns: int, messages: int, folder: Path, workspace: Path) -> None:
        self._turns, self._messages, self._folder, self._workspace = turns, messages, folder, workspace
        self.scenarios: dict[str, Callable[[Program], Figures]] = {
            "warm-new": lambda program: self._warm(program),
            "warm-resumed": lambda program: self._warm(program, "--resume", self.resumed),
            "cold-new": lambda program: self._cold(program),
            "cold-resumed": lambda program: self._cold(program, "--resume", self.resumed),
            "ask": self._ask,
            "ask-offline": self._ask_offline,
            "resume-10": lambda program: self._resume(program, 10),
            "resume-10000": lambda program: self._resume(program, 10_000),
            "second-chat": self._second,
            "after-import": self._after_import,
        }
        self.resumed = ""
        self._read: dict[tuple[Path, int], tuple[str, str]] = {}
        """Conversations that are resumed to be read, by program and number of turns, with their last words."""

    def fill(self, program: Program, turns: int) -> None:
        """Import conversations of so many turns in total, unless the home has a graph."""
        if stored := program.sessions():
            self.resumed = max(stored, key=lambda one: one["message_count"])["uuid"]
            return
        self.resumed = self._import(program, self._turns)
        for start in range(self._turns, turns, TURNS_EACH):
            self._import(program, min(TURNS_EACH, turns - start))

    def _import(self, program: Program, turns: int) -> str:
        return self._imported(program, turns)[0]

    def _imported(self, program: Program, turns: int) -> tuple[str, str]:
        """Import a conversation; return its uuid and its last words."""
        from benchmarks import synthetic

        made = synthetic.conversation(turns, synthetic.Text(), str(self._workspace))
        file = self._folder / "imported.json"
        file.write_bytes(to_json(made))
        program.run("import", str(file))
        return made.conversation.uuid, " ".join(made.turns[-1].messages[-1].content.split()[-LAST_WORDS:])

    def _warm(self, program: Program, *arguments: str) -> Figures:
        program.sessions()
        time.sleep(1.0)
        return self._chat(program, *arguments)

    def _cold(self, program: Program, *arguments: str) -> Figures:
        program.stop()
        time.sleep(1.0)
        return self._chat(program, *arguments)

    def _chat(self, program: Program, *arguments: str) -> Figures:
        with program.chat(*arguments) as terminal:
            figures = program.first_question(terminal)
            terminal.idle(SETTLE_SECONDS)
            figures["memory"] = [program.memory()]
            return figures | program.later_questions(terminal, self._messages)

    def _resume(self, program: Program, turns: int) -> Figures:
        key = (program.home, turns)
        if key not in self._read:
            self._read[key] = self._imported(program, turns)
        uuid, words = self._read[key]
        program.sessions()
        time.sleep(1.0)
        with program.chat("--resume", uuid) as terminal:
            shown = terminal.wait_for(r"\s+".join(re.escape(word) for word in words.split()))
            return {"text": [_ms(shown - terminal.started)]}

    def _second(self, program: Program) -> Figures:
        program.sessions()
        with program.chat() as first:
            program.first_question(first)
            first.idle(SETTLE_SECONDS)
            before = program.memory()
            with program.chat() as second:
                figures = program.first_question(second)
                second.idle(SETTLE_SECONDS)
                return figures | {"memory": [program.memory() - before]}

    def _after_import(self, program: Program) -> Figures:
        return self._chat(program, "--resume", self._import(program, self._turns))

    def _ask(self, program: Program) -> Figures:
        program.sessions()
        time.sleep(1.0)
        since, seconds = program.run("ask", QUESTION)
        return {"wall": [_ms(seconds)], "request": [_ms(program.server.arrived() - since)]}

    def _ask_offline(self, program: Program) -> Figures:
        program.sessions()
        time.sleep(1.0)
        return {"wall": [_ms(program.run("ask", "--model", "offline", GREETING)[1])]}


def workspace_in(folder: Path) -> Path:
    """Make a small repository to work in."""
    workspace = folder / "workspace"
    workspace.mkdir()
    for letter in string.ascii_lowercase:
        code = f'def read_{letter}(line):\n    """Read a line."""\n    return line.strip() or None\n'
        (workspace / f"parser_{letter}.py").write_text(code * 3)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(workspace)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "Add the parser"]):
        subprocess.run([*git, *arguments], check=True)
    return workspace


def measure(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, Figures]]:
    """Return all times by scenario and program."""
    workspace = Path(options.workspace).resolve() if options.workspace else workspace_in(folder)
    server = Server(folder)
    programs: dict[str, Program] = {}
    results: dict[str, dict[str, Figures]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    benchmark = Benchmark(min(options.turns, TURNS_EACH), options.messages, folder, workspace)
    try:
        for number, python in enumerate(options.python or [sys.executable]):
            home = Path(options.home).resolve() if options.home else folder / f"home{number}"
            program = Program(Path(python).absolute(), home, workspace, server)
            programs[str(program.python.parents[2])] = program
            benchmark.fill(program, options.turns)
        for run in range(-1, options.runs):
            for name in options.scenario or benchmark.scenarios:
                for label, program in programs.items():
                    figures = benchmark.scenarios[name](program)
                    if run < 0:
                        continue  # Compiled files, caches of the file system.
                    for figure, values in figures.items():
                        results[name][label][figure] += values
                    print(f"{run} {name} {label} {_line(figures)}", file=sys.stderr, flush=True)
    finally:
        for program in programs.values():
            program.stop()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
    return results


def _line(figures: Figures) -> str:
    return " ".join(f"{name}={','.join(f'{value:.0f}' for value in values)}" for name, values in figures.items())


def p95(values: list[float]) -> float:
    """Return the value that 95 % of these do not exceed."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def show(results: dict[str, dict[str, Figures]]) -> None:
    """Print the table, and the last line with the figures of the first program."""
    labels = list(dict.fromkeys(label for by_program in results.values() for label in by_program))
    for number, label in enumerate(labels):
        print(f"{chr(ord('A') + number)}: {label}")
    print(f"{'':24}" + "".join(f"{chr(ord('A') + n) + ' p50':>12}{'p95':>10}" for n in range(len(labels))))
    last = []
    for name, by_program in results.items():
        for figure in next(iter(by_program.values())):
            cells = ""
            for label in labels:
                values = by_program[label][figure]
                cells += f"{statistics.median(values):>12.0f}{p95(values):>10.0f}"
            values = by_program[labels[0]][figure]
            last.append(f"{name}_{figure}={statistics.median(values):.0f}".replace("-", "_"))
            print(f"{name + ' ' + figure:24}{cells}")
    print(f"first_token load={os.getloadavg()[0]:.1f} {' '.join(last)}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="From Enter to the first token, with the real program.")
    parser.add_argument("--python", action="append", help="interpreter of an installation; repeatable")
    parser.add_argument("--scenario", action="append", help="only this one; repeatable")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=300, help="turns in the graph; the resumed conversation has 1000")
    parser.add_argument("--messages", type=int, default=5, help="questions after the first one of a run")
    parser.add_argument("--home", help="folder of the program's files, kept; several programs use it in turn")
    parser.add_argument("--workspace", help="folder to work in; without it a small repository")
    parser.add_argument("--json", help="file for all times")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        results = measure(options, Path(folder))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    show(results)


if __name__ == "__main__":
    main()
