"""Printing: JSON for programs, aligned columns for people, never an escape sequence from a stored text.

Used by the commands that print data.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.export import safe_json
from ragforge_tui.text import plain_text


def say(text: str = "") -> None:
    """A text from anywhere on stdout, without anything a terminal would act on."""
    _write(plain_text(text) + "\n")


def say_styled(text: str) -> None:
    """A text whose foreign parts went through `plain_text` or `bold` already, on stdout."""
    _write(text + "\n")


def bold(text: str) -> str:
    """A text from anywhere in bold where stdout is a terminal that likes colours, without its own escapes."""
    plain = plain_text(text)
    return f"\x1b[1m{plain}\x1b[22m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else plain


def say_json(value: Any) -> None:
    """One JSON document, indented, in UTF-8 whatever the terminal."""
    _write_json(msgspec.json.format(msgspec.json.encode(value)))


def say_json_line(value: Any) -> None:
    """One JSON document on one line, at once."""
    _write_json(msgspec.json.encode(value))


def _write_json(document: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(safe_json(document) + b"\n")
    sys.stdout.buffer.flush()


def _write(text: str) -> None:
    # An ASCII or Latin-1 terminal gets '?' for what it cannot show, not an exception.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Columns under their headings; the last one takes what it needs."""
    cells = [[" ".join(plain_text(cell).split()) for cell in row] for row in (head, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        line = "  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        _write(line.rstrip() + "\n")


def width(text: str) -> int:
    """Terminal columns a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shorten(text: str, limit: int) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def local_time(moment: datetime) -> str:
    """A time as a person here reads it."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def size(count: float) -> str:
    """Bytes in a unit that keeps the number short."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
