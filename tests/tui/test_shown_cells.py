"""What is sent to the terminal: only the cells that differ, and never a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from ragforge_tui.tui import shown_cells
from ragforge_tui.tui.shown_cells import ShownCells

WIDTH, HEIGHT = 24, 6
CONSOLE = Console(color_system="truecolor", force_terminal=True, width=WIDTH, legacy_windows=False)
NOTHING = Style.null()
STYLES = [
    NOTHING,
    Style.parse("#e6edf3 on #0d1117"),
    Style.parse("bold #56d4bc on #0d1117"),
    Style.parse("dim italic #e6edf3 on #0d1117"),
    Style.parse("underline red"),
    Style.parse("reverse #e6edf3 on #0d1117"),
    Style.parse("strike on #191d24"),
    Style.parse("bold reverse"),
    Style.parse("bold dim #e6edf3 on #0d1117"),
    Style.parse("#56d4bc on #0d1117 link https://example.org"),
]
TEXTS = ["", " ", "    ", "word", "two words", "│", "● é ✓", "日本", "a日b", "e\u0301", "x" * 30, " " * 30]

Spans = tuple[tuple[str, int], ...]
spans = st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(0, len(STYLES) - 1)), max_size=4).map(tuple)
steps = st.lists(
    st.one_of(
        st.lists(spans, min_size=HEIGHT, max_size=HEIGHT),
        st.tuples(st.integers(0, HEIGHT - 1), spans, st.integers(1, WIDTH - 1), st.booleans()),
        st.integers(-3, 3),
        st.none(),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(autouse=True, scope="module")
def on_a_small_screen() -> Iterator[None]:
    """Let lines move where few cells differ, as there are not many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shown_cells, "FEW_CELLS", 0)
        yield


@cache
def strip_of(line: Spans) -> Strip:
    """A whole line; the same one again for the same text, as widgets draw it."""
    return Strip([Segment(text, STYLES[style]) for text, style in line]).adjust_cell_length(WIDTH, STYLES[1])


def screen_update(lines: Sequence[Strip], cut: int = WIDTH // 2) -> LayoutUpdate:
    """The whole screen, in two columns."""
    return LayoutUpdate([line.divide([cut, WIDTH]) for line in lines], Region(0, 0, WIDTH, HEIGHT))


def part_update(y: int, line: Strip, cut: int, *, left: bool) -> ChopsUpdate:
    """The part of a line to the left or right of a cut."""
    parts = line.divide([cut, WIDTH])
    chops: list[dict[int, Strip | None]] = [{0: None, cut: None} for _ in range(HEIGHT)]
    chops[y] = {0: parts[0], cut: parts[1]}
    return ChopsUpdate(chops, [(y, 0, cut) if left else (y, cut, WIDTH)], [[cut, WIDTH]] * HEIGHT)


class Screen:
    """A terminal in memory."""

    def __init__(self) -> None:
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self._screen)
        self.feed("\x1b[?7l")

    def feed(self, text: str) -> None:
        self._stream.feed(text.replace("\n", "\r\n"))

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """What a user sees: the ink of a blank is not seen."""
        return [[seen(self._screen.buffer[y][x]) for x in range(WIDTH)] for y in range(HEIGHT)]


def seen(cell: pyte.screens.Char) -> pyte.screens.Char:
    hidden = cell.data == " " and not (cell.underscore or cell.strikethrough or cell.reverse)
    return cell._replace(fg="default", bold=False, italics=False) if hidden else cell


def written(shown: ShownCells, update: LayoutUpdate | ChopsUpdate) -> str:
    return str(shown.only_changes(update).render_segments(CONSOLE))


@example([0, (1, (("x" * 30, 1),), 15, True), 0], "xterm-256color")
@given(steps, st.sampled_from(["xterm-256color", "screen-256color"]))
def test_the_screen_is_the_same_as_after_everything_was_sent(
    drawn: list[list[Spans] | tuple[int, Spans, int, bool] | int | None], term: str
) -> None:
    shown, ours, all_sent = ShownCells(term), Screen(), Screen()
    page: list[Spans] = [((f"line {number}", 1),) for number in range(HEIGHT)]
    for step in drawn:
        if step is None:
            shown.forget()
            continue
        if isinstance(step, tuple):
            update: LayoutUpdate | ChopsUpdate = part_update(step[0], strip_of(step[1]), step[2], left=step[3])
        else:
            page = step if isinstance(step, list) else [*page[step:], *page[:step]]
            update = screen_update([strip_of(line) for line in page])
        all_sent.feed(update.render_segments(CONSOLE))
        ours.feed(written(shown, update))
        assert ours.cells == all_sent.cells


def lines(*texts: str) -> list[Strip]:
    return [strip_of(((text, 1),)) for text in (*texts, *[""] * (HEIGHT - len(texts)))]


def test_what_is_shown_is_not_sent_again() -> None:
    shown = ShownCells("xterm-256color")
    assert "first" in written(shown, screen_update(lines("first", "second")))
    assert written(shown, screen_update(lines("first", "second"))) == ""
    assert re.sub(r"\x1b\[[0-9;]*m", "", written(shown, screen_update(lines("first", "secund")))) == "\x1b[2;4Hu"


