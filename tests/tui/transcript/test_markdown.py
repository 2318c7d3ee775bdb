"""Markdown as lines: looks, safety, and that a streamed text ends up as the same text drawn at once."""

from __future__ import annotations

import re
from itertools import combinations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ragforge_tui.tui.drawing.lines import wrap_spans
from ragforge_tui.tui.drawing.palette import Palette, palette_of
from ragforge_tui.tui.transcript.markdown import render
from ragforge_tui.tui.transcript.stream import StreamedText
from tests.tui.transcript.samples import ANSWER, DARK, text_of

MONO = palette_of({"theme-kind": "mono"}, dark=True, ansi=True)
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_SIMPLE = r"""- item|1. first|2) other|* star|   - nested|    deep|text with words|# head|---|===|```python|```|~~~
def f(): pass|> quote|>> deeper|a **b** `c` *d* ~~e~~|[l](http://x)|[ref]|[ref]: /url|宽字符宽字符|<b>html</b>
$x_1|2^n$ a $y_2$|$$|\(a^2\)|x[^1] y|[^1]: note|[^n]: b|- [ ] to do|  - [x] done **b**|1. [X] n|[ ] no
\|&#27;[31m|&#x202e;|[/x]|![i](u)"""
_TABLES = ["| a | b |", "|---|---|", "| 1 | 2 | 3 |"]
_ODD = ["\tx", "e\u0301\u0301 ", "👩\u200d👩\u200d👧 family", "\x1b[31mred", "\x1b]0;title\x07", "a\rb", "x\u2028y"]
_PIECES = st.sampled_from([*re.split(r"[|\n]", _SIMPLE), "", "", "", *_TABLES, *_ODD])
_DOCUMENTS = st.lists(_PIECES | st.text(max_size=20), max_size=14).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(_DOCUMENTS, st.integers(4, 60))
@example("1. first\n   - nested", 4)
def test_no_line_is_wider_than_asked_and_none_holds_controls(text: str, width: int) -> None:
    for line in render(text, width, DARK):
        assert line.strip.cell_length <= width
        assert cell_len(line.strip.text) == line.strip.cell_length
        assert not CONTROLS.search(line.strip.text)
        assert 0 <= line.gutter <= len(line.strip.text)


