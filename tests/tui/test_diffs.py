"""Diffs as lines: what they are read from, how they look, what they cost."""

from __future__ import annotations

import random
import re
from difflib import unified_diff as reference_diff

import pytest
from rich.cells import cell_len
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tui.drawing import theme
from ragforge_tui.tui.drawing.diff_lines import SIDE_BY_SIDE, Diff, changed_words
from ragforge_tui.tui.drawing.diff_parser import diff_counts, parse_diff
from ragforge_tui.tui.drawing.lines import Line
from ragforge_tui.tui.drawing.palette import Palette, contrast, on_ground, palette_of
from tests.support.hostile import HOSTILE
from tests.tui.transcript.samples import DARK, lines_made

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
OLD = "".join(f"line {number}\n" for number in range(1, 60))
CODE = 'import os\n\n\ndef first(x: int) -> str:\n    """Say it."""\n    return "one" + str(x)  # there\n'


def palette(own: Theme, *, plain: bool = False) -> Palette:
    variables = own.to_color_system().generate() | own.variables | ({"plain": "yes"} if plain else {})
    return palette_of(variables, dark=own.dark, ansi=own.ansi)


def drawn(diff: str, width: int = 80, styles: Palette = DARK) -> list[str]:
    return [line.strip.text.rstrip() for line in Diff(diff).lines(width, styles)]


