"""What each key means, wherever it works, and how it is written.

One key has one meaning in the whole program. Bindings carry that meaning as their description, `/help` and the tables
of docs/using.md show it, and a test compares them all. The keys of commands are with the commands, since the user may
change them; arrows, Enter, Escape, Tab, Space and the keys of text fields do what they do everywhere.
"""

from __future__ import annotations

LETTERS = {
    "a": "add",
    "b": "go back to it in a branch",
    "c": "copy the next piece of code",
    "C": "copy all code",
    "d": "remove, forget, delete",
    "e": "edit",
    "f": "mark as done",
    "g": "go to its turn",
    "h": "close, or go to what it belongs to",
    "i": "what it holds",
    "j": "down",
    "k": "up",
    "l": "open",
    "m": "let the model do it",
    "M": "merge",
    "n": "next",
    "N": "previous",
    "o": "open a link",
    "p": "pin",
    "q": "leave",
    "r": "read",
    "s": "send now",
    "t": "choose the time",
    "u": "undo",
    "U": "what you did",
    "v": "view: whole, its code, as it was sent",
    "w": "this folder or all",
    "x": "leave out, split off",
    "y": "copy",
    "z": "one pane alone",
    "slash": "filter by words",
    "at": "mention in the prompt",
    "equals_sign": "compare",
    "left_square_bracket": "previous request",
    "right_square_bracket": "next request",
    "less_than_sign": "wider sidebar",
    "greater_than_sign": "narrower sidebar",
    "plus": "taller pane",
    "minus": "lower pane",
}
"""Where nothing is typed: in the chat, in panes, lists and windows."""
NUMBERS = {**{str(number): "list, filter or finding of that number" for number in range(1, 10)}, "0": "all"}
ALT = {
    "alt+a": "archive",
    "alt+d": "remove, forget, delete",
    "alt+e": "edit",
    "alt+g": "only one tag or topic",
    "alt+m": "let the model do it",
    "alt+o": "another order",
    "alt+p": "private or not",
    "alt+r": "rename",
    "alt+s": "another status",
    "alt+t": "edit its tags",
    "alt+u": "undo",
    "alt+w": "this folder or all",
    "alt+x": "export",
}
"""In a list that typing filters, where letters are typed."""
CTRL = {
    "ctrl+c": "copy a selection; else stop; twice when idle: quit",
    "ctrl+down": "down",
    "ctrl+left": "wider sidebar",
    "ctrl+p": "palette",
    "ctrl+right": "narrower sidebar",
    "ctrl+s": "save",
    "ctrl+slash": "undo what was typed",
    "ctrl+underscore": "undo what was typed",
    "ctrl+up": "up",
    "ctrl+z": "to the shell; fg returns",
    "super+z": "undo what was typed",
}
MEANINGS = {**LETTERS, **NUMBERS, **ALT, **CTRL}

PAGER = {"g": "first turn", "G": "newest turn", "ctrl+d": "half a page down", "ctrl+u": "half a page up"}
"""Exception: the chat scrolls by the keys of a pager. So are Vim's keys in the prompt its own, with `tui.vim`."""
ANSWERS = {"y": "yes", "n": "no"}
"""Exception: a question and a failed turn have keys of their own, each next to what it does."""

_SIGNS = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "page up",
    "pagedown": "page down",
    "slash": "/",
    "underscore": "_",
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


def spoken_key(keys: str) -> str:
    """Return a key as it is named in a sentence: ``Ctrl+O``."""
    name = key_name(keys)
    if len(name) == 1:
        return name
    return "+".join(part.capitalize() for part in name.replace("^", "ctrl+").split("+"))
