"""How a key is written on the screen."""

from __future__ import annotations

_SIGNS = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "page up",
    "pagedown": "page down",
    "slash": "/",
    "at": "@",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
"""Short forms of keys that the framework names with a word."""


def key_name(keys: str) -> str:
    """Return the short form of a key: ``^o`` for ``ctrl+o``; of several keys, of the first."""
    key = keys.partition(",")[0].strip()
    if key[:1] == "f" and key[1:].isdecimal():
        return key.upper()
    before, plus, last = key.rpartition("+")
    return f"{before}{plus}{_SIGNS.get(last, last)}".replace("ctrl+", "^")
