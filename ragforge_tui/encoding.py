"""Detection of a file's text encoding by its byte order mark, or by the zero byte next to an initial `<`.

Used to read and write persona files, and to read a file back from an editor. Imports no other module of the package.
"""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple


class Encoding(NamedTuple):
    """Codec with an optional byte order mark."""

    codec: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Encode a text with its mark; as UTF-8 if the encoding could not be detected from the result."""
        raw = self.mark + text.encode(self.codec, "surrogatepass")
        detectable = self.codec == UTF8.codec or encoding_of(raw).codec == self.codec
        return raw if detectable else UTF8.encode(text)

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


def encoding_of(raw: bytes) -> Encoding:
    """Detect the encoding from the first bytes of a file; UTF-8 without any indication."""
    for encoding in _MARKED:
        if raw.startswith(encoding.mark):
            return encoding
    if raw.startswith(b"<\x00"):
        return Encoding("utf-16-le")
    return Encoding("utf-16-be") if raw.startswith(b"\x00<") else UTF8


def as_meant(raw: bytes) -> str:
    """Decode a file that the user just wrote; bytes that are invalid in its encoding are read as Latin-1.

    An editor may save in the encoding of its locale, and no character may be lost because of that.
    """
    encoding = encoding_of(raw)
    try:
        return encoding.decode(raw)
    except UnicodeDecodeError:
        text = raw[len(encoding.mark) :].decode("utf-8", "surrogateescape")
        return "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)
