"""The plain mode: words, no frames, few updates; and the flag that asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from ragforge_tui.cli.start import Shared, chat_flags, load_settings
from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.tui.dialogs.help_screen import HelpScreen
from ragforge_tui.tui.drawing.palette import palette_of
from ragforge_tui.tui.memory.memory_tree import TreeLine, TreeRows
from ragforge_tui.tui.terminal import UPDATE_SECONDS, PlainSigns
from ragforge_tui.tui.transcript.markdown import render
from tests.support.calls_scene import calls_engine
from tests.support.chat_scene import scene_engine
from tests.tui.conftest import NOON, Chat, ChatRunner

PLAIN = TuiSettings(plain=True)


def lines(chat: Chat) -> list[str]:
    """What reaches the terminal."""
    return [
        "".join(segment.text for segment in strip).rstrip() for strip in chat.app.screen._compositor.render_strips()
    ]


def test_signs_become_letters_of_the_same_width() -> None:
    before = [Segment("│ ● ╭─╮ ▸ ✓ é 日本"), Segment("plain")]
    after = PlainSigns().apply(before, Color.parse("black"))
    assert [segment.text for segment in after] == ["|   +-+ > v é 日本", "plain"]


@pytest.mark.parametrize(("size", "theme"), [((80, 24), "auto"), ((120, 40), "light"), ((60, 20), "mono")])
async def test_a_session_in_words(run_chat: ChatRunner, size: tuple[int, int], theme: str) -> None:
    tui = TuiSettings(plain=True, theme=theme)
    async with run_chat(scene_engine(), size=size, tui=tui, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        chat.app.chat.transcript.scroll_home(animate=False)
        await chat.until(lambda: any("tool Read ok" in line for line in lines(chat)))
        shown = lines(chat)
        assert any(line.strip().startswith("you:") for line in shown)
        assert any(line.strip().startswith("Ragnarök:") for line in shown)
        drawn = "".join(shown)
        assert not set("│─╭╮╰╯●○◐▸▾✶") & set(drawn), "no sign stands for something that words do not say"
        assert not chat.app.chat.sidebar.display
        assert chat.app.animation_level == "none"
        assert chat.app.chat.transcript.stream_painter.shortest_pause == UPDATE_SECONDS
        assert not chat.app.chat.prompt.cursor_blink


async def test_other_screens_have_no_frames(run_chat: ChatRunner) -> None:
    async with run_chat(tui=PLAIN) as chat:
        await chat.ready()
        await chat.press("f1")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        await chat.pilot.pause()
        assert not any("+--" in line for line in lines(chat))


def test_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGFORGE_HOME", str(tmp_path))
    flags = chat_flags(["--plain", "-c"])
    assert flags is not None and flags.shared.plain and flags.continue_last
    loaded = load_settings(Shared(plain=True, workspace=str(tmp_path)))
    assert loaded.settings.tui.plain and loaded.origins["tui.plain"] == "--plain"
    assert not load_settings(Shared(workspace=str(tmp_path))).settings.tui.plain


async def test_the_panes_show_in_words_what_their_signs_say(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(140, 40), tui=PLAIN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        for key, words in (("f4", ("ok ", "failed")), ("f5", ("turn ",))):
            await chat.press(key)
            await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
            await chat.until(
                lambda words=words: all(any(word in line for line in lines(chat)) for word in words), f"{key} {words}"
            )
            assert not set("●○◐×▸▾✕") & set("".join(lines(chat)))


def test_the_tree_shows_in_words_what_its_signs_say() -> None:
    plain = palette_of({"plain": "yes"}, dark=True, ansi=False)

    def text_of(kind: str, opened: bool | None = None) -> str:
        line = TreeLine(kind, "k", 0, 1, 1, 3, open=opened, text="text")
        return "".join(text for text, _ in TreeRows(lambda turn: None, lambda: NOON).draw(line, 60, plain))

    assert text_of("working").startswith("working summarising turns 1–3")
    assert text_of("failed").startswith("failed turns 1–3: text")
    assert text_of("summary", opened=True).startswith("open text ")
    assert text_of("summary", opened=False).startswith("closed text ")


def test_a_quote_is_marked_as_one() -> None:
    plain = palette_of({"plain": "yes"}, dark=True, ansi=False)
    assert [line.strip.text.rstrip() for line in render("> said\n> before", 40, plain)] == ["> said before"]


async def test_sessions_are_listed_without_signs(run_chat: ChatRunner) -> None:
    async with run_chat(scene_engine(), tui=PLAIN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        await chat.app.chat.session.load_personas()
        chat.app.chat.session.state.persona_styles["Ragnarök"] = ("◆", "")
        await chat.press("ctrl+o")
        await chat.until(lambda: any("message" in line for line in lines(chat)))
        assert not set("◆✶") & set("".join(lines(chat)))


@pytest.mark.parametrize(
    ("env", "upright"),
    [
        ({"TERM": "screen.xterm-256color", "STY": "7.pts-0"}, True),
        ({"TERM": "screen-256color"}, True),
        ({"TERM": "xterm-256color", "STY": "7.pts-0"}, True),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "xterm-256color"}, False),
    ],
)
async def test_gnu_screen_gets_no_italics(
    run_chat: ChatRunner, env: dict[str, str], upright: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "STY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    async with run_chat() as chat:
        segments = [Segment("so", Style(italic=True, bold=True)), Segment("x")]
        for one in chat.app.get_line_filters():
            segments = one.apply(segments, Color.parse("black"))
        style = segments[0].style
        assert style is not None and style.bold and bool(style.italic) is not upright
