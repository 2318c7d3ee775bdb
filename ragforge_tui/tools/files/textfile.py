"""Conversion of a file's bytes to text and back that preserves its encoding, byte order mark and line ends.

Used by the file tools and by the search process, which is why it uses only the standard library.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_BYTES = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b\v")
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Encoding(NamedTuple):
    """Codec of a file's text, with an optional byte order mark."""

    codec: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Encode a text with its mark.

        Raises:
            UnicodeEncodeError: The encoding lacks a character.
        """
        return self.mark + text.encode(self.codec)


UTF8 = Encoding("utf-8")


def decode(content: bytes) -> tuple[str, Encoding] | None:
    """Return the text and its encoding, None for binary content. Line ends stay unchanged."""
    for mark, codec in _MARKS:
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(codec), Encoding(codec, mark)
            except UnicodeDecodeError:
                return None
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8"), UTF8
    except UnicodeDecodeError:
        pass
    sample = content[:65536]
    if len(sample.translate(None, _BINARY_BYTES)) < len(sample):
        return None
    return content.decode("latin-1"), Encoding("latin-1")


def line_end_of(text: str) -> str:
    """Return the most frequent line end of a text."""
    with_return = text.count("\r\n")
    return "\r\n" if with_return > text.count("\n") - with_return else "\n"


def with_line_ends(text: str, line_end: str) -> str:
    """Return a text with the same line end on every line."""
    text = text.replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if line_end == "\r\n" else text


def lines_of(text: str) -> list[str]:
    """Split into lines without their ends. Only newlines end a line, so that line numbers agree with other tools."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def visible(text: str) -> str:
    """Replace control characters and bidi overrides by symbols, so that they are visible in what a user approves."""
    return _HIDDEN.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"