@settings(max_examples=200, deadline=None)
@given(_DOCUMENTS, st.integers(8, 60), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_streaming_in_any_pieces_equals_drawing_at_once(text: str, width: int, sizes: list[int]) -> None:
    stream = StreamedText(width, DARK)
    at = step = 0
    while at < len(text):
        size = sizes[step % len(sizes)]
        stream.add(text[at : at + size])
        stream.advance()
        at += size
        step += 1
    stream.finish()
    assert stream.lines == render(text, width, DARK)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab \u0301宽👩\u200d👧e\ufe0f", max_size=60), st.integers(2, 12))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    spans = wrap_spans(text, width)
    assert "".join(text[start:end] for start, end, _ in spans).replace(" ", "") == text.replace(" ", "")
    joined = "".join(f"{text[start:end]}{join}" for start, end, join in spans)
    assert joined == f"{text[spans[0][0] :]}\n", "and joined again they are the text, but for blanks before it"


def test_tasks_have_boxes_and_what_only_looks_like_one_stays() -> None:
    tasks = "- [ ] a `b` and more words\n- [x] **done**\n  1. [X]   nested\n- [ ]\n- [x]no\n- [x](http://a.b)\n\n[ ] no"
    assert text_of(render(tasks, 22, DARK)) == [
        "  ☐ a b and more words",
        "  ☑ done",
        "    1. ☑ nested",
        "  • [ ]",
        "  • [x]no",
        "  • x (http://a.b)",
        "",
        "[ ] no",
    ]


def test_footnotes_are_raised_and_each_has_its_line() -> None:
    text = "It failed[^1] twice[^why].\n\n[^1]: Before the **fix**.\n[^why]: See https://example.org"
    drawn = [line.text for line in render(text, 60, DARK)]
    assert drawn == ["It failed¹ twice[why].", "", "¹ Before the fix.", "[why] See https://example.org"]
    assert [line.text for line in render("`[^1]` [^a b]", 60, DARK)] == ["[^1] [^a b]"]


@pytest.mark.parametrize("palette", [DARK, MONO], ids=["dark", "no colors"])
def test_levels_of_headings_differ(palette: Palette) -> None:
    looks = []
    for level in range(1, 5):
        first, *below = render(f"{'#' * level} Why it waits", 60, palette)
        (words,) = first.strip
        looks.append((words.style, [line.strip.text for line in below]))
        assert "".join(line.text for line in below) == "", "a rule is not copied"
    assert looks[0][1] == ["─" * len("Why it waits")]
    assert all(one != other for one, other in combinations(looks, 2))


def test_headings_have_their_marks_in_plain_mode() -> None:
    plain = msgspec.structs.replace(MONO, plain=True)
    assert text_of(render("# One\n\n### Three", 60, plain)) == ["# One", "", "### Three"]


def test_every_kind_of_block_is_drawn() -> None:
    assert text_of(render(ANSWER, 60, DARK)) == [
        "The managed transaction is retried inside append_turn, but",
        "the turn's uuid is made in it:",
        "",
        f"  │ async def work(tx):{'python · copy':>37}",
        "  │     uuid = uuid4().hex          # a new one on every",
        "  ↪       retry",
        "  │     await tx.run(APPEND, uuid=uuid)",
        "",
        "Two ways to mend it:",
        "",
        "  1. make the uuid before the transaction (idempotent MERGE)",
        "  2. look the turn up by its client id first",
        "     ◦ costs a round trip",
        "     ◦ see the manual (https://example.org/merge)",
        "",
        "way     │ round trips │ risk",
        "────────┼─────────────┼───────────────────────────",
        "before  │ 1           │ none",
        "look up │ 2           │ a race between two writers",
        "",
        "▎ The first one is what the rest of the code does.",
    ]


def test_finished_blocks_are_not_drawn_again() -> None:
    stream = StreamedText(60, DARK)
    stream.add("one\n\ntwo\n\nthr")
    stream.advance()
    before = stream.lines
    stream.add("ee and more\n")
    stream.advance()
    assert all(new is old for new, old in zip(stream.lines[:2], before[:2], strict=True))


def test_items_of_an_open_list_are_not_drawn_again() -> None:
    stream = StreamedText(60, DARK)
    stream.add("- one\n- two\n- thr")
    stream.advance()
    before = stream.lines
    stream.add("ee\n- four\n")
    stream.advance()
    assert stream.lines[0] is before[0]
    assert text_of(stream.lines) == ["  • one", "  • two", "  • three", "  • four"]


def test_rows_of_an_open_table_are_not_drawn_again() -> None:
    stream = StreamedText(60, DARK)
    stream.add("| name | size |\n|---|---|\n| one | 1 |\n| two ")
    stream.advance()
    before = stream.lines
    stream.add("| 2 |\n")
    stream.advance()
    assert all(new is old for new, old in zip(stream.lines[:3], before[:3], strict=True))
    stream.add("| a longer name | 3 |\n\nand so on")
    stream.advance()
    assert text_of(stream.lines)[0] == "name          │ size"
    assert text_of(stream.lines)[-1] == "and so on"


def test_lines_of_an_open_fence_show_at_once() -> None:
    stream = StreamedText(60, DARK)
    stream.add("see:\n\n```python\nx = 1\ny")
    stream.advance()
    assert text_of(stream.lines) == ["see:", "", f"  │ x = 1{'python · copy':>51}", "  │ y"]


def test_a_fence_says_its_language_and_makes_room_for_that() -> None:
    text = f"```python\n{'word ' * 12}\n```\n\n- a\n\n  ```\n  b\n  ```\n"
    assert text_of(render(text, 60, DARK)) == [
        f"  │ {'word ' * 8}   python · copy",
        "  ↪   word word word word",
        "",
        "  • a",
        "",
        f"      │ b{'copy':>51}",
    ]
    assert text_of(render("```python\nx = 1\n```", 22, DARK)) == ["  │ x = 1"], "no room for it"


def test_an_escape_sequence_cut_in_two_does_not_show() -> None:
    stream = StreamedText(60, DARK)
    for piece in ("red \x1b", "[31mtext\x1b[", "0m done\n"):
        stream.add(piece)
        stream.advance()
    assert text_of(stream.lines) == ["red text done"]


@pytest.mark.parametrize("text", ["list[0] = [/x]", "[bold]no markup[/bold]", "[@click=app.quit]x[/]"])
def test_markup_is_text(text: str) -> None:
    assert text_of(render(text, 60, DARK)) == [text]


def test_deep_nesting_is_shown_as_written() -> None:
    text = ">" * 200 + " bottom"
    assert "bottom" in "".join(text_of(render(text, 80, DARK)))


def test_a_table_too_wide_for_the_window_is_stacked() -> None:
    lines = text_of(render("| a | b | c | d |\n|-|-|-|-|\n| one | two | three | four |", 16, DARK))
    assert lines == ["a: one", "b: two", "c: three", "d: four"]


def test_a_wide_table_wraps_in_its_cells() -> None:
    lines = text_of(render("| a | b |\n|-|-|\n| x | " + "word " * 12 + "|", 30, DARK))
    assert len(lines) > 3
    assert all(len(line) <= 30 for line in lines)


FIELDS = """| Field | Type | What it is for |
|---|---|---|
| `headers` | `CaseInsensitiveDict` | Sent with every request unless one overrides them |
| `auth` | `tuple` | A pair |
"""


def test_a_wide_table_splits_no_name_and_keeps_its_rows_apart() -> None:
    lines = render(FIELDS, 60, DARK)
    assert text_of(lines) == [
        "Field   │ Type                │ What it is for",
        "────────┼─────────────────────┼─────────────────────────────",
        "headers │ CaseInsensitiveDict │ Sent with every request",
        "        │                     │ unless one overrides them",
        "────────┼─────────────────────┼─────────────────────────────",
        "auth    │ tuple               │ A pair",
    ]
    assert lines[4].text == "", "a rule between rows is not copied"
    assert len(render(FIELDS, 120, DARK)) == 4, "rows that do not wrap need none"


def columns(table: str, width: int) -> list[str]:
    """The rule below a table's head, column by column."""
    return next(line for line in text_of(render(table, width, DARK)) if "┼" in line).split("┼")


def test_a_table_is_stacked_where_its_names_do_not_fit() -> None:
    assert text_of(render(FIELDS, 36, DARK)) == [
        "Field: headers",
        "Type: CaseInsensitiveDict",
        "What it is for: Sent with every",
        "request unless one overrides them",
        "─" * 36,
        "Field: auth",
        "Type: tuple",
        "What it is for: A pair",
    ]


def test_one_very_long_word_and_words_of_the_head_give_way() -> None:
    path = "src/" + "folder/" * 12
    assert len(columns(f"| path | why |\n|-|-|\n| {path} | {'some words ' * 9}|", 60)[1]) > 15
    heads = "| requests | throughput | milliseconds |\n|-|-|-|\n| 1 | 20 | 300 |"
    assert len(columns(heads, 24)) == 3
    assert text_of(render(heads, 24, DARK))[-1].split(" │ ")[2].strip() == "300"


def test_the_first_row_that_wraps_keeps_all_rows_apart() -> None:
    stream = StreamedText(40, DARK)
    text = "| a | b |\n|-|-|\n" + f"| one | {'word ' * 6}|\n" * 3 + f"| two | {'word ' * 9}|\n| three | four |\n"
    for line in text.splitlines(keepends=True):
        stream.add(line)
        stream.advance()
    growing = text_of(stream.lines)
    stream.finish()
    assert growing == text_of(stream.lines) == text_of(render(text, 40, DARK))
    assert sum("┼" in line for line in growing) == 5


@pytest.mark.parametrize("before", ["", "Words above:\n", "A paragraph.\n\n", "Long words. " * 90 + "\n"])
def test_the_head_of_a_table_shows_once_it_is_one(before: str) -> None:
    stream = StreamedText(60, DARK)
    for char in f"{before}| Field | Type |\n|---|:--|\n| a | b":
        stream.add(char)
        stream.advance()
        assert "|" not in "".join(text_of(stream.lines))
    assert text_of(stream.lines)[-2:] == ["Field │ Type", "──────┼─────"]


def test_a_line_that_only_begins_like_a_table_shows() -> None:
    stream = StreamedText(60, DARK)
    for text, shown in (("|x| is a size", []), ("\nand", ["|x| is a size and"]), (" 1", ["|x| is a size and 1"])):
        stream.add(text)
        stream.advance()
        assert text_of(stream.lines) == shown
    stream = StreamedText(700, DARK)
    stream.add("| " + "word " * 120)
    stream.advance()
    assert stream.lines, "too long for a head"
    stream = StreamedText(60, DARK)
    for piece in ("```\n", "| a | b |\n"):
        stream.add(piece)
        stream.advance()
    assert "| a | b |" in text_of(stream.lines)[0], "code"
    stream = StreamedText(60, DARK)
    stream.add("| a")
    stream.finish()
    assert text_of(stream.lines) == ["| a"]
