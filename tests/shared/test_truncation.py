"""Texts cut to head and tail, and the marks that are found again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.truncation import SMALLEST_SAVING, cut_lines, cut_middle, marks_in

LINES = st.lists(st.text(alphabet="ab é", max_size=80), max_size=120).map("\n".join)


@given(text=LINES | st.text(max_size=3_000), limit=st.integers(120, 2_000))
def test_a_cut_saves_much_or_is_not_made(text: str, limit: int) -> None:
    cut = cut_lines(text, limit)
    if cut == text:
        assert len(text) * (1 - SMALLEST_SAVING) <= limit or not text
        return
    (mark,) = marks_in(cut) - marks_in(text)
    head, tail = cut.split(mark, 1)
    assert text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail.removeprefix("\n"))
    assert len(cut) <= limit + len(mark) + 2
    assert len(cut) < len(text)


@given(text=LINES | st.text(max_size=3_000), limit=st.integers(0, 2_000))
def test_no_mark_is_longer_than_what_it_replaces(text: str, limit: int) -> None:
    assert len(cut_lines(text, limit)) <= len(text)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("line\n" * 400, "[… 301 lines left out …]"),
        ("line\r\n" * 400, "[… 318 lines left out …]"),
        ("short\n" * 55 + "x" * 5_000 + "\n" + "short\n" * 27, "[… 1 line left out …]"),
        ("x" * 2_000, "[… 1500 characters left out …]"),
    ],
    ids=["lines", "lines with CR", "one long line", "no line end"],
)
def test_a_cut_is_made_at_line_ends_where_there_are_any(text: str, mark: str) -> None:
    assert marks_in(cut_lines(text, 500)) == {mark}


def test_marks_of_other_cuts_are_found_and_mere_words_are_not() -> None:
    assert marks_in(cut_middle("x" * 900, 100)) == {"[800 characters left out]"}
    assert marks_in("[… 1 line left out …] [12 lines left out]") == {"[… 1 line left out …]", "[12 lines left out]"}
    assert not marks_in("3 lines left out, [{cut} characters left out] and [lines left out]")
