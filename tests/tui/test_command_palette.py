"""The palette: its order, what Enter does, and the commands that are never selected by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.containers import Vertical

from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.dialogs.command_palette import CommandPalette, found, palette_rows
from ragforge_tui.tui.dialogs.help_screen import HelpScreen
from ragforge_tui.tui.features import FILE_NAME, Features
from ragforge_tui.tui.personas.persona_picker import PersonaPicker
from ragforge_tui.tui.settings.settings_screen import SettingsScreen
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner

REGISTRY = Registry(all_commands())
REMOVING = ["disconnect", "delete-persona", "archive", "delete"]


def test_every_command_is_there_once_in_the_order_of_help_and_removing_ones_last() -> None:
    rows = palette_rows(REGISTRY, {}, [])
    names = [row.key for row in rows]
    assert names[-len(REMOVING) :] == REMOVING
    assert names[: -len(REMOVING)] == [one.name for one in REGISTRY.commands if one.name not in REMOVING]


def test_the_most_used_come_first_but_nothing_that_removes() -> None:
    rows = palette_rows(REGISTRY, {}, ["delete", "diff", "gone", "theme"])
    assert [row.key for row in rows[:3]] == ["diff", "theme", "help"]
    assert [row.heading for row in rows[:3]] == ["Most used", "Most used", "Chat"]
    assert len(rows) == len(REGISTRY.commands)


def test_it_shows_the_keys_of_the_keymap() -> None:
    rows = {row.key: row.badge for row in palette_rows(REGISTRY, {"diff": "f9"}, [])}
    assert (rows["help"], rows["diff"], rows["theme"]) == ("F1", "F9", "")


def test_uses_are_counted_across_chats(tmp_path: Path) -> None:
    for name in ("theme", "diff", "diff"):
        Features(tmp_path).choose(name)
    assert Features(tmp_path).most_chosen() == ["diff", "theme"]


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"chosen": {"diff": "x"}}'])
def test_a_broken_file_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert Features(tmp_path).most_chosen() == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("undo", "undo"),
        ("rewind", "branch"),
        ("go back", "branch"),
        ("br", "branch"),
        ("undo-d", "undo-delete"),
    ],
)
def test_a_query_finds_a_command_by_its_name_then_by_what_it_does(query: str, first: str) -> None:
    assert found(query, palette_rows(REGISTRY, {}, []))[0].key == first


@pytest.mark.parametrize("query", ["e", "se"])
def test_one_or_two_letters_find_only_names_that_start_with_them(query: str) -> None:
    rows = palette_rows(REGISTRY, {}, [])
    keys = found(query, rows)
    assert keys and all(any(name.startswith(query) for name in (row.key, *row.lead.split())) for row in keys)
    assert found("mdl", rows)[0].key == "model"


def test_destructive_commands_match_only_by_name_and_never_first() -> None:
    rows = palette_rows(REGISTRY, {}, [])
    assert [row.key for row in found("dele", rows)][:2] == ["delete", "delete-persona"]
    assert {row.key for row in found("del", rows)[-2:]} == {"delete", "delete-persona"}
    assert not {"delete", "archive", "delete-persona"} & {row.key for row in found("restores within 7 days", rows)}


async def pick(chat: Chat, *letters: str) -> None:
    """Open the palette, narrow it and press Enter."""
    await chat.press("ctrl+p")
    await chat.until(lambda: isinstance(chat.app.screen, CommandPalette))
    await chat.press(*letters, "enter")


async def test_enter_runs_the_command_and_the_next_palette_has_it_first(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(FakeEngine()) as chat:
        await chat.ready()
        await pick(chat, *"keys")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        await chat.press("escape", "ctrl+p")
        await chat.until(lambda: isinstance(chat.app.screen, CommandPalette))
        assert chat.app.chat.features.most_chosen() == ["help"]


async def test_a_typed_command_counts_too(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine()) as chat:
        await chat.ready()
        await chat.type("/personas")
        await chat.until(lambda: isinstance(chat.app.screen, PersonaPicker))
        assert chat.app.chat.features.most_chosen() == ["personas"]


async def test_a_command_that_needs_a_name_goes_to_the_prompt_with_its_menu(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine()) as chat:
        await chat.ready()
        await pick(chat, *"set-per")
        await chat.until(lambda: chat.app.chat.prompt.text == "/set-persona ")
        await chat.until(lambda: chat.app.chat.prompt.completing.open)


async def test_a_draft_is_never_overwritten(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine()) as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("half a thought")
        await pick(chat, *"delete-per")
        await chat.until(lambda: chat.noticed("Which persona?"))
        assert chat.app.chat.prompt.text == "half a thought"


async def test_a_dialog_covers_what_it_would_leave_only_fragments_of(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(), size=(100, 40)) as chat:
        await chat.ready()
        await chat.press("ctrl+p")
        await chat.until(lambda: isinstance(chat.app.screen, CommandPalette))
        frame = chat.app.screen.query(Vertical).first()
        await chat.until(lambda: frame.region.width == 100)
        await chat.pilot.resize_terminal(120, 40)
        await chat.until(lambda: frame.region.width == 92)


async def test_a_dialog_that_covers_the_width_and_nearly_the_height_covers_all(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(), size=(80, 24), config_file=Path("/none/config.yaml")) as chat:
        await chat.ready()
        await chat.type("/settings")
        await chat.until(lambda: isinstance(chat.app.screen, SettingsScreen))
        frame = chat.app.screen.query(Vertical).first()
        await chat.until(lambda: frame.region.size == (80, 24))
        await chat.pilot.resize_terminal(180, 40)
        await chat.until(lambda: frame.region.size == (140, 36))


def test_the_palette_never_offers_to_leave_first() -> None:
    rows = palette_rows(Registry(all_commands()), {}, ["quit", "usage"])
    assert [row.key for row in rows[:1]] == ["usage"] and "quit" in [row.key for row in rows]
