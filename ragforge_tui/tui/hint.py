"""The message by which any widget shows a word in the status line for a moment."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class Hint(Message):
    """The result of a key in a few words, or why it has none."""

    text: str
