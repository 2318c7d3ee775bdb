"""Images that a user's message names: their formats, and the line that stands for one in the text of a message.

The text of a message never holds an image, only its line with the digest of the stored bytes. So every part of the
program handles text alone, and the bytes join a request at the very end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

IMAGE_TOKENS = 1_100
"""Estimate for one image; providers count between 85 and some 1,600."""
HEAD_BYTES = 16
"""Bytes from which `media_type` tells the format."""

_LINE = re.compile(r"^\[image ([^\[\]\n]+, \d+x\d+, \d+ (?:B|kB|MB)), stored as ([0-9a-f]{64})\]$", re.MULTILINE)
_NO_FRAME = (0xC4, 0xC8, 0xCC)
"""JPEG segments between 0xC0 and 0xCF that hold no size."""
_BARE = (0x01, *range(0xD0, 0xD9))
"""JPEG markers without a length."""


class ImageLine(NamedTuple):
    """Line of an image in the text of a message: what is shown of it, and the digest of its bytes."""

    shown: str
    digest: str

    def __str__(self) -> str:
        return f"[image {self.shown}, stored as {self.digest}]"


def image_lines(text: str) -> list[ImageLine]:
    """Return the lines of images in a text, in order."""
    return [ImageLine(*found) for found in _LINE.findall(text)] if "[image " in text else []


def replaced_lines(text: str, new: Callable[[ImageLine], str]) -> str:
    """Return a text with each line of an image replaced."""
    return _LINE.sub(lambda found: new(ImageLine(found[1], found[2])), text)


def image_tokens(text: str) -> int:
    """Return the tokens of the images whose lines a text holds."""
    return IMAGE_TOKENS * len(image_lines(text))


def media_type(content: bytes) -> str:
    """Return the media type of an image that models take, by its first bytes; empty for anything else."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return ""


def dimensions(content: bytes) -> tuple[int, int] | None:
    """Return width and height of an image, None if its header does not tell them."""
    read = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}.get(media_type(content))
    size = read(content) if read is not None else (0, 0)
    return size if all(size) else None


def _png(content: bytes) -> tuple[int, int]:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return 0, 0
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _gif(content: bytes) -> tuple[int, int]:
    if len(content) < 10:
        return 0, 0
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _webp(content: bytes) -> tuple[int, int]:
    kind = content[12:16]
    if kind == b"VP8X" and len(content) >= 30:
        return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
    if kind == b"VP8L" and len(content) >= 25:
        bits = int.from_bytes(content[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(content) >= 30:
        return int.from_bytes(content[26:28], "little") & 0x3FFF, int.from_bytes(content[28:30], "little") & 0x3FFF
    return 0, 0


def _jpeg(content: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _BARE:
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            return int.from_bytes(content[at + 7 : at + 9], "big"), int.from_bytes(content[at + 5 : at + 7], "big")
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return 0, 0
