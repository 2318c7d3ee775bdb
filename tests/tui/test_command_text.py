"""Commands as rows: what of them is seen before they are approved."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.tui.questions.command_text import CommandText


def shown(command: str, width: int = 40, room: int = 10) -> list[str]:
    rows, _ = CommandText(command).rows(width, room)
    return [row.gutter + row.text for row in rows]


def test_a_short_command_is_shown_as_it_is() -> None:
    assert shown("git status") == ["$ git status"]
    assert shown("cd src\n\nmake") == ["$ cd src", "2 ", "3 make"]


def test_lines_that_are_far_below_are_folded_up() -> None:
    assert shown("git status" + "\n" * 60 + "touch x") == [" $ git status", " ⋮ 59 blank lines", "61 touch x"]
    assert shown("ls" + " " * 5000 + "; touch x") == ["$ ls⟨5000 blanks⟩; touch x"]


def test_a_long_command_shows_both_ends_and_how_much_is_between() -> None:
    lines = shown("a" * 100_200 + "; touch x", width=42, room=8)
    assert len(lines) == 8 and lines[0] == "$ " + "a" * 40
    assert lines[4] == "⋮ 99 929 characters between"
    assert "".join(line[2:] for line in lines[5:]).endswith("aaa; touch x")


def test_many_lines_are_counted() -> None:
    command = CommandText("\n".join(f"step {number}" for number in range(1, 63)))
    rows, folded = command.rows(40, 7)
    assert folded and command.line_count == 62
    assert [row.gutter + row.text for row in rows] == [
        " $ step 1",
        " 2 step 2",
        " 3 step 3",
        " ⋮ 56 more lines, 443 characters between",
        "60 step 60",
        "61 step 61",
        "62 step 62",
    ]


def test_a_second_line_cannot_pass_for_the_wrapped_rest_of_the_first() -> None:
    comment = "# a long comment that reaches the end"
    assert shown(f"{comment}\ntouch x", width=len(comment) + 2) == [f"$ {comment}", "2 touch x"]
    assert shown(f"{comment} touch x", width=len(comment) + 2) == [f"$ {comment}", "↪  touch x"]
    assert shown("ls\n↪ touch x") == ["$ ls", "2 ↪ touch x"]


def test_wide_letters_keep_to_their_cells() -> None:
    assert shown("echo 日本語日本語", width=12) == ["$ echo 日本", "↪ 語日本語"]


@given(
    st.text(alphabet=st.sampled_from(["a", " ", "\n", "日", "\u0301", ";"]), max_size=400).filter(str.strip),
    st.integers(4, 30),
    st.integers(1, 12),
)
def test_the_end_is_always_shown_and_nothing_twice(command: str, width: int, room: int) -> None:
    text = CommandText(command)
    rows, folded = text.rows(width, room)
    assert len(rows) <= max(room, 3)
    assert rows[0].start == 0 and rows[-1].end == text._starts[-1] - 1
    assert all(one.end <= following.start for one, following in pairwise(rows))
    if not folded:
        assert all(following.start - one.end <= 1 for one, following in pairwise(rows))


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_smallest_room_still_holds_both_ends(room: int) -> None:
    assert shown("first\n" * 9 + "last", room=room) == [" $ first", " ⋮ 8 more lines, 49 characters between", "10 last"]
