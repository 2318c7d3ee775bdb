"""What a selection copies: the text as it stands in its source, whatever wraps, tints and folds it on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from textual.geometry import Offset
from textual.selection import Selection

from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tui.drawing.code_breaks import code_spans
from ragforge_tui.tui.drawing.diff_lines import SIDE_BY_SIDE, Diff
from ragforge_tui.tui.transcript.blocks import Block, TextBlock, UserBlock
from ragforge_tui.tui.transcript.diff_block import DiffBlock
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from ragforge_tui.tui.transcript.viewport import LINES_PER_BLOCK, text_between
from tests.tui.transcript.samples import DARK, called

MARGIN = 2
_LINE = st.text(alphabet="ab_x0.,;:()[]{}=+-/\"' 宽é", max_size=90)
_CODE = st.lists(_LINE, min_size=1, max_size=8)
_SENTENCES = st.lists(
    st.lists(st.text(alphabet="abc,.宽é", min_size=1, max_size=30), max_size=12), min_size=1, max_size=5
)


def copied(block: Block, width: int, first: int, *, at: int = 0, end: Offset | None = None) -> str:
    """The text that is copied of a block from one of its lines on; `at` is the first character of the selection."""
    top = block.serial * LINES_PER_BLOCK
    stop = Offset(end.x + MARGIN, top + end.y) if end is not None else None
    return text_between([block], Selection(Offset(at + MARGIN, top + first), stop), width, DARK, margin=MARGIN)


def together(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip("\n")


@settings(max_examples=200)
@given(_CODE, st.integers(12, 70), st.booleans())
@example(["    foo(a,   b)   ", "x" * 40], 12, False)
def test_a_fence_is_copied_as_it_was_written(code: list[str], width: int, streamed: bool) -> None:
    block = TextBlock(1, "m", gap=0)
    text = "```python\n" + "\n".join(code) + "\n```"
    if streamed:
        block.append(text[: len(text) // 2])
        block.lines(width, DARK)
        block.append(text[len(text) // 2 :])
    block.finish(text)
    assert copied(block, width, 0) == together(code)


@settings(max_examples=200)
@given(_SENTENCES, st.integers(34, 70))
def test_a_message_is_copied_as_it_was_typed(sentences: list[list[str]], width: int) -> None:
    text = "\n".join("  ".join(words) for words in sentences)
    block = UserBlock(1, "m", text, name="you", when="now")
    assert copied(block, width, block.gap + 1) == text.strip("\n")


@settings(max_examples=150)
@given(_CODE, st.integers(20, 90))
def test_an_answer_in_prose_is_copied_without_added_blanks(words: list[str], width: int) -> None:
    text = " ".join("".join(letter for letter in word if letter.isalnum()) or "x" for word in words)
    assume(not text[0].isdigit())
    block = TextBlock(1, "m", gap=0)
    block.finish(text)
    assert copied(block, width, 0) == text


@settings(max_examples=200)
@given(_CODE, _CODE, st.integers(20, SIDE_BY_SIDE - 1))
@example(["needed, at some length, for the chat"], ["needed  , at some"], 20)
def test_a_diff_is_copied_without_numbers_and_signs(before: list[str], after: list[str], width: int) -> None:
    diff = Diff(unified_diff("\n".join(before), "\n".join(after), "x.py"))
    assume(diff.files)
    rows = [row.text for row in diff.files[0].rows if row.sign in ("+", "-", " ")]
    assert copied(DiffBlock(diff), width, 1) == together(rows)


@settings(max_examples=150)
@given(_CODE, _CODE, st.integers(SIDE_BY_SIDE, 170))
def test_of_two_sides_the_one_that_was_dragged_over_is_copied(before: list[str], after: list[str], width: int) -> None:
    diff = Diff(unified_diff("\n".join(before), "\n".join(after), "x.py"))
    assume(diff.files and all(diff.files[0].counts))
    [file] = diff.files
    block = DiffBlock(diff)
    lines = block.lines(width, DARK)
    last = len(lines) - 1
    right = width // 2 + 4
    assert copied(block, width, 1, at=right - 1).endswith(together(file.new_lines[1:]))
    assert copied(block, width, 1, at=0, end=Offset(right - 8, last)) == together(file.old_lines)
    assert copied(block, width, 0) == together(["x.py", *file.new_lines]), "both sides: what stands in the file now"


def test_what_is_folded_and_what_only_says_so_is_not_copied() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 60))
    after = before.replace("line 5\n", "line five\n").replace("line 50\n", "line fifty\n")
    diff = unified_diff(before, after, "a.txt")
    whole = copied(DiffBlock(Diff(diff)), 60, 1)
    assert "unchanged" not in whole and "line 8\nline 47\n" in whole
    call = ToolBlock(1, called("edit_file", {"path": "a.txt"}, {"text": "", "diff": diff}), gap=0)
    assert copied(call, 60, 1).startswith("line 2\nline 3\nline 4\nline 5\nline five\n")


@settings(max_examples=300)
@given(_LINE, st.integers(6, 50), st.integers(4, 50))
def test_code_is_broken_between_words(line: str, width: int, first: int) -> None:
    spans, indent = code_spans(line, width, min(first, width))
    assert "".join(f"{line[start:end]}{join}" for start, end, join in spans) == f"{line}\n"
    assert indent < width // 2
    for start, _, _ in spans[1:]:
        assert line[start : start + 1] != " "


def test_code_breaks_where_a_reader_would_break_it() -> None:
    def broken(line: str, width: int) -> list[str]:
        spans, indent = code_spans(line, width)
        return [(" " * indent if start else "") + line[start:end] for start, end, _ in spans]

    call = "    found = search(text, limit=20).first_of(kind)"
    assert broken(call, 30) == ["    found = search(text,", "      limit=20).first_of(kind)"]
    assert broken("session.get(address).json().items()", 20) == ["session.get(", "  address).json().", "  items()"]
    assert broken("# it was needed, at some length", 15) == ["# it was", "  needed, at", "  some length"]
    assert broken("key = '" + "A" * 30 + "'", 16) == ["key = 'AAAAAAAAA", "  AAAAAAAAAAAAAA", "  AAAAAAA'"], (
        "hard, too wide"
    )
    assert broken("                        deep()", 20) == ["                    ", "          deep()"]
