"""Encodings are known by how a file begins, and what an editor saved is never lost."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.encoding import decode_saved, encoding_of

TEXT = "<x>é ∆ ⛧\u200d🜂\r\n</x>"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_there_and_back(codec: str) -> None:
    raw = TEXT.encode(codec)
    encoding = encoding_of(raw)
    assert encoding.decode(raw) == decode_saved(raw) == TEXT
    assert encoding.encode_detectable(TEXT) == encoding.encode(TEXT) == raw


def test_invalid_utf_8_is_read_as_latin_1() -> None:
    assert decode_saved("é à".encode("latin-1")) == "é à"
    assert decode_saved("é ∆".encode() + b"\xe9") == "é ∆é"
    assert decode_saved(b"") == ""


def test_a_text_that_no_longer_shows_its_encoding_is_written_so_that_it_can_be_read() -> None:
    encoding = encoding_of(TEXT.encode("utf-16-le"))
    raw = encoding.encode_detectable("é without a tag")
    assert encoding_of(raw).decode(raw) == "é without a tag"
