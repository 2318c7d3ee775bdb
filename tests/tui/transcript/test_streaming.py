"""Streaming costs what came, not what is there: the same lines as from scratch, less work, fewer rows drawn."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from textual.geometry import Region
from textual.pilot import Pilot

from ragforge_tui.shared.events import MessageFinished, MessageStarted, ReasoningDelta, TextDelta, TurnStarted
from ragforge_tui.tui.drawing.code import GrowingCode, highlight
from ragforge_tui.tui.drawing.lines import Run, WrappedLines, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript import markdown
from ragforge_tui.tui.transcript.blocks import TextBlock
from ragforge_tui.tui.transcript.markdown import render
from ragforge_tui.tui.transcript.stream import StreamedText
from tests.tui.transcript.app import TranscriptApp
from tests.tui.transcript.samples import DARK, plain_turns, reply, said, text_of
from tests.tui.transcript.test_document import WHERE, chunks

SENTENCES = (
    "The managed transaction is retried **inside** `append_turn`, but the id is made *in* it. ",
    "See [the store](https://example.org/store) for what is retried, and snake_case_names for why. ",
    "宽字符宽字符 stand 在一起 without blanks, as 👩‍👩‍👧 does. ",
    "A ~~wrong~~ right word; 5 * 3 is fifteen\nand a line goes on. ",
)
ODD = (
    "*open `marks [that ",
    "wait_for _their end ",
    "a\\*b <x> ",
    "\x1b[31mred ",
    "\r\n",
    "\n\n",
    "\n- item\n",
    "1",
    "\n===\n",
    "\n|-|\n",
)
PYTHON = '''class Store:
    """Holds turns."""

    query = """
        MATCH (n) RETURN 1  # not a comment
    """

    async def append(self, turn: int = 3) -> str:  # allocate
        text = f"{turn!r} 宽字符"
        return await self.run("RETURN 1", text)
'''


def prose(kinds: Sequence[str] = SENTENCES) -> st.SearchStrategy[str]:
    """Long paragraphs."""
    return st.lists(st.sampled_from(kinds), min_size=10, max_size=40).map("".join)


def cuts(text: str, sizes: Sequence[int]) -> Iterator[str]:
    """A text in pieces of the given sizes, over and over."""
    at = step = 0
    while at < len(text):
        yield text[at : at + sizes[step % len(sizes)]]
        at += sizes[step % len(sizes)]
        step += 1


SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(prose((*SENTENCES, *ODD)), st.integers(8, 90), SIZES)
def test_a_long_text_ends_as_drawn_at_once(text: str, width: int, sizes: list[int]) -> None:
    stream = StreamedText(width, DARK)
    for piece in cuts(text, sizes):
        stream.add(piece)
        stream.advance()
    stream.finish()
    assert stream.lines == render(text, width, DARK)


@settings(max_examples=25, deadline=None)
@given(prose(SENTENCES[:2]), st.integers(20, 90), SIZES)
def test_a_long_paragraph_looks_at_each_moment_as_drawn_at_once(text: str, width: int, sizes: list[int]) -> None:
    stream, so_far = StreamedText(width, DARK), ""
    for piece in cuts(text, sizes):
        so_far += piece
        stream.add(piece)
        stream.advance()
        assert text_of(stream.lines) == text_of(render(so_far, width, DARK))


@pytest.mark.parametrize(
    "kind",
    [
        "- item 宽 {n} says **why**\n",
        "| `f_{n}.py` | {n} | 宽 |\n",
        "| `f_{n}.py` | {n} | a cell with more words in it than its column has room for |\n",
        "| `a_long_name_that_is_never_cut` | {n} | `another_one_that_is_never_cut` |\n",
        "x_{n} = '宽字符'  # {n}\n",
    ],
)
@settings(max_examples=12, deadline=None)
@given(sizes=SIZES, count=st.integers(5, 60))
def test_a_long_block_looks_after_each_line_as_drawn_at_once(kind: str, sizes: list[int], count: int) -> None:
    head = "| a | b | c |\n|---|---|---|\n" if kind.startswith("|") else "```python\n" if kind.startswith("x") else ""
    text = head + "".join(kind.format(n=number) for number in range(count))
    stream, so_far = StreamedText(60, DARK), ""
    for piece in cuts(text, sizes):
        so_far += piece
        stream.add(piece)
        stream.advance()
        whole = so_far[: so_far.rfind("\n") + 1]
        if whole.startswith(head) and len(whole) > len(head):
            drawn = text_of(render(whole, 60, DARK))
            assert text_of(stream.lines)[: len(drawn)] == drawn
    stream.finish()
    assert stream.lines == render(text, 60, DARK)


def _joined(runs: Sequence[Run]) -> list[tuple[str, object]]:
    """Runs character by character, so that it does not matter where they are cut."""
    return [(char, style) for text, style in runs for char in text]


@pytest.mark.parametrize("language", ["python", "diff", "json", "nothing", ""])
def test_code_highlighted_line_by_line_looks_as_at_once(language: str) -> None:
    growing = GrowingCode(language, DARK)
    runs: list[Run] = []
    for line in PYTHON.splitlines(keepends=True):
        assert "".join(text for text, _ in growing.peek(line[:-1])) == line[:-1]
        runs += growing.add(line)
    assert "".join(text for text, _ in runs) == PYTHON
    if language != "json":  # whose lexer looks at the whole
        assert _joined(runs) == _joined(highlight(PYTHON, language, DARK))


@settings(max_examples=40, deadline=None)
@example("\n a", [1], 3)
@given(st.text(alphabet="ab \n宽👩e", max_size=80), SIZES, st.integers(3, 20))
def test_growing_plain_text_is_wrapped_as_at_once(text: str, sizes: list[int], width: int) -> None:
    bar, growing, so_far = ("▎ ", DARK.faint), WrappedLines(), ""
    for piece in cuts(text, sizes):
        so_far += piece
        whole = wrap([(so_far, DARK.muted)], width, first=[bar], rest=[bar])
        assert growing.lines(so_far, width, bar=bar, style=DARK.muted) == whole


@pytest.mark.parametrize(
    "piece",
    [
        SENTENCES[0],
        "宽字符" * 20,
        "- item {n} says **why**\n",
        "| `file_{n}.py` | {n} |\n",
        "    return await run({n})\n",
    ],
    ids=["paragraph", "wide", "list", "table", "fence"],
)
def test_the_work_for_a_piece_does_not_grow_with_its_block(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = markdown.markdown_parser()
    read = 0

    def counted(method: Any) -> Any:
        def run(text: str, *arguments: Any) -> Any:
            nonlocal read
            read += len(text)
            return method(text, *arguments)

        return run

    monkeypatch.setattr(parser, "parse", counted(parser.parse))
    monkeypatch.setattr(parser, "parseInline", counted(parser.parseInline))
    head = "| a | b |\n|---|---|\n" if piece.startswith("|") else "```python\n" if piece.startswith("    ") else ""
    stream = StreamedText(80, DARK)
    stream.add(head)
    most = 0
    for number in range(400):
        read = 0
        stream.add(piece.format(n=number))
        stream.advance()
        most = max(most, read)
        assert number < 50 or stream.light
    assert most < 6_000
    assert len(stream.lines) > 300


async def streaming(app: TranscriptApp, pilot: Pilot[None], text: str) -> None:
    """A turn whose text comes in pieces, drawn."""
    for piece in chunks(text, 30):
        app.transcript.apply(TextDelta(message_id="a21", text=piece, **{**WHERE, "turn_index": 21}))
    await drawn(app, pilot)


async def drawn(app: TranscriptApp, pilot: Pilot[None]) -> None:
    """Wait until what came is shown."""
    while app.transcript.stream_painter.busy:
        await pilot.pause(0.01)
    await pilot.pause()


def begin(app: TranscriptApp) -> None:
    """Start a turn after twenty."""
    where: Any = {**WHERE, "turn_index": 21}
    app.transcript.apply(TurnStarted(message=said("why?", 21), **where))
    app.transcript.apply(MessageStarted(message_id="a21", persona="Ragnarök", **where))


async def test_only_rows_that_changed_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.transcript
        begin(app)
        await streaming(app, pilot, "one\n\ntwo and")
        regions: list[tuple[Region, ...]] = []
        refresh = view.refresh
        monkeypatch.setattr(view, "refresh", lambda *where, **how: (regions.append(where), refresh(*where, **how))[1])
        await streaming(app, pilot, " three")
        assert regions == [(Region(0, 23, view.size.width, 1),)]
        assert app.screen_text()[-1] == "  two and three"


def test_what_is_not_settled_counts_as_much_to_draw() -> None:
    stream = StreamedText(80, DARK)
    for _ in range(5):
        stream.add("[" * 500)
        stream.advance()
    stream.add("[")
    assert not stream.light


def test_a_word_without_end_is_settled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a" * 50_000
    stream = StreamedText(80, DARK)
    longest = 0
    rendered = markdown.inline_runs

    def noted(piece: str, palette: Palette) -> tuple[list[Run], bool]:
        nonlocal longest
        longest = max(longest, len(piece))
        return rendered(piece, palette)

    monkeypatch.setattr(markdown, "inline_runs", noted)
    for piece in cuts(text, (400,)):
        stream.add(piece)
        stream.advance()
    assert longest < 6_000
    assert "".join(text_of(stream.lines)).replace("\n", "") == text


TABLE = "| a |\n|---|\n" + "| b |\n" * 400


@pytest.mark.parametrize("text", [TABLE, "word " * 80_000], ids=["table", "more than is drawn"])
async def test_a_long_end_is_drawn_in_a_thread(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = TranscriptApp(plain_turns(2))
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.transcript
        begin(app)
        await streaming(app, pilot, text)
        threads: list[bool] = []
        finish = StreamedText.finish

        def noted(stream: StreamedText) -> None:
            threads.append(threading.current_thread() is threading.main_thread())
            finish(stream)

        monkeypatch.setattr(StreamedText, "finish", noted)
        where: Any = {**WHERE, "turn_index": 21}
        view.apply(MessageFinished(message=reply(text, 21), **where))
        assert view.stream_painter.busy
        await drawn(app, pilot)
        assert threads == [False]
        block = next(block for block in view.document.blocks if isinstance(block, TextBlock) and block.turn_index == 21)
        fresh = TextBlock(21, "other", gap=block.gap)
        fresh.finish(text)
        assert list(block.lines(70, DARK)) == list(fresh.lines(70, DARK))


async def test_rows_kept_look_as_rows_rendered_again() -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.transcript
        begin(app)
        for text in (
            "宽字符 and *more*\n\n- a",
            "\n- b\n- c\n\n```python\nx",
            " = 1\n```\n\nand so on " + "word " * 30,
        ):
            await streaming(app, pilot, text)
            kept = view.render_lines(view.size.region)
            view.refresh()
            view._painted.clear()
            assert view.render_lines(view.size.region) == kept
            assert [strip.text.rstrip() for strip in kept] == app.screen_text()
            assert all(strip.cell_length == view.size.width for strip in kept)


async def test_a_new_line_is_no_reason_to_lay_out_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(80, 24)) as pilot:
        begin(app)
        await streaming(app, pilot, "one\n\n")
        layouts: list[object] = []
        monkeypatch.setattr(app.screen, "_refresh_layout", lambda *_, **__: layouts.append(1))
        await streaming(app, pilot, "".join(f"- item {number}\n" for number in range(40)))
        assert "item 39" in app.screen_text()[-1]
        assert layouts == []
        bar = app.transcript.vertical_scrollbar
        assert bar.position == app.transcript.scroll_y == app.transcript.max_scroll_y


async def test_the_scrollbar_appears_and_goes() -> None:
    app = TranscriptApp(plain_turns(1))
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.transcript
        await pilot.pause()
        assert not view.show_vertical_scrollbar
        view.load(plain_turns(20), first=1, last=20)
        await pilot.pause()
        assert view.show_vertical_scrollbar
        assert view.vertical_scrollbar.position == view.max_scroll_y
        view.clear()
        await pilot.pause()
        assert not view.show_vertical_scrollbar


async def test_thinking_unfolded_grows() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.document.shown.unfold_reasoning = True
        begin(app)
        where: Any = {**WHERE, "turn_index": 21}
        for piece in chunks("first this\nthen\tthat\n\nthen", 4):
            app.transcript.apply(ReasoningDelta(message_id="a21", text=piece, **where))
            await drawn(app, pilot)
        shown = [line.strip() for line in app.screen_text() if "▎" in line]
        assert shown == ["▎ first this", "▎ then    that", "▎", "▎ then"]
        app.transcript.apply(MessageFinished(message=reply("done", 21), **where))
        await drawn(app, pilot)
        assert "done" in "\n".join(app.screen_text())
