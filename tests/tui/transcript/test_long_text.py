"""Texts so long that their lines are made when they are looked at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection

from ragforge_tui.tui.drawing.lines import BLANK, LONG, LongText, stack, texts_of, wrap
from ragforge_tui.tui.transcript.blocks import Block, HeadBlock, TextBlock, UserBlock
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from ragforge_tui.tui.transcript.viewport import LINES_PER_BLOCK, text_between
from tests.tui.transcript.samples import DARK, called, lines_made, text_of

STYLE = Style(bold=True)
BAR = ("▎ ", Style(dim=True))
LONG_TEXT = "".join(f"line {number} of a long text, with a few words in it\n" for number in range(LONG // 30))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab 宽\n", max_size=80), st.integers(3, 20))
def test_its_lines_are_those_made_at_once(text: str, width: int) -> None:
    lines = LongText(text, width, STYLE, bar=BAR)
    assert list(lines) == wrap([(text, STYLE)], width, first=[BAR], rest=[BAR])
    assert lines[-1] == lines[len(lines) - 1] and lines[1:3] == list(lines)[1:3]


def test_lines_of_several_parts_are_one_sequence() -> None:
    long = LongText("one two", 3, STYLE)
    lines = stack([BLANK], stack([BLANK], long), [], [BLANK])
    assert [line.text for line in lines] == ["", "", "one", "two", ""]
    assert [line.text for line in lines[1:4]] == ["", "one", "two"] and lines[-1] is BLANK
    assert list(texts_of(lines)) == [line.text for line in lines]
    assert isinstance(stack([BLANK], [BLANK]), list)


def opened(block: Block) -> Block:
    """A block, unfolded."""
    block.toggle()
    assert block.folded is False
    return block


def test_long_messages_and_thoughts_unfold_whole() -> None:
    head = HeadBlock(1, "m", name="Ada", glyph="*")
    head.thought(LONG_TEXT)
    answer = TextBlock(1, "m", gap=1)
    answer.finish(LONG_TEXT * 8)
    asked = UserBlock(1, "m", LONG_TEXT, name="you", when="now")
    last = LONG_TEXT.splitlines()[-1]
    assert text_of(opened(head).lines(80, DARK))[-2:] == [f"▎ {last}", ""]
    assert text_of(opened(asked).lines(80, DARK))[-3:] == [last, "", "fold ▾"]
    assert text_of(opened(answer).lines(80, DARK))[-3:] == [last, "", "fold ▾"]


def test_a_selection_in_a_long_text_is_copied_as_it_was_written() -> None:
    block = opened(UserBlock(1, "m", "word " * LONG, name="you", when="now"))
    first = block.serial * LINES_PER_BLOCK + 2
    chosen = Selection(Offset(2, first), Offset(6, first + 1))
    assert text_between([block], chosen, 80, DARK, margin=2) == ("word " * 17).rstrip()


def test_copying_a_little_and_looking_for_a_text_do_not_make_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    made = lines_made(monkeypatch)
    block = opened(UserBlock(1, "m", LONG_TEXT, name="you", when="now"))
    top = block.serial * LINES_PER_BLOCK
    chosen = Selection(Offset(2, top + 4), Offset(8, top + 5))
    assert text_between([block], chosen, 80, DARK, margin=2) == LONG_TEXT.splitlines()[2] + "\nline 3"
    assert len(made) == 2
    assert sum("line" in text for text in texts_of(block.lines(80, DARK))) == LONG_TEXT.count("\n")
    assert len(made) == 2


def test_a_call_shows_the_beginning_of_what_is_long_and_shows_how_to_read_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = "x" * 100_000
    made = called("write_file", {"path": "a", "content": long}, {"text": long})
    lines = text_of(opened(ToolBlock(1, made, gap=0)).lines(100, DARK))
    assert len(lines) < 500
    assert [line.strip() for line in lines if "more characters" in line] == [
        "│ … 80 000 more characters; v shows all",
        "│ … 80 000 more characters; v shows all",
    ]
    changed = "@@ -0,0 +1,5000 @@\n" + "+line\n" * 5_000
    edited = called("edit_file", {"path": "a"}, {"text": "", "diff": changed})
    block = ToolBlock(1, edited, gap=0)
    lines = text_of(block.lines(100, DARK))
    assert len(lines) == 14 and lines[-1].strip() == "… 4 988 more lines"
    made = lines_made(monkeypatch)
    whole = opened(block).lines(100, DARK)
    assert len(whole) > 5_000 and len(made) < 50, "only what is looked at is drawn"
    assert whole[-1].text == "line" and len(made) < 60
