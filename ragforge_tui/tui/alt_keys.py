"""Alt with a letter or Enter in terminals without the Kitty protocol, which send ESC before the key."""

from __future__ import annotations

import logging
from string import ascii_lowercase
from typing import Any

import msgspec
from textual import events
from textual.keys import Keys
from textual.screen import Screen

log = logging.getLogger(__name__)

_LETTERS = {f"alt+{letter}": letter for letter in ascii_lowercase}


class _Key(msgspec.Struct, frozen=True):
    """A key in the form of the framework's table."""

    value: str


def teach_alt_keys() -> None:
    """Let Textual recognize these keys at once.

    It takes ESC CR for Enter. ESC and a letter it recognizes only after 100 ms without another key; the same twice in
    that time types ``^s``. There is no public way; if this one disappears, ctrl+j and the slow way remain.
    """
    try:
        from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
    except ImportError:
        log.info("alt+enter is unknown to this Textual")
        return
    table: Any = ANSI_SEQUENCES_KEYS
    if isinstance(table, dict):
        table.setdefault("\x1b\r", (Keys.ControlJ,))
        for key, letter in _LETTERS.items():
            table.setdefault(f"\x1b{letter}", (_Key(key),))  # ESC b and ESC f stay: Option with an arrow on a Mac.


def give_letter(event: events.Event, screen: Screen[Any]) -> None:
    """Have the letter typed on a screen without such a key: Escape and the letter came close together."""
    if isinstance(event, events.Key) and event.key in _LETTERS and event.key not in screen.active_bindings:
        event.character = _LETTERS[event.key]