@pytest.mark.parametrize("by", [1, 3, -1, -3])
def test_lines_that_moved_are_not_sent_again(by: int) -> None:
    shown, ours, all_sent = ShownCells("screen"), Screen(), Screen()
    page = [f"{letter * 12} with text" for letter in "abcdef"]
    for texts in (
        page,
        [*page[by:], "new", "lines"][:HEIGHT] if by > 0 else [*["new", "lines", "here"][:-by], *page][:HEIGHT],
    ):
        update = screen_update(lines(*texts))
        sent = written(shown, update)
        ours.feed(sent)
        all_sent.feed(update.render_segments(CONSOLE))
        assert ours.cells == all_sent.cells
    assert "new" in sent and "with" not in sent


def test_lines_do_not_move_with_one_of_which_nothing_is_known() -> None:
    shown, ours, all_sent = ShownCells("screen"), Screen(), Screen()
    page = lines(*[letter * WIDTH for letter in "abcdef"])
    moved = [*page[1:], page[0]]
    parts = [{0: line.crop(0, 8), 8: line.crop(8, WIDTH)} for line in page]
    moved_parts = [{0: line.crop(0, 8), 8: line.crop(8, WIDTH)} for line in moved]
    known = [(y, 0, 8 if y == 2 else WIDTH) for y in range(HEIGHT)]
    updates = [
        screen_update(page),
        None,
        *(ChopsUpdate(chops, known, [[8, WIDTH]] * HEIGHT) for chops in (parts, moved_parts)),
    ]
    for update in updates:
        if update is None:
            shown.forget()
            continue
        all_sent.feed(update.render_segments(CONSOLE))
        ours.feed(written(shown, update))
        assert ours.cells == all_sent.cells


def test_lines_do_not_move_with_a_piece_whose_beginning_is_covered() -> None:
    shown, ours, all_sent = ShownCells("screen"), Screen(), Screen()
    page = [letter * WIDTH for letter in "abcdef"]
    page[2] = "日本" * 5
    moved_lines = [*lines(*page[1:])[:-1], strip_of(((" " * WIDTH, 0),))]
    cover = part_update(2, strip_of((("cover", 1),)), 8, left=True)
    chops = [dict(zip((0, 8), line.divide([8, WIDTH]), strict=True)) for line in moved_lines]
    moved = ChopsUpdate(chops, [(y, 0, 8 if y == 2 else WIDTH) for y in range(HEIGHT)], [[8, WIDTH]] * HEIGHT)
    for update in (screen_update(lines(*page), WIDTH), cover, moved):
        all_sent.feed(update.render_segments(CONSOLE))
        ours.feed(written(shown, update))
        assert ours.cells == all_sent.cells


@pytest.mark.parametrize("term", ["xterm-256color", "xterm-kitty", "screen"])
def test_the_rest_of_a_line_is_erased_where_that_keeps_its_color(term: str) -> None:
    shown = ShownCells(term)
    written(shown, screen_update(lines("a long line of text")))
    after = written(shown, screen_update(lines("a")))
    assert ("\x1b[K" in after) == (term == "xterm-256color")
    assert (" " * 17 in after) == (term != "xterm-256color")


def test_a_line_whose_cells_are_disputed_is_sent_to_its_end() -> None:
    shown = ShownCells("xterm-256color")
    written(shown, screen_update(lines("日 one       right")))
    after = written(shown, screen_update(lines("本 one       right")))
    assert "one" in after and "right" in after


def test_nothing_is_taken_for_shown_after_it_was_forgotten_or_at_another_size() -> None:
    shown, update = ShownCells("xterm-256color"), screen_update(lines("first"))
    whole = written(shown, update)
    shown.forget()
    assert written(shown, update) == whole
    smaller = LayoutUpdate([[strip.crop(0, WIDTH - 1)] for strip in lines("first")], Region(0, 0, WIDTH - 1, HEIGHT))
    assert "first" in written(shown, smaller)
    assert written(shown, update) == whole


def test_what_is_no_update_is_sent_as_it_is() -> None:
    shown, update = ShownCells("xterm-256color"), screen_update(lines("first"))
    whole = written(shown, update)
    assert shown.only_changes(None) is None
    assert written(shown, update) == ""
    assert shown.only_changes("a traceback") == "a traceback"
    assert written(shown, update) == whole


def links(texts: Iterable[str]) -> list[str]:
    return re.findall(r"\x1b\]8;([^\x1b]*)\x1b\\", "".join(texts))


def test_a_link_is_opened_and_closed() -> None:
    shown, linked = ShownCells("xterm-256color"), len(STYLES) - 1
    drawn = [strip_of((("see ", 1), ("this", linked), (" now", 1))), *lines()[1:]]
    opened, closed = links([written(shown, screen_update(drawn))])
    assert opened.endswith(";https://example.org") and closed == ";"
    assert links([written(shown, screen_update(lines("see this now")))]) == []
