"""Text files as text and back: detection of the encoding, byte order marks and line ends.

Used by the file tools and the search process, for persona files, and to read a file back from an editor. Text that is
decoded here has the very bytes of the file when it is encoded again: bytes that fit no encoding are kept as surrogates.
Uses no other module of the package.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Encoding(NamedTuple):
    """Codec of a file's text, with an optional byte order mark.

    Attributes:
        errors: Python's name of the way to keep bytes that the codec cannot read.
        returns: Lines end with carriage returns alone; the text has newlines in their place.
    """

    codec: str
    mark: bytes = b""
    errors: str = "strict"
    returns: bool = False

    @property
    def unknown(self) -> bool:
        """Whether only the ASCII part of the file can be read."""
        return self.codec == "ascii"

    def encode(self, text: str) -> bytes:
        """Encode a text with its mark.

        Raises:
            UnicodeEncodeError: The encoding lacks a character.
        """
        text = text.replace("\n", "\r") if self.returns else text
        return self.mark + text.encode(self.codec, self.errors)

    def encode_detectable(self, text: str) -> bytes:
        """Encode a text with its mark; as UTF-8 if the encoding could not be detected from the result."""
        raw = self.mark + text.encode(self.codec, "surrogatepass")
        detectable = self.codec == UTF8.codec or encoding_of(raw).codec == self.codec
        return raw if detectable else UTF8.encode_detectable(text)

    def decode(self, raw: bytes, errors: str = "") -> str:
        """Decode a file's bytes and drop the mark.

        Raises:
            UnicodeDecodeError: Some bytes are invalid in this encoding.
        """
        return raw[len(self.mark) :].decode(self.codec, errors or self.errors)


UTF8: Final = Encoding("utf-8")
_MARKED: Final = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),  # Starts with the mark of UTF-16, so it must be tried first.
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)
_KEPT: Final = "surrogateescape"
_BINARY_BYTES: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b\v")
_SAMPLED: Final = 65_536
_TOLD_APART: Final = 0.005
"""Confidence below which the detector guesses; western texts with one sign are there."""
_NOT_ASCII = re.compile(rb"[^\n]*[\x80-\xff][^\n]*\n?")
_MIXED_WORD = re.compile(
    r"[A-Za-z][\u0370-\u0fff]|[\u0370-\u0fff][A-Za-z]|[\uac00-\ud7a3][\u4e00-\u9fff]|[\u4e00-\u9fff][\uac00-\ud7a3]"
)
_SHIFT_CODECS: Final = ("iso2022_jp", "iso2022_jp_ext", "iso2022_kr")


def encoding_of(raw: bytes) -> Encoding:
    """Detect the encoding by the mark, or by the zero byte next to an initial `<`; UTF-8 without any indication."""
    for encoding in _MARKED:
        if raw.startswith(encoding.mark):
            return encoding
    if raw.startswith(b"<\x00"):
        return Encoding("utf-16-le")
    return Encoding("utf-16-be") if raw.startswith(b"\x00<") else UTF8


def decode(content: bytes) -> tuple[str, Encoding] | None:
    """Return the text of any file and its encoding, None for binary content.

    Line ends stay, but for carriage returns where there are no newlines.
    The text may contain surrogates; see `readable` for one without.
    """
    for encoding in _possible(content):
        try:
            text = encoding.decode(content)
            if encoding.codec != UTF8.codec and encoding.encode(text) != content:
                continue
        except UnicodeError:
            continue
        if "\r" in text and "\n" not in text:
            return text.replace("\r", "\n"), encoding._replace(returns=True)
        return text, encoding
    return None


def readable(content: bytes) -> str | None:
    """Return the text of a file with its line ends and a sign for bytes of no encoding, None for binary content."""
    decoded = decode(content)
    if decoded is None:
        return None
    text, encoding = decoded
    return (text.replace("\n", "\r") if encoding.returns else text).encode("utf-8", "replace").decode()


def _possible(content: bytes) -> Iterator[Encoding]:
    """Yield the encodings that a file may have, the most likely first; none for binary content."""
    marked = next((encoding for encoding in _MARKED if content.startswith(encoding.mark)), None)
    if marked is not None:
        yield marked
        return
    sample = content[:_SAMPLED]
    if b"\0" in content:
        yield from _two_bytes_each(sample)
        return
    if b"\x1b$" in content and content.isascii():
        yield from map(Encoding, _SHIFT_CODECS)
    yield UTF8
    if len(sample.translate(None, _BINARY_BYTES)) < len(sample):
        return
    text = content.decode("utf-8", _KEPT)
    kept = sum("\udc80" <= sign <= "\udcff" for sign in text)
    if kept < sum(sign > "\x7f" for sign in text) - kept:
        yield Encoding("utf-8", errors=_KEPT)  # UTF-8 with a few other bytes
    yield from _detected(content)
    yield Encoding("ascii", errors=_KEPT)


def _two_bytes_each(sample: bytes) -> Iterator[Encoding]:
    """Yield the form of UTF-16 in which a text without a mark has no controls."""
    for codec, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        start = sample[: len(sample) // 2 * 2].decode(codec, "replace")
        if zeros.count(0) * 4 >= len(zeros) and start.encode("utf-8", "replace").translate(None, _BINARY_BYTES) == (
            start.encode("utf-8", "replace")
        ):
            yield Encoding(codec)


def _detected(content: bytes) -> Iterator[Encoding]:
    """Yield the encodings that the lines with other letters suggest; words of two alphabets speak against one."""
    import chardet

    lines = b"".join(_NOT_ASCII.findall(content))[:_SAMPLED]
    guesses = chardet.detect_all(lines, encoding_era=chardet.EncodingEra.MODERN_WEB, prefer_superset=True)
    for guess in guesses:
        codec, confidence = guess["encoding"], guess["confidence"]
        if codec and confidence >= _TOLD_APART and not _MIXED_WORD.search(lines.decode(codec, "replace")):
            yield Encoding(codecs.lookup(codec).name)
            return
    yield Encoding("cp1252")


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


def lines_of(text: str) -> list[str]:
    """Split into lines without their ends. Only newlines end a line, so that line numbers agree with other tools."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
