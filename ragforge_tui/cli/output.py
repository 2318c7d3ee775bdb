"""Printing: JSON for programs, aligned columns for users, and never an escape sequence from a stored text.

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
from ragforge_tui.shared.sanitize import plain_text


def print_text(text: str = "") -> None:
    """Print untrusted text on stdout, without control sequences."""
    _write(plain_text(text) + "\n")


def print_styled(text: str) -> None:
    """Print text whose untrusted parts were already passed through `plain_text` or `bold`."""
    _write(text + "\n")


def bold(text: str) -> str:
    """Return untrusted text without control sequences, in bold if stdout is a terminal that allows colours."""
    plain = plain_text(text)
    return f"\x1b[1m{plain}\x1b[22m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else plain


def print_json(value: Any) -> None:
    """Print an indented JSON document, always in UTF-8."""
    _write_json(msgspec.json.format(msgspec.json.encode(value)))


def print_json_line(value: Any) -> None:
    """Print a JSON document on one line and flush it."""
    _write_json(msgspec.json.encode(value))


def _write_json(document: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(safe_json(document) + b"\n")
    sys.stdout.buffer.flush()


def _write(text: str) -> None:
    # Print '?' for characters that an ASCII or Latin-1 terminal cannot display, instead of failing.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Print rows as aligned columns under their headings."""
    cells = [[" ".join(plain_text(cell).split()) for cell in row] for row in (head, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        line = "  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        _write(line.rstrip() + "\n")


def width(text: str) -> int:
    """Return the width of a text in terminal cells."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shorten(text: str, limit: int) -> str:
    """Return a text on one line, truncated to `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def local_time(moment: datetime) -> str:
    """Return a time in the local time zone."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
