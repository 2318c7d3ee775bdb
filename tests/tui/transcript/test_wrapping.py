"""Where lines are broken."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragforge_tui.tui.drawing.lines import wrap_spans

UNMEASURED = "ab  é—"
AS_WIDE = str.maketrans("abé—", "☀☁☂☃")
"""Signs of one cell as well, which have to be measured."""


@settings(max_examples=600, deadline=None)
@given(st.text(alphabet=UNMEASURED, max_size=80), st.integers(1, 14))
@example("   aaaa", 5)
@example("  aaaaaaaaaa", 5)
@example("aaa  b     ", 3)
@example("a" * 30, 7)
@example("      ", 3)
def test_text_that_need_not_be_measured_is_broken_as_if_it_were(text: str, width: int) -> None:
    assert wrap_spans(text, width) == wrap_spans(text.translate(AS_WIDE), width)


def test_words_stay_whole_and_blanks_at_a_break_belong_to_neither() -> None:
    text = "one two  three fourfourfour"
    assert [text[start:end] for start, end, _ in wrap_spans(text, 8)] == ["one two", "three fo", "urfourfo", "ur"]
    assert [join for _, _, join in wrap_spans(text, 8)] == ["  ", "", "", "\n"]