class TestReading:
    def test_a_line_that_looks_like_the_head_of_a_file_is_a_line(self) -> None:
        before, after = "-- all\nselect 1;\n-- rest\n", "++ all\nselect 1;\n"
        diff = unified_diff(before, after, "q.sql")
        assert "\n--- all\n+++ all\n" in diff
        [file] = parse_diff(diff)
        assert [(row.sign, row.text) for row in file.rows] == [
            ("-", "-- all"),
            ("+", "++ all"),
            (" ", "select 1;"),
            ("-", "-- rest"),
        ]
        assert diff_counts(diff) == (1, 2)

    def test_several_files_with_numbers_and_folded_parts(self) -> None:
        changed = OLD.replace("line 5\n", "line five\n").replace("line 40\n", "")
        diff = unified_diff(OLD, changed, "a.txt") + unified_diff(None, "new\n", "b.txt")
        first, second = parse_diff(diff)
        assert (first.path, first.state, first.counts) == ("a.txt", "changed", (1, 2))
        assert (second.path, second.state, second.counts) == ("b.txt", "new", (1, 0))
        assert [row.text for row in first.rows if row.sign == "fold"] == ["28 unchanged lines"]
        assert [(row.old, row.new) for row in first.rows if row.sign == "-"] == [(5, 0), (40, 0)]

    def test_a_file_that_was_deleted_keeps_its_name(self) -> None:
        [file] = parse_diff("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
        assert (file.path, file.state, file.rows[0].old) == ("x.py", "deleted", 1)

    def test_wrong_counts_hide_nothing(self) -> None:
        diff = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n+more\n"
        first, second, rest = parse_diff(diff)
        assert (first.counts, second.path, second.counts) == ((0, 1), "y", (1, 1))
        assert [row.text for row in rest.rows] == ["+more"]

    def test_remarks_stay(self) -> None:
        diff = "b.png: binary, 3 bytes.\n" + unified_diff("a", "b", "x") + "\n[diff cut, 99 characters]\n"
        text = "\n".join(drawn(diff))
        assert "b.png: binary, 3 bytes." in text and "[diff cut, 99 characters]" in text
        assert "No newline at end of file" in text

    @pytest.mark.parametrize("seed", range(20))
    def test_the_shown_lines_are_those_of_the_files(self, seed: int) -> None:
        choice = random.Random(seed)
        words = ["-- a", "++ b", "@@ -1 +1 @@", "", "x = 1", "--- a/q", "+++ b/q", "\\ No"]
        old = [choice.choice(words) for _ in range(40)]
        new = [line for line in old if choice.random() > 0.2] + [choice.choice(words) for _ in range(5)]
        diff = "\n".join(reference_diff(old, new, "a/f", "b/f", lineterm="", n=100))
        files = parse_diff(diff)
        if files:
            assert (files[0].old_lines, files[0].new_lines) == (old, new)


class TestLooks:
    def test_file_counts_numbers_and_signs(self) -> None:
        assert drawn(unified_diff("a = 1\nb\n", "a = 2\nb\n", "x.py")) == [
            " x.py  +1 −1",
            "    - a = 1",
            "  1 + a = 2",
            "  2   b",
        ]

    def test_changed_rows_are_tinted_to_the_edge_and_changed_words_more(self) -> None:
        lines = Diff(unified_diff("total = count * 1\n", "total = count * 2\n", "x.py")).lines(60, DARK)
        for line, tint, word in (
            (lines[1], DARK.removed_row, DARK.removed_word),
            (lines[2], DARK.added_row, DARK.added_word),
        ):
            grounds = [s.style.bgcolor for s in line.strip if s.style for _ in s.text]
            assert len(grounds) == 60 and set(grounds) == {tint.bgcolor, word.bgcolor}
            assert grounds.count(word.bgcolor) == 1, "only the number changed"

    def test_code_keeps_its_colours(self) -> None:
        lines = Diff(unified_diff(None, CODE, "x.py")).lines(80, DARK)
        inks = {segment.text.strip(): segment.style for line in lines for segment in line.strip if segment.style}
        assert inks["def"].color == DARK.keyword.color and inks["def"].bgcolor == DARK.added_row.bgcolor
        assert inks['"""Say it."""'] == on_ground(DARK.comment, DARK.added_row, DARK)

    def test_two_sides_from_some_width_on(self) -> None:
        diff = unified_diff("a\nold one\nz\n", "a\nnew one\nnew two\nz\n", "x.txt")
        assert len(drawn(diff, SIDE_BY_SIDE - 1)) == 6
        wide = drawn(diff, SIDE_BY_SIDE)
        assert [" ".join(line.split()) for line in wide] == [
            "x.txt +2 −1",
            "1 a 1 a",
            "2 - old one 2 + new one",
            "3 + new two",
            "3 z 4 z",
        ]
        assert wide[2].index("new one") > SIDE_BY_SIDE // 2
        made = drawn(unified_diff(None, "a\nb\n", "x.txt"), SIDE_BY_SIDE)
        assert made[1:] == ["  1 + a", "  2 + b"], "a new file has no other side"

    def test_a_long_line_wraps_with_a_sign_and_copies_as_one(self) -> None:
        diff = Diff(unified_diff(None, "word " * 30, "x.txt"))
        lines: list[Line] = list(diff.lines(40, DARK))
        assert [line.strip.text[:6] for line in lines[1:4]] == ["  1 + ", "  ↪   ", "  ↪   "]
        assert [line.join for line in lines[1:3]] == [" ", " "] and lines[1].gutter == 6

    def test_no_colours_no_tints(self) -> None:
        diff = unified_diff("a = 1\n", "a = 2\n", "x.py")
        for own in (theme.MONO, theme.ANSI_DARK, theme.ANSI_LIGHT):
            styles = palette(own)
            segments = [segment for line in Diff(diff).lines(60, styles) for segment in line.strip]
            assert all(segment.style is None or segment.style.bgcolor is None for segment in segments)
            assert any(segment.text == "2" and segment.style and segment.style.underline for segment in segments)

    def test_in_words(self) -> None:
        changed = OLD.replace("line 5\n", "line five\n").replace("line 40\n", "")
        text = drawn(unified_diff(OLD, changed, "x.txt"), SIDE_BY_SIDE, palette(theme.DARK, plain=True))
        assert text[0] == "x.txt  1 added, 2 removed"
        assert "removed 5: line 5" in text and "added 5: line five" in text and "line 6: line 6" in text
        assert "28 unchanged lines" in text
        assert not set("+−-⋯↪") & set("".join(text))

    def test_the_most_alike_lines_are_compared(self) -> None:
        diff = unified_diff("start\nmore(a, b, c)\nend(a, b, c)\n", "end(a, b, d)\n", "x.txt")
        lines = Diff(diff).lines(60, DARK)
        words = [s.text for line in lines for s in line.strip if s.style and s.style.bgcolor == DARK.added_word.bgcolor]
        assert words == ["d"]

    def test_words_of_lines_with_little_in_common_do_not_stand_out(self) -> None:
        assert changed_words("alpha beta gamma", "one two three four") == ([], [])
        assert changed_words("a, b, c and others", "a, x, c and others") == ([(3, 4)], [(3, 4)])


class TestSafety:
    def test_foreign_text_stays_in_its_row(self) -> None:
        diff = f"--- a/{HOSTILE}\n+++ b/{HOSTILE}\n@@ -1,2 +1,2 @@ {HOSTILE}\n {HOSTILE}\n-{HOSTILE}\n+{HOSTILE}日本\n"
        for width in (20, 79, SIDE_BY_SIDE):
            lines = Diff(diff).lines(width, DARK)
            for line in lines:
                text = line.strip.text
                assert not _CONTROL.search(text) and cell_len(text) == line.strip.cell_length <= width
            if width > 20:
                assert "[red]x[/]" in "".join(line.strip.text for line in lines)

    def test_wide_letters_fill_the_row_exactly(self) -> None:
        for width in range(12, 40):
            lines = Diff(unified_diff(None, "日本語👩‍👩‍👧‍👦のテキスト" * 3, "x.txt")).lines(width, DARK)
            assert {line.strip.cell_length for line in lines[1:-1]} == {width}


class TestCost:
    def test_only_what_is_looked_at_is_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        diff = unified_diff(None, CODE * 1_700, "x.py")
        made = lines_made(monkeypatch)
        lines = Diff(diff).lines(100, DARK)
        assert len(lines) > 10_000 and not made
        assert list(lines[5_000:5_040]) == list(lines[5_000:5_040])
        assert len(made) == 40, "and drawn once"

    def test_a_line_without_end_stays_plain(self) -> None:
        lines = Diff(unified_diff(None, "x = 1;" * 100_000, "x.js")).lines(100, DARK)
        colors = {style.color for line in lines[1:3] for text, style, _ in line.strip if style and "x" in text}
        assert colors == {DARK.text.color}

    def test_a_text_can_be_searched_without_drawing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = lines_made(monkeypatch)
        for width in (50, SIDE_BY_SIDE):
            lines = Diff(unified_diff(CODE * 3, CODE * 2 + "long " * 40, "x.py")).lines(width, DARK)
            texts = list(lines.texts())  # type: ignore[attr-defined]
            assert len(texts) == len(lines) and "long long" in "".join(texts)
        assert not made


OWN = [theme.DARK, theme.LIGHT, theme.CONTRAST_DARK, theme.CONTRAST_LIGHT]


@pytest.mark.parametrize(
    "own", [*OWN, *(one for one in BUILTIN_THEMES.values() if not one.ansi)], ids=lambda one: one.name
)
def test_every_letter_on_a_tint_can_be_read(own: Theme) -> None:
    styles = palette(own)
    changed = CODE.replace("one", "two").replace("first(x", "second(y")
    diff = unified_diff(CODE, changed, "x.py")
    for width in (80, SIDE_BY_SIDE):
        for line in Diff(diff).lines(width, styles):
            for text, style, _ in line.strip:
                if text.strip() and style is not None and style.bgcolor is not None:
                    assert style.color is not None, text
                    ratio = contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
                    assert ratio >= (7 if styles.high_contrast else 4.5), (text, ratio)


@pytest.mark.parametrize("own", OWN, ids=lambda one: one.name)
def test_a_tint_can_be_told_from_the_paper_and_from_its_words(own: Theme) -> None:
    styles = palette(own)
    paper = Color.parse(own.background or "#000000")
    for tint, word in ((styles.added_row, styles.added_word), (styles.removed_row, styles.removed_word)):
        assert tint.bgcolor is not None and word.bgcolor is not None
        row, strong = Color.from_rich_color(tint.bgcolor), Color.from_rich_color(word.bgcolor)
        assert contrast(row, paper) >= 1.1 and contrast(strong, row) >= 1.2
