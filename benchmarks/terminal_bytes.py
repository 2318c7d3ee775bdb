"""What the program sends to the terminal: ``python -m benchmarks.terminal_bytes [--runs N]``.

The real program in a pseudo-terminal of 120x40, against a scripted server that answers with 1.7 kB of Markdown at the
pace of a model (60 tokens a second): bytes for the start, a key, the answer, a change of the focus, a page up, and ten
idle seconds, with and without `--plain`. Bytes are what a slow line, a screen reader and `script` feel. Each step is
counted until nothing has been written for a while. Needs a checkout (it uses tests/support). Linux.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.first_token import PROMPT, Program, Server, workspace_in
from benchmarks.pseudo_terminal import PseudoTerminal

KEYS = "Which part of the parser reads an empty line"
KEY_PAUSE = 0.15
QUIET_SECONDS = 3.0
IDLE_SECONDS = 10.0
CHUNK, DELAY = 12, 0.05
"""Characters of a piece of the answer, and seconds between two: 60 tokens a second."""
LAST = "zqend"
MODES: dict[str, tuple[str, ...]] = {"usual": (), "plain": ("--plain",)}
MARKDOWN = f"""The parser reads a line in **two steps**, and an empty line ends in the *second* one.

## How a line is read

1. `read_a` strips the line; what is left may be the empty string, which is false in Python.
2. The `or None` behind it makes `None` of that, so that a caller needs to look for one value only.

```python
def read_a(line: str) -> str | None:
    \"\"\"Return the line without spaces, None for an empty one.\"\"\"
    stripped = line.strip()
    return stripped or None


def read_all(lines: list[str]) -> list[str]:
    \"\"\"Return the lines that hold something, in their order.\"\"\"
    return [line for line in map(read_a, lines) if line is not None]
```

| file | function | an empty line |
|---|---|---|
| `parser_a.py` | `read_a` | becomes `None` |
| `parser_b.py` | `read_b` | becomes `None` |
| `parser_z.py` | `read_z` | becomes `None`, too |

## What follows from it

- A line of spaces and tabs counts as empty, because it is stripped before anything looks at it.
- The number of a line is lost: whoever needs it for a message has to count before the lines are read.
- A byte order mark is **not** a space for `str.strip`, so a file that starts with one has a first line that
  is never empty. Open such files with the encoding `utf-8-sig`.

> The functions of all 26 files are the same but for their names. One of them, with the letter as an argument, would do;
> the tests would then have one place less to look at for each letter, and the next change would be made once.

If you want to keep the empty lines, return the stripped line itself and let the callers decide: `None` is only useful
where the difference between "nothing there" and "nothing in it" matters to somebody. {LAST}
"""

Figures = dict[str, float]


class Counter:
    """Counts what one chat writes, step by step."""

    def __init__(self, terminal: PseudoTerminal) -> None:
        self._terminal = terminal
        self._counted = 0

    def written(self) -> int:
        """Return the bytes since the last call, once nothing more is written."""
        self._terminal.quiet(QUIET_SECONDS)
        before, self._counted = self._counted, self._terminal.received
        return self._counted - before


def measure(program: Program, *arguments: str) -> Figures:
    """Return the bytes of each step of one chat."""
    with program.chat(*arguments) as terminal:
        counter = Counter(terminal)
        terminal.wait_for(PROMPT)
        figures: Figures = {"start": counter.written()}
        terminal.type(KEYS, pause=KEY_PAUSE)
        figures["key"] = counter.written() / len(KEYS)
        terminal.type("\r")
        terminal.wait_for(LAST)
        figures["answer"] = counter.written()
        for name, key in (("to chat", "\t"), ("page up", "\x1b[5~"), ("to prompt", "\x1b")):
            terminal.type(key)
            figures[name] = counter.written()
        terminal.idle(IDLE_SECONDS)
        return figures | {"idle": counter.written()}


def main(runs: int, folder: Path) -> None:
    """Measure, print the table and the last line."""
    steps = [{"text": MARKDOWN, "chunk": CHUNK, "delay": DELAY}] * (2 * runs)
    server = Server(folder, steps)
    program = Program(Path(sys.executable), folder / "home", workspace_in(folder), server)
    found: dict[str, dict[str, list[float]]] = {mode: defaultdict(list) for mode in MODES}
    try:
        program.sessions()
        for _ in range(runs):
            for mode, arguments in MODES.items():
                for name, value in measure(program, *arguments).items():
                    found[mode][name].append(value)
    finally:
        program.stop()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
    middle = {
        mode: {name: statistics.median(values) for name, values in steps.items()} for mode, steps in found.items()
    }
    print(f"{'bytes':12}" + "".join(f"{mode:>10}" for mode in MODES))
    for name in found["usual"]:
        print(f"{name:12}" + "".join(f"{middle[mode][name]:>10.0f}" for mode in MODES))
    figures = (f"{mode}_{name.replace(' ', '_')}={value:.0f}" for mode in MODES for name, value in middle[mode].items())
    print(f"terminal_bytes {' '.join(figures)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the program sends to the terminal.")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        main(options.runs, Path(temporary))
