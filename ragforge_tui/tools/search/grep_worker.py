"""Search process that replaces ripgrep: reads the query from stdin and writes matches as JSON lines.

Started by `grep.py`. It is a separate process because Python's matcher cannot be interrupted and blocks the
interpreter while it runs. Its input is one JSON object: root, paths, pattern, ignore_case, most_bytes, most_matches.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from ragforge_tui.shared.encoding import lines_of, readable
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.look_alikes import composed


def main() -> None:
    """Search and write one line for each match."""
    warnings.simplefilter("ignore")
    work: dict[str, Any] = json.load(sys.stdin.buffer)
    expression = re.compile(composed(work["pattern"]), re.IGNORECASE if work["ignore_case"] else 0)
    remaining = int(work["most_matches"])
    for path in work["paths"]:
        for number, line in enumerate(_lines(Path(work["root"]) / path, work["most_bytes"]), start=1):
            if expression.search(composed(line)):
                sys.stdout.write(json.dumps({"path": path, "line": number, "text": line}) + "\n")
                remaining -= 1
                if remaining <= 0:
                    return


def _lines(path: Path, most_bytes: int) -> list[str]:
    """Return the lines of a text file; empty if it is binary, too large or not a regular file."""
    try:
        text = readable(read_regular(path, most_bytes, follow=False))
    except OSError:
        return []
    return lines_of(text) if text is not None else []
