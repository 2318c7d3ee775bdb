"""The line at the bottom: what it says, and what gives way first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from textual.widget import Widget

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.events import CodeIndexChanged, GraphChanged, ModelChanged
from ragforge_tui.shared.formatting import short_count
from ragforge_tui.shared.records import Message, Usage
from ragforge_tui.tui.command_registry import Registry, effective_keys, keymap_problems
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.commands.chat_commands import usage_text
from ragforge_tui.tui.dialogs.command_palette import CommandPalette
from ragforge_tui.tui.dialogs.help_screen import help_text
from ragforge_tui.tui.personas.persona_picker import PersonaPicker
from ragforge_tui.tui.session.state import EngineState, Spent, sent_tokens
from ragforge_tui.tui.sessions.session_picker import SessionPicker
from ragforge_tui.tui.widgets.status_bar import Situation, StatusLine, drawn, fitted, foot_hints, status_parts
from tests.support.fake_engine import CLOCK, FakeEngine, conversation
from tests.tui.conftest import Chat, ChatRunner

REGISTRY = Registry(all_commands())
HINTS = (("/ commands", "help"), ("^p palette", "palette"), ("^q quit", "quit"))


def state(**changes: object) -> EngineState:
    """A chat with everything to say."""
    values: dict[str, object] = {
        "connection": "up",
        "model": ModelChanged(phase="ready", name="m", context_window=200_000),
        "graph": GraphChanged(phase="ready", name="g"),
        "context_used": 12_345,
        "spent": Spent(input_tokens=30_000, output_tokens=1_000, cost=0.42),
        "conversation": conversation(1),
    }
    return EngineState(**(values | changes))  # type: ignore[arg-type]  # any of its fields


def line(shown: EngineState, width: int, elapsed: int | None = None, **situation: Any) -> str:
    """What stands there."""
    now = Situation(**{"newest_turn": 3, "hints": HINTS} | situation)
    return drawn(fitted(status_parts(shown, now, elapsed), width), width).plain


def test_escape_promises_to_go_back_only_from_an_empty_prompt() -> None:
    assert "esc esc go back" in line(state(), 116)
    assert "esc esc go back" not in line(state(), 116, drafting=True)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (116, "○ idle · ask · context 12.3k of 200k, 6 %{}/ commands · esc esc go back · ^p palette · ^q quit"),
        (56, "○ idle · ask · ctx 6 %{}/ commands · esc esc go back"),
        (40, "○ idle · ask · ctx 6 %{}/ commands"),
        (30, "○ idle · ask · ctx 6 %{}"),
        (18, "○ idle · ask{}"),
        (10, "○ idle{}"),
        (3, "○ i"),
    ],
)
def test_parts_that_give_way_in_a_narrow_bar(width: int, expected: str) -> None:
    filled = expected.format(" " * (width - len(expected) + 2)) if "{}" in expected else expected
    assert line(state(), width) == filled


def test_urgent_parts_stay() -> None:
    busy = state(running={conversation(1).uuid: 1}, mode="edits", summarising={(1, 1), (2, 1)})
    assert line(busy, 50, 7) == "◐ thinking 7 s · accept edits · ctx 6 %   esc stop"
    journal = state(graph=GraphChanged(phase="unreachable", name="g", journaled=3))
    assert "3 in journal" in line(journal, 24)
    starting = state(graph=GraphChanged(phase="starting", name="g", journaled=3))
    assert line(starting, 40).startswith("○ idle · graph starting")
    assert "journal" not in line(starting, 140)
    assert "tab answer" in line(state(), 60, refusal="no")
    assert "tab prompt" in line(state(), 60, refusal="no", focus="question")
    assert "esc keep planning" in line(state(), 80, refusal="keep planning")
    assert "context" not in line(state(model=None), 120)
    assert line(state(connection="lost"), 40).startswith("● engine lost")


def test_the_way_back_to_the_prompt_shows_wherever_else_the_keyboard_is() -> None:
    chat: dict[str, Any] = {"focus": "chat", "chat_keys": ("b go back here", "e edit it")}
    assert line(state(), 80, **chat).endswith("   b go back here · e edit it · esc back to prompt")
    assert line(state(), 32, **chat).endswith("esc back to prompt")
    busy = state(running={conversation(1).uuid: 1})
    assert line(busy, 80, **chat).endswith("esc back to prompt, again: stop"), "what is read goes on"
    assert line(busy, 80, focus="sidebar").endswith("tab next pane · esc back to prompt")
    assert line(state(), 80, focus="sidebar", refusal="no").endswith("tab next pane · esc back to prompt")
    assert line(state(), 80, focus="find").endswith("esc ends the search")
    for focus in ("chat", "sidebar", "find"):
        assert "/ commands" not in line(state(), 120, focus=focus)


@pytest.mark.parametrize(
    ("now", "keys"),
    [
        ({"hints": HINTS}, ["/ ", "^p "]),
        ({"focus": "chat", "chat_keys": ("j k choose", "enter fold")}, ["j k ", "enter ", "esc "]),
        ({"focus": "prompt", "refusal": "no"}, ["tab ", "esc "]),
        ({"editing": 3}, ["enter ", "esc "]),
    ],
)
def test_keys_have_a_color_and_what_they_do_is_dim(now: dict[str, Any], keys: list[str]) -> None:
    content = drawn(fitted(status_parts(state(), Situation(**now)), 140), 140)
    colored = [content.plain[span.start : span.end] for span in content.spans if "$primary" in str(span.style)]
    assert colored[: len(keys)] == keys


def test_without_a_turn_there_is_none_to_go_back_to() -> None:
    assert "go back" not in line(state(), 140, newest_turn=0)


def test_the_index_of_code_shows_while_it_works() -> None:
    reading = state(code=CodeIndexChanged(phase="reading", done=1_200, todo=5_000))
    assert " code 1 200/5 000 " in line(reading, 140)
    assert " code 24 % " in line(reading, 90)
    assert "code vectors 3/9" in line(state(code=CodeIndexChanged(phase="embedding", done=3, todo=9)), 140)
    for phase in ("looking", "ready", "elsewhere", "off"):
        assert "code" not in line(state(code=CodeIndexChanged(phase=phase, files=9)), 140)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (Spent(), "No tokens were counted since this chat was started."),
        (
            Spent(input_tokens=30_500, output_tokens=1_000, cost=0.42),
            "Since this chat was started: 30.5k tokens sent, 1k received, $0.42. "
            "Each request sends the conversation again.",
        ),
        (
            Spent(input_tokens=900, output_tokens=10, cost=0.0042),
            "Since this chat was started: 900 tokens sent, 10 received, $0.0042. "
            "Each request sends the conversation again.",
        ),
        (
            Spent(input_tokens=900, output_tokens=10),
            "Since this chat was started: 900 tokens sent, 10 received. Each request sends the conversation again.",
        ),
    ],
)
def test_spending_is_shown_on_request(spent: Spent, expected: str) -> None:
    assert usage_text(spent) == expected


async def test_a_hint_replaces_the_keys_on_a_narrow_screen(run_chat: ChatRunner) -> None:
    async with run_chat(size=(30, 20)) as chat:
        await chat.ready()
        await chat.press("ctrl+c")
        await chat.until(lambda: chat.app.chat.status_line.render().plain.endswith("  ^c again quits"))
        await chat.until(lambda: chat.app.chat.status_line.render().plain.startswith("○ idle"))


@pytest.mark.parametrize(("used", "style"), [(10_000, "dim"), (150_000, "$warning"), (190_000, "$error")])
def test_a_full_context_is_colored(used: int, style: str) -> None:
    gauge = next(part for part in status_parts(state(context_used=used), Situation()) if part.short)
    assert gauge.style == style


def test_counts() -> None:
    assert [short_count(number) for number in (999, 1_000, 12_345, 999_960, 1_000_000, 1_250_000)] == [
        "999",
        "1k",
        "12.3k",
        "1M",
        "1M",
        "1.2M",
    ]


def test_tokens_of_the_last_request() -> None:
    def reply(tokens: int) -> Message:
        return Message(
            uuid="m", conversation_id="c", role="assistant", timestamp=CLOCK, usage=Usage(input_tokens=tokens)
        )

    expected = msgspec.structs.replace(reply(0), usage=None)
    assert sent_tokens([reply(5), reply(7), reply(0), expected]) == 7
    assert sent_tokens([expected]) == 0


def test_keys_as_the_user_has_them() -> None:
    assert foot_hints(REGISTRY, {}) == HINTS
    assert foot_hints(REGISTRY, {"quit": "ctrl+b"})[-1] == ("^b quit", "quit")
    assert effective_keys({"retry": "f12", "exit": "f10"}, REGISTRY)["quit"] == "f10"
    assert keymap_problems({"retry": "f12"}, REGISTRY) == []
    assert keymap_problems({}, REGISTRY) == []
    assert "did you mean retry" in keymap_problems({"retyr": "f12"}, REGISTRY)[0]
    assert "needed for typing" in keymap_problems({"retry": "x"}, REGISTRY)[0]
    assert "f1 is the key of help and retry" in keymap_problems({"retry": "f12,f1"}, REGISTRY)[0]
    assert "has no key" in keymap_problems({"retry": " "}, REGISTRY)[0]


@pytest.mark.parametrize(
    "keymap",
    [
        {},
        {"retry": "f1"},
        {"retry": "f12,f1"},
        {"files": "f1, f12"},
        {"help": "f12", "retry": "f1"},
        {"help": "f5", "files": "f1"},
        {"retry": "f12", "diff": "f12"},
        {"retry": "shift+tab", "stop": "ctrl+b", "exit": "ctrl+n"},
    ],
)
async def test_a_key_has_one_command_which_is_the_one_that_help_shows_it_at(
    run_chat: ChatRunner, keymap: dict[str, str]
) -> None:
    async with run_chat(tui=TuiSettings(keymap={"summary": "f11,f3"}, sidebar=False)) as chat:
        await chat.ready()
        chat.app.chat.settings.apply("tui.keymap", keymap)
        ours = {command.name for command in REGISTRY.commands}
        bound = {
            key: [one.id for one in bindings]
            for key, bindings in chat.app._bindings.key_to_bindings.items()
            if any(one.id in ours for one in bindings)
        }
        shown = effective_keys(keymap, REGISTRY)
        assert bound == {key.strip(): [name] for name, keys in shown.items() for key in keys.split(",")}
        assert {name for name in keymap if name in shown} == set(keymap) - {"exit", "diff"}
        text = help_text(REGISTRY, keymap).plain.splitlines()
        for key in ("f1", "f5", "f12", "^n"):
            assert sum(line.endswith(f"  {key}") for line in text) <= 1
        ran: list[str] = []
        chat.app.chat.run_command = lambda name: ran.append(name)  # type: ignore[method-assign]  # what is asked for
        for key in ("f1", "f5", "f12"):
            await chat.press(key)
        await chat.pilot.pause()
        assert ran == [bound[key][0] for key in ("f1", "f5", "f12") if key in bound]


async def test_the_gauge_follows_the_requests(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.model = ModelChanged(phase="ready", name="m", context_window=1_000)
    async with run_chat(engine, size=(120, 40)) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: "context 100 of 1k, 10 %" in str(chat.app.query_one("#status").render()))
        await chat.press("ctrl+n")
        await chat.until(lambda: "context" not in str(chat.app.query_one("#status").render()))


async def clicked(chat: Chat, widget: Widget, word: str) -> None:
    """Click a word of a line."""
    await chat.pilot.pause()
    line = widget.render_line(0).text
    assert word in line
    await chat.pilot.click(widget, offset=(line.index(word) + widget.gutter.left, 0))


async def test_words_of_header_and_status_line_open_what_their_keys_open(run_chat: ChatRunner) -> None:
    async with run_chat(size=(120, 40)) as chat:
        await chat.ready()
        view = chat.app.chat
        await clicked(chat, view.status_line, "palette")
        await chat.until(lambda: isinstance(chat.app.screen, CommandPalette))
        await chat.press("escape")
        await chat.until(lambda: len(chat.app.screen_stack) == 1)
        await clicked(chat, view.status_line, "ask")
        await chat.until(lambda: chat.app.chat.session.state.mode == "edits")
        await clicked(chat, view.header, "Ragnarök")
        await chat.until(lambda: isinstance(chat.app.screen, PersonaPicker))
        await chat.press("escape")
        await chat.until(lambda: len(chat.app.screen_stack) == 1)
        await clicked(chat, view.header, "New conversation")
        await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))


def test_the_seconds_of_a_question_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    bar = StatusLine(lambda: now)
    monkeypatch.setattr(StatusLine, "app", SimpleNamespace(animation_level="none"))
    shown = state(turn_started=0.0)
    bar.show(shown, Situation())
    bar._tick()
    assert "100 s" in bar.parts[0].text
    bar.show(shown, Situation(refusal="no"))
    assert "waiting for you" in bar.parts[0].text and "100" not in bar.parts[0].text
    now = 107.0
    bar._tick()
    assert "waiting for you 7 s" in bar.parts[0].text
    bar.show(shown, Situation())
    assert "107 s" in bar.parts[0].text
