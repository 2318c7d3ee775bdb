"""Text files as text and back: detection of the encoding, byte order marks and line ends.

Used by the file tools and the search process, for persona files, and to read a file back from an editor. A file that is
written again keeps its encoding, mark and line ends. Uses only the standard library and no other module of the package.
"""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple


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

    def encode_detectable(self, text: str) -> bytes:
        """Encode a text with its mark; as UTF-8 if the encoding could not be detected from the result."""
        raw = self.mark + text.encode(self.codec, "surrogatepass")
        detectable = self.codec == UTF8.codec or encoding_of(raw).codec == self.codec
        return raw if detectable else UTF8.encode_detectable(text)

    def decode(self, raw: bytes, errors: str = "strict") -> str:
        """Decode a file's bytes and drop the mark.

        Raises:
            UnicodeDecodeError: Some bytes are invalid in this encoding.
        """
        return raw[len(self.mark) :].decode(self.codec, errors)


UTF8: Final = Encoding("utf-8")
_MARKED: Final = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),  # Starts with the mark of UTF-16, so it must be tried first.
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)
_BINARY_BYTES: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b\v")
_SAMPLED: Final = 65_536


def encoding_of(raw: bytes) -> Encoding:
    """Detect the encoding by the mark, or by the zero byte next to an initial `<`; UTF-8 without any indication."""
    for encoding in _MARKED:
        if raw.startswith(encoding.mark):
            return encoding
    if raw.startswith(b"<\x00"):
        return Encoding("utf-16-le")
    return Encoding("utf-16-be") if raw.startswith(b"\x00<") else UTF8


def decode(content: bytes) -> tuple[str, Encoding] | None:
    """Return the text of any file and its encoding, None for binary content. Line ends stay unchanged."""
    marked = next((encoding for encoding in _MARKED if content.startswith(encoding.mark)), None)
    if marked is None and b"\0" in content:
        return None
    encoding = marked or UTF8
    try:
        return encoding.decode(content), encoding
    except UnicodeDecodeError:
        sample = content[:_SAMPLED]
        if marked is not None or len(sample.translate(None, _BINARY_BYTES)) < len(sample):
            return None
    return content.decode("latin-1"), Encoding("latin-1")


def decode_saved(raw: bytes) -> str:
    """Decode a file that the user just wrote; bytes that are invalid in its encoding are read as Latin-1.

    An editor may save in the encoding of its locale, and no character may be lost because of that.
    """
    encoding = encoding_of(raw)
    try:
        return encoding.decode(raw)
    except UnicodeDecodeError:
        text = raw[len(encoding.mark) :].decode("utf-8", "surrogateescape")
        return "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)


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
