"""How a file's bytes are written as text: known by a byte order mark, or by the zero beside a first `<`.

Used where persona files are read and written, and where an editor's file is read back. Shared words; leans on
nothing.
"""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple


class Encoding(NamedTuple):
    """A codec, and the byte order mark in front, if any."""

    codec: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """A text as a file of this encoding holds it; as UTF-8 where nothing would tell that it is not."""
        raw = self.mark + text.encode(self.codec, "surrogatepass")
        told = self.codec == UTF8.codec or encoding_of(raw).codec == self.codec
        return raw if told else UTF8.encode(text)

    def decode(self, raw: bytes, errors: str = "strict") -> str:
        """The text of a file of this encoding, less its mark.

        Raises:
            UnicodeDecodeError: Some bytes mean nothing in it.
        """
        return raw[len(self.mark) :].decode(self.codec, errors)


UTF8: Final = Encoding("utf-8")
_MARKED: Final = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),  # Begins as UTF-16's mark does, so it is looked for first.
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)


def encoding_of(raw: bytes) -> Encoding:
    """What a file that begins so is written in; UTF-8 when nothing says otherwise."""
    for encoding in _MARKED:
        if raw.startswith(encoding.mark):
            return encoding
    if raw.startswith(b"<\x00"):
        return Encoding("utf-16-le")
    return Encoding("utf-16-be") if raw.startswith(b"\x00<") else UTF8


def as_meant(raw: bytes) -> str:
    """The text of a file somebody just wrote: bytes that mean nothing in its encoding are taken as Latin-1.

    An editor may save in the encoding of its locale, and nothing of what was written may be lost for that.
    """
    encoding = encoding_of(raw)
    try:
        return encoding.decode(raw)
    except UnicodeDecodeError:
        text = raw[len(encoding.mark) :].decode("utf-8", "surrogateescape")
        return "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)
