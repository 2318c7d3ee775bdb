"""The code of an answer, copied piece by piece: each key press copies the next piece and says which it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragforge_tui.shared.formatting import counted


class Fence(NamedTuple):
    """One piece of code in a text."""

    language: str
    code: str


class FenceCycle:
    """Goes through the code of one text after the other."""

    def __init__(self) -> None:
        self._text = ""
        self._next = 0

    def forget(self) -> None:
        """Begin with the first piece again."""
        self._text = ""

    def take(self, text: str, fences: Sequence[Fence]) -> tuple[Fence, str]:
        """Return the next piece of a text, after the last one the first, and words about it."""
        at = self._next % len(fences) if text == self._text else 0
        self._text, self._next = text, at + 1
        return fences[at], said(fences, at)


def said(fences: Sequence[Fence], at: int) -> str:
    """Return what was copied, such as ``code 1 of 3 · python · 14 lines copied``."""
    language, code = fences[at]
    lines = code.removesuffix("\n").count("\n") + 1
    number = f"code {at + 1} of {len(fences)}" if len(fences) > 1 else "code"
    return " · ".join(filter(None, (number, language, f"{counted(lines, 'line')} copied")))
