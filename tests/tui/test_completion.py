"""Completion: what is wanted where, what is put in its place, and the keys that do it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from ragforge_tui.memory.recent_files import mentions
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.shared.requests.work import ListFiles, SetModel
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.prompt.completion import SlashMenu, completion_target, mention, mention_row
from tests.support.fake_engine import FakeEngine, sessions
from tests.tui.conftest import Chat, ChatRunner

REGISTRY = Registry(all_commands())


@pytest.mark.parametrize(
    ("line", "kind", "query"),
    [
        ("look at @", "file", ""),
        ("look at @src/a", "file", "src/a"),
        ("(@a", "file", "a"),
        ('@"a gu', "file", "a gu"),
        ("@été", "file", "été"),
        ("mail me@example", None, ""),
        ("@@x", None, ""),
        ("see @a b", None, ""),
        ('see @"a b"', None, ""),
        ("!ls @a", None, ""),
        ("/", "command", ""),
        ("/mod", "command", "mod"),
        ("/usr/bin", None, ""),
        ("/model ", "argument", ""),
        ("/model  gp", "argument", "gp"),
        ("/memory x", None, ""),
        ("/nothing x", None, ""),
        ("/retry x", None, ""),
        ("plain", None, ""),
        ("", None, ""),
    ],
)
def test_detected_completions(line: str, kind: str | None, query: str) -> None:
    found = completion_target(line, len(line), REGISTRY, alone=True)
    assert (found.kind, found.query) == (kind, query) if found else kind is None
    if found:
        assert line[found.start :].lstrip('@/"') == query


def test_only_at_the_end_of_a_word_and_a_line() -> None:
    assert completion_target("a @src b", 6, REGISTRY, alone=True) is not None
    assert completion_target("a @src b", 4, REGISTRY, alone=True) is None
    assert completion_target("/model x", 7, REGISTRY, alone=True) is None
    assert completion_target("/mod", 4, REGISTRY, alone=False) is None
    assert completion_target("x @a", 4, REGISTRY, alone=False) is not None


@pytest.mark.parametrize(
    "path", ["src/app.py", "docs/a guide.md", "it's.txt", 'say "x" y', "end.", "日本/テスト.md", "a@b"]
)
def test_a_mention_is_read_as_it_was_written(path: str) -> None:
    assert mentions(f"Look at {mention(path)} and say") == [path]


def menu_of(chat: Chat) -> SlashMenu:
    return chat.app.query_one(SlashMenu)


async def offers(chat: Chat, text: str) -> None:
    await chat.until(lambda: (row := menu_of(chat).chosen) and row.text == text, f"menu at {text!r}")


async def test_tab_and_enter_put_a_file_in(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        await chat.press(*"see ", "@", *"sto")
        await offers(chat, "@src/store.py ")
        await chat.press("tab")
        assert prompt.text == "see @src/store.py "
        await chat.press("@", *"gui")
        await offers(chat, '@"docs/a guide.md" ')
        await chat.press("enter")
        assert prompt.text == 'see @src/store.py @"docs/a guide.md" '
        assert menu_of(chat).chosen is None and not chat.engine.asked(SendMessage)
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert chat.engine.asked(SendMessage)[0].text == 'see @src/store.py @"docs/a guide.md" '


async def test_into_a_folder_and_the_folder_itself(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        chat.engine.files = ["src/", "src/app.py"]
        await chat.ready()
        await chat.press("@", "s", "r")
        await offers(chat, "@src/")
        await chat.press("enter")
        assert chat.app.chat.prompt.text == "@src/"
        await offers(chat, "@src/ ")
        await chat.press("down", "tab")
        assert chat.app.chat.prompt.text == "@src/app.py "
        await chat.press("@", "s", "r", "c", "/")
        await offers(chat, "@src/ ")
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert chat.engine.asked(SendMessage)[0].text == "@src/app.py @src/"


async def test_in_the_middle_of_a_line(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        prompt.insert("first\nsee  now")
        prompt.move_cursor((1, 4))
        await chat.press("@", "a", "p", "p")
        await offers(chat, "@src/app.py ")
        await chat.press("tab")
        assert prompt.text == "first\nsee @src/app.py now"
        assert menu_of(chat).chosen is None
        assert prompt.cursor_location == (1, len("see @src/app.py"))


async def test_escape_leaves_the_word_alone(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("@", "a", "p", "p")
        await offers(chat, "@src/app.py ")
        await chat.press("escape")
        assert menu_of(chat).chosen is None
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert chat.engine.asked(SendMessage)[0].text == "@app"


async def test_a_word_that_is_no_file_and_one_typed_to_its_end_are_sent(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        for text in ("hello @nobody", "see @src/app.py"):
            asked = len(chat.engine.asked(ListFiles))
            chat.app.chat.prompt.insert(text)
            await chat.until(lambda: len(chat.engine.asked(ListFiles)) > asked)  # noqa: B023
            await chat.pilot.pause()
            await chat.press("enter")
            await chat.until(lambda: chat.engine.asked(SendMessage)[-1:])
            assert chat.engine.asked(SendMessage)[-1].text == text


async def test_the_cursor_leaving_the_word_closes_the_menu(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("@", "a", "p", "p")
        await offers(chat, "@src/app.py ")
        await chat.press("home")
        await chat.until(lambda: menu_of(chat).chosen is None)


async def test_arguments_of_commands(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        chat.app.chat.prompt.insert("/model son")
        await offers(chat, "anthropic/claude-sonnet-4-5")
        await chat.press("tab")
        assert prompt.text == "/model anthropic/claude-sonnet-4-5"
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SetModel))
        assert chat.engine.asked(SetModel)[0].name == "anthropic/claude-sonnet-4-5"


async def test_enter_behind_a_free_argument_takes_what_was_typed(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("/model gpt-5")
        await offers(chat, "openai/gpt-5")
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SetModel))
        assert chat.engine.asked(SetModel)[0].name == "gpt-5"


async def test_walking_in_the_menu_shows_what_is_wanted(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press(*"/model ")
        await offers(chat, chat.engine.models[0])
        await chat.press("down", "enter")
        await chat.until(lambda: chat.engine.asked(SetModel))
        assert chat.engine.asked(SetModel)[0].name == chat.engine.models[1]


async def test_sessions_by_their_titles(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    stored = list(sessions(engine))
    async with run_chat(engine) as chat:
        await chat.ready()
        wanted_one = stored[1]
        chat.app.chat.prompt.insert(f"/resume {wanted_one.title[:12]}")
        await offers(chat, wanted_one.uuid[:8])
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == wanted_one.uuid)


async def test_rows_that_come_late_belong_to_an_earlier_text(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        gate = asyncio.Event()
        real = chat.app.chat.prompt.completing.source
        assert real is not None

        async def slow(source: str, query: str) -> list[object]:
            if query == "a":
                await gate.wait()
            return list(await real(source, query))

        chat.app.chat.prompt.completing.source = slow  # type: ignore[assignment]  # as above
        await chat.press("@", "a")
        await chat.press("escape", "backspace", "s", "t", "o")
        await offers(chat, "@src/store.py ")
        gate.set()
        await chat.pilot.pause()
        assert menu_of(chat).chosen.text == "@src/store.py "  # type: ignore[union-attr]  # just waited for


async def test_the_prompt_in_an_editor(run_chat: ChatRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\nprintf \'and more\\n\' >> "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    pasted = "\n".join(f"line {number}" for number in range(20))
    async with run_chat() as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        await chat.press(*"see ")
        prompt.post_message(events.Paste(f"{pasted}\n"))
        await chat.until(lambda: "[pasted 20 lines, 149 B]" in prompt.text)
        await chat.press("ctrl+j", "ctrl+g")
        await chat.until(lambda: "and more" in prompt.text)
        assert (tmp_path / "seen").read_text() == f"see {pasted}\n"
        assert prompt.text == "see [pasted 20 lines, 149 B]\nand more"
        assert prompt.has_focus
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert chat.engine.asked(SendMessage)[0].text == f"see {pasted}\nand more"


async def test_an_editor_that_fails_leaves_the_prompt(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "false")
    async with run_chat() as chat:
        await chat.ready()
        await chat.press(*"keep", "ctrl+g")
        await chat.until(lambda: chat.noticed("ended with status 1"))
        assert chat.app.chat.prompt.text == "keep"
        assert chat.app.chat.prompt._draft._path.exists(), "it outlives a crash while the editor is open"


def test_a_file_with_lines_is_a_row() -> None:
    assert mention_row("src/a.py", "src/a.py:10-40", ":10-40").text == "@src/a.py:10-40 "
    assert mention_row("a b.py", "a b.py:7", ":7").text == '@"a b.py":7 '
    assert mentions('see @src/a.py:10-40 and @"a b.py":7') == ["src/a.py:10-40", "a b.py:7"]
