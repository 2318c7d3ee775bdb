"""Images by their first bytes: format and size, and the line that stands for one."""

from __future__ import annotations

import struct

import pytest

from ragforge_tui.shared.images import (
    IMAGE_TOKENS,
    ImageLine,
    dimensions,
    image_lines,
    image_tokens,
    media_type,
    replaced_lines,
)

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1200, 800)
GIF = b"GIF89a" + struct.pack("<HH", 1200, 800)
EXIF = b"\xff\xe1" + struct.pack(">H", 6) + b"\xff\xc0\x00\x00"
JPEG = b"\xff\xd8" + EXIF + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 800, 1200) + bytes(10)
VP8X = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (1199).to_bytes(3, "little") + (799).to_bytes(3, "little")
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (1199 | 799 << 14).to_bytes(4, "little")
VP8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 1200, 800)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "image/png"),
        (GIF, "image/gif"),
        (JPEG, "image/jpeg"),
        (VP8X, "image/webp"),
        (VP8L, "image/webp"),
        (VP8, "image/webp"),
    ],
)
def test_the_header_tells_format_and_size(content: bytes, kind: str) -> None:
    assert media_type(content) == kind
    assert dimensions(content) == (1200, 800)
    assert all(dimensions(content[:length]) in (None, (1200, 800)) for length in range(len(content)))


def test_what_is_no_image_has_no_size() -> None:
    for content in (b"", b"text", b"RIFF\0\0\0\0WAVEfmt ", b"\x89PNG\r\n\x1a\n" + bytes(40), b"%PDF-1.7"):
        assert dimensions(content) is None


def test_a_line_stands_for_an_image_only_by_itself() -> None:
    line = ImageLine("a shot.png, 1200x800, 340 kB", "0" * 64)
    text = f"Before.\n{line}\nAfter."
    assert image_lines(text) == [line] and image_tokens(text) == IMAGE_TOKENS
    assert replaced_lines(text, lambda found: found.shown) == "Before.\na shot.png, 1200x800, 340 kB\nAfter."
    assert image_lines(f"Quoted: {line}") == [] == image_lines(f"     1\t{line}")
