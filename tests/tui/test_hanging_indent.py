"""Continuation lines are indented below the text, not below its number."""

from __future__ import annotations

from textual.content import Content

from ragforge_tui.shared.persona_records import PersonaRemark
from ragforge_tui.tui.personas.persona_preview import HangingLine, indented, source_lines, wrap_hanging


def rows(lines: list[HangingLine], width: int) -> list[str]:
    return wrap_hanging(lines, width).plain.split("\n")


def test_words_continue_next_to_the_number_and_the_indentation() -> None:
    text = "<a>\n    one two three four five six seven\n</a>"
    assert rows(source_lines(text, []), 24) == [
        "1   <a>",
        "2       one two three",
        "        four five six",
        "        seven",
        "3   </a>",
    ]


def test_problems_are_indented_and_fit_the_width() -> None:
    remark = PersonaRemark(line=1, column=1, message="a rather long message about what is wrong", severity="warning")
    shown = rows(source_lines("x" * 100 + "字" * 30, [remark]), 30)
    assert all(Content(row).cell_length <= 30 for row in shown)
    assert all(row.startswith(" " * 4) for row in shown[1:])
    assert "".join(row[4:] for row in shown[:6]).startswith("x" * 100)


def test_where_there_is_hardly_room_the_line_is_left_whole() -> None:
    assert rows([indented(Content("12 "), Content(" " * 40 + "deep"))], 30) == ["12 " + " " * 40 + "deep"]
    assert rows([HangingLine(Content("12 "), Content("one two"))], 0) == ["12 one two"]
