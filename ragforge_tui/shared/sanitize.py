"""Sanitizing of text before it is stored or displayed.

`storable` is applied where foreign text enters, since graph and pipe reject what it replaces; `plain_text` before
text reaches a terminal. `redaction` handles secrets. Shared by all packages; imports no other module of the package.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")

# ECMA-48: CSI, then the string-carrying sequences (OSC, DCS, SOS, PM, APC) up to BEL or ST, then two-byte escapes.
# A string without an end swallows at most its own line, so that a stray introducer cannot eat the rest of a file.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def storable(text: str) -> str:
    """Make a text acceptable to the graph and the pipe without changing its appearance.

    Surrogate pairs become the character they encode, lone surrogates U+FFFD, NUL its visible symbol U+2400.
    """
    if "\x00" in text:
        text = text.replace("\x00", "\u2400")
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable_value(value: Any) -> Any:
    """Apply `storable` to lists and mappings, keys included; integers beyond 64 bits become text."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    return _map(value, storable, storable_value)


def plain_value(value: Any) -> Any:
    """Apply `plain_text` to every string in lists and mappings, keys included."""
    return _map(value, plain_text, plain_value)


def _map(value: Any, text: Callable[[str], str], item: Callable[[Any], Any]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): item(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [item(inner) for inner in value]
    return value


def plain_length(text: str) -> int:
    """Return the number of leading characters that `plain_text` keeps unchanged, whatever follows them."""
    match = _CONTROLS.search(text)
    return match.start() if match is not None else len(text)


def plain_text(text: str) -> str:
    """Remove escape sequences, bidi overrides and all controls but newline and tab, for safe display on a terminal.

    Carriage returns become line ends, as in an editor.
    """
    if not _CONTROLS.search(text):
        return text
    text = _ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _CONTROLS.sub("", text)


def visible(text: str) -> str:
    """Replace control characters and bidi overrides by symbols, so that they are visible in what a user approves.

    Surrogates, which stand for bytes that fit no encoding, are shown too.
    """
    return _SURROGATE.sub(_symbol, _CONTROLS.sub(_symbol, text))


def unshown(written: str, text: str) -> str:
    """Return a model's text with the characters that it was shown as symbols."""
    found = set(_CONTROLS.findall(text)) | set(_SURROGATE.findall(text))
    symbols = {visible(sign): sign for sign in found}
    for symbol, sign in symbols.items():
        if symbol not in text:
            written = written.replace(symbol, sign)
    return written


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINS = "\u200c\u200d\ufe0e\ufe0f"
"""Hidden characters that emoji and some scripts are written with."""
_LETTERS = re.compile(r"[^\W\d_]+")
_LIKE_LATIN = re.compile(
    "[авекмнорстухьАВЕКМНОРСТУХЬЅІЈѕіјһҮүԁԌԛԜԝӏοαεικνρυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϹϳօոսհցքզյԼՕՍաＡ-Ｚａ-ｚ\U0001d400-\U0001d7ff]"
)
"""Letters of other scripts that look like Latin ones in most fonts."""


def revealed(text: str) -> str:
    """Show what a user who approves a text would not see: characters without a glyph, and letters like Latin ones.

    A letter is marked where it stands in a word with Latin letters.
    """
    if text.isascii():
        return text
    marked = _LETTERS.sub(lambda word: _LIKE_LATIN.sub(_marked, word[0]) if _mixed(word[0]) else word[0], text)
    return _HIDDEN.sub(_named, marked)


def _mixed(word: str) -> bool:
    return not word.isascii() and any(letter.isascii() for letter in word)


def _marked(match: re.Match[str]) -> str:
    return f"{match[0]}<U+{ord(match[0]):04X}>"


def _named(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()] if match.start() else ""
    if match[0] in _JOINS and before and unicodedata.category(before) in ("So", "Sk", "Lo", "Mn", "Mc"):
        return match[0]
    return f"<U+{ord(match[0]):04X}>"


def fenced(name: str, text: str) -> str:
    """Put a text, byte for byte, between two marker lines with its digest, so that it cannot contain its own end."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return f"<<<{name} {digest}\n{text}\n{name} {digest}>>>"
