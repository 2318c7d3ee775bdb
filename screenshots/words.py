"""The words of pictures: read from their files, and compared with those that the program draws.

Numbers, times, names of days and months, ids and words that are cut off differ from run to run and are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree import ElementTree

from rich.cells import cell_len

from screenshots.film import CELL, EDGE, LINE, Frame

SVG = "{http://www.w3.org/2000/svg}"
_HEADER = re.compile(r"^=== (.+), ([\d.]+) s$", re.MULTILINE)
_VARYING = re.compile(
    r"\b[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b"
    r"|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b"
    r"|\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t|tember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b"
    r"|\d+\s?(?:ms|s|min|h|d|[kMG]?B|k)\b"
    r"|\b(?:now|yesterday|today)\b"
    r"|(?<=turn)s\b|(?<=summar)(?:y|ies)\b"  # numbers of what was recalled
)
_WORD = re.compile(r"[^\W\d_]{2,}…?")


def text_of(frame: Frame) -> str:
    """Return the lines of a frame."""
    return "\n".join(_line((piece.column, piece.text) for piece in row) for row in frame).rstrip()


def text_in(picture: str, at: float = 0.0) -> str:
    """Return the lines that a picture, or a film at its time in seconds, shows."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for group in ElementTree.fromstring(picture).iter(f"{SVG}g"):
        if not _shown(group, at):
            continue
        for text in group.iter(f"{SVG}text"):
            row = int((float(text.attrib["y"]) - EDGE) / LINE)
            column = round((float(text.attrib["x"]) - EDGE) / CELL)
            rows.setdefault(row, []).append((column, text.text or ""))
    return "\n".join(_line(sorted(rows.get(y, ()))) for y in range(max(rows, default=0) + 1))


def _shown(group: ElementTree.Element, at: float) -> bool:
    animation = group.find(f"{SVG}animate")
    if animation is None:
        return True
    share = at / float(animation.attrib["dur"].removesuffix("s"))
    steps = zip(animation.attrib["keyTimes"].split(";"), animation.attrib["values"].split(";"), strict=True)
    return [value for begin, value in steps if float(begin) <= share][-1] == "inline"


def _line(pieces: Iterable[tuple[int, str]]) -> str:
    line = ""
    for column, text in pieces:
        line += " " * (column - cell_len(line)) + text
    return line.rstrip()


def words(text: str) -> Counter[str]:
    """Return how often each word is in a text, without those that differ from run to run."""
    return Counter(word for word in _WORD.findall(_VARYING.sub(" ", text)) if not word.endswith("…"))


def difference(expected: str, found: str) -> str:
    """Return the words that only one of two texts has; empty if there are none."""
    missing, more = words(expected) - words(found), words(found) - words(expected)
    parts = [f"{name}: {' '.join(sorted(some))}" for name, some in (("gone", missing), ("new", more)) if some]
    return "; ".join(parts)


class Shown(NamedTuple):
    """Text of a picture, and the second of the film that shows the same screen."""

    name: str
    at: float
    text: str


def written(shown: Iterable[Shown]) -> str:
    """Return the texts of pictures as one file."""
    return "".join(f"=== {one.name}, {one.at:.2f} s\n{one.text}\n\n" for one in shown)


def read(file: str) -> list[Shown]:
    """Return the texts of pictures from a file that `written` made."""
    parts = _HEADER.split(file)[1:]
    return [Shown(name, float(at), text.strip("\n")) for name, at, text in zip(*[iter(parts)] * 3, strict=True)]
