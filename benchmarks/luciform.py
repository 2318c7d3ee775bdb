"""How long the persona reader takes: real texts, and texts made to be hard, at growing sizes.

`python -m benchmarks.luciform [--megabytes 10]` prints processor seconds by kind and size, and what it takes to look at
every node of the largest afterwards (a node is made when somebody looks, and the program looks at the first few). The
last line holds the seconds at full size and, for each kind, how the time grew when the text grew fourfold: about 4 is
linear.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

from ragforge_tui.personas.reader import read

PERSONAS = Path(__file__).parents[1] / "personas"


def _real(size: int) -> str:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PERSONAS.glob("*.luciform")))
    return (text * (size // len(text) + 1))[:size]


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: piece * (size // len(piece))


def _nested(size: int) -> str:
    depth = size // len("<a></a>")
    return "<a>" * depth + "</a>" * depth


KINDS: dict[str, Callable[[int], str]] = {
    "real": _real,
    "nested": _nested,
    "unclosed": _repeated("<a>"),
    "attributes": lambda size: "<a " + 'b="1" ' * (size // 6) + ">",
    "quotes": _repeated('<a b="<" '),
    "crossed": _repeated("<a><b></a>"),
    "strays": _repeated("</a>"),
    "closers": lambda size: "<a>" * (size // 7) + "</a" * (size // 7),
    "cut_closers": _repeated("</a"),
    "nameless_closers": lambda size: "<a>" * (size // 6) + "</>" * (size // 6),
    "stray_nameless": _repeated("</>"),
    "odd_closers": lambda size: "<a>" * (size // 9) + "</a b>" * (size // 9),
    "comments": _repeated("<!--"),
    "less": _repeated("< "),
    "broken": _repeated("<a"),
    "signs": _repeated("<⛧>x</⛧>"),
    "unquoted": _repeated("<a b=c>x</a>"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=10.0, help="the largest text")
    full = int(parser.parse_args().megabytes * 1_000_000)
    sizes = [full // 16, full // 4, full]
    print(f"{'kind':<18}" + "".join(f"{size / 1e6:>10.2f} MB" for size in sizes) + f"{'growth':>9}{'all nodes':>12}")
    found = []
    for kind, make in KINDS.items():
        timed = [_seconds(make(size)) for size in sizes]
        seconds = [reading for reading, _ in timed]
        growth = seconds[-1] / seconds[-2]
        print(
            f"{kind:<18}"
            + "".join(f"{second:>11.2f} s" for second in seconds)
            + f"{growth:>8.1f}x{timed[-1][1]:>10.2f} s"
        )
        found.append(f"{kind}_s={seconds[-1]:.2f} {kind}_growth={growth:.1f}")
    print("luciform", " ".join(found))


def _seconds(text: str) -> tuple[float, float]:
    """Of reading a text, and of putting it together again out of all its nodes."""
    gc.collect()
    start = time.process_time()
    document = read(text)
    seconds = time.process_time() - start
    start = time.process_time()
    if "".join(document.pieces()) != text:
        raise SystemExit("the tree does not give the text back")
    return seconds, time.process_time() - start


if __name__ == "__main__":
    main()
