"""The settings: what is shown of them, and changing them on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.widgets import Input

from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import ModelSettings, Settings
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.requests.work import ChangeModelSettings
from ragforge_tui.tui.settings.setting_rows import Setting, following, matching, parse, read_settings, section_title
from ragforge_tui.tui.settings.settings_screen import SettingsScreen
from ragforge_tui.tui.widgets.choice_list import ChoiceList
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner


def read(folder: Path, text: str = "", **given: Any) -> dict[str, Setting]:
    """The settings with this user's file."""
    file = folder / "config.yaml"
    file.write_text(text)
    loaded = load(config_file=str(file), workspace=str(folder), **given)
    return {one.key: one for one in read_settings(loaded.settings, loaded.origins, file)}


def test_where_values_come_from(tmp_path: Path) -> None:
    (tmp_path / ".ragforge").mkdir()
    (tmp_path / ".ragforge" / "config.yaml").write_text("tui:\n  theme: nord\n")
    text = "model: {name: mine, api_key: secret}\ntui: {theme: light, show_reasoning: true}\n"
    rows = read(tmp_path, text, env={"RAGFORGE_MODEL": "openai/x"}, flags={"graph.uri": "bolt://h"})
    assert (rows["model.name"].shown, rows["model.name"].wins, rows["model.name"].own) == (
        "openai/x",
        "RAGFORGE_MODEL",
        "mine",
    )
    assert (rows["graph.uri"].shown, rows["graph.uri"].origin) == ("bolt://h", "--graph")
    assert (rows["tui.theme"].shown, rows["tui.theme"].wins) == ("nord", "the project's file")
    assert (rows["tui.show_reasoning"].shown, rows["tui.show_reasoning"].origin) == ("on", "your file")
    assert (rows["tui.sidebar"].origin, rows["tui.sidebar"].live, rows["model.name"].live) == (
        "default",
        "sidebar",
        "",
    )
    secret = rows["model.api_key"]
    assert (secret.shown, secret.typed, rows["graph.password"].shown) == ("••••••", "", "not set")
    assert "secret" not in secret.shown


def test_a_model_that_no_setting_names_has_its_source(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    chosen = ModelChanged(phase="ready", name="openai/x", origin="chosen last with /connect or /model")

    def model_row(settings: Settings, origins: dict[str, str]) -> tuple[str, str]:
        rows = {one.key: one for one in read_settings(settings, origins, file, model=chosen)}
        return rows["model.name"].shown, rows["model.name"].origin

    assert model_row(Settings(), {}) == ("openai/x", "chosen last with /connect or /model")
    named = Settings(model=ModelSettings(name="mine"))
    assert model_row(named, {"model.name": "--model"}) == ("mine", "--model")


def test_a_file_changed_since_the_start_is_what_counts(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("tui: {theme: light}\nmodel: {retries: 9}\n")
    rows = {one.key: one for one in read_settings(Settings(), {"tui.theme": str(file)}, file)}
    assert (rows["tui.theme"].value, rows["model.retries"].value) == ("light", 9)
    file.unlink()
    rows = {one.key: one for one in read_settings(Settings(), {"tui.theme": str(file)}, file)}
    assert (rows["tui.theme"].value, rows["tui.theme"].origin) == ("auto", "default")


def test_kinds_and_what_follows(tmp_path: Path) -> None:
    rows = read(tmp_path, "agent: {memory: {recall: {scope: none}}}\n")
    assert rows["tui.show_reasoning"].kind == "switch" and following(rows["tui.show_reasoning"]) is True
    scope = rows["agent.memory.recall.scope"]
    assert scope.kind == "choice" and set(scope.choices) == {"workspace", "all", "none"}
    assert following(scope) != "none"
    assert rows["model.retries"].kind == "number" and rows["model.temperature"].nullable
    assert rows["tools.ignore"].kind == "other" and rows["tui.theme"].kind == "text"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("model.retries", " 2 ", 2),
        ("model.temperature", "0.5", 0.5),
        ("model.temperature", "1", 1.0),
        ("model.temperature", "", None),
        ("model.name", " ollama/qwen3 ", "ollama/qwen3"),
        ("user.name", "yes", "yes"),
        ("tools.ignore", '["*.bin", dist]', ["*.bin", "dist"]),
        ("tools.enabled", "", None),
        ("tools.enabled", "All", None),
        ("tools.enabled", "none", None),
        ("tools.enabled", "[all]", ["all"]),
        ("model.temperature", "None", None),
        ("model.temperature", "NULL", None),
        ("agent.memory.max_context_messages", "no limit", None),
        ("user.name", "none", "none"),
        ("tui.keymap", "{retry: f12}", {"retry": "f12"}),
        ("agent.memory.recall.level_boost", "{1: 1.0}", {1: 1.0}),
        ("graph.uri", "embedded", ""),
    ],
)
def test_typed_text_becomes_a_value(tmp_path: Path, key: str, text: str, value: object) -> None:
    assert parse(read(tmp_path)[key], text) == value


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("model.retries", "-1", "at least 0"),
        ("model.retries", "two", "whole number"),
        ("model.retries", "", "whole number"),
        ("tools.ignore", "[a", "cannot be read"),
        ("graph.uri", "http://x", "bolt"),
        ("model.api_base", "x", "http"),
    ],
)
def test_invalid_values_are_reported(tmp_path: Path, key: str, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse(read(tmp_path)[key], text)


def test_a_shown_value_parses_back(tmp_path: Path) -> None:
    text = "tools: {ignore: [a, 'b c']}\nmodel: {retries: 2, temperature: 0.5}\nuser: {name: 'null'}\n"
    for row in read(tmp_path, text).values():
        if not row.choices and not row.secret:
            assert parse(row, row.typed) == row.value


def test_null_is_shown_by_what_it_means_and_can_be_typed_as_shown(tmp_path: Path) -> None:
    rows = read(tmp_path)
    assert (rows["tools.enabled"].shown, rows["agent.memory.max_context_messages"].shown) == ("all", "no limit")
    nullable = [row for row in rows.values() if row.value is None]
    assert len(nullable) > 2
    for row in nullable:
        assert parse(row, row.shown.upper()) is None


def test_search_and_headings(tmp_path: Path) -> None:
    rows = list(read(tmp_path).values())
    assert matching(rows, "theme")[0].key == "tui.theme"
    assert matching(rows, "stalled")[0].key == "model.token_timeout"
    assert matching(rows, "  ") == rows
    assert section_title("agent.memory.recall") == "memory.recall: Automatic recall of earlier turns."


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("graph.heap_mb", "512 MB"),
        ("graph.linger_seconds", "20 s"),
        ("mcp.timeout", "120 s"),
        ("tools.max_output_chars", "30 000"),
        ("agent.memory.recall.min_score", "0.3"),
        ("graph.uri", "the embedded graph"),
        ("user.name", "git's global user.name"),
        ("model.temperature", "the provider's"),
        ("model.api_base", "not set"),
    ],
)
def test_values_are_in_the_words_of_people(tmp_path: Path, key: str, words: str) -> None:
    assert read(tmp_path)[key].shown == words


# -- the screen


async def open_settings(chat: Chat, query: str) -> SettingsScreen:
    await chat.ready()
    await chat.type(f"/settings {query}")
    await chat.until(lambda: isinstance(chat.app.screen, SettingsScreen))
    screen = chat.app.screen
    assert isinstance(screen, SettingsScreen)
    await chat.until(lambda: screen.query_one(ChoiceList).chosen)
    return screen


def own(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


async def test_a_switch_a_text_and_a_reset(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "own" / "config.yaml"
    async with run_chat(config_file=file) as chat:
        screen = await open_settings(chat, "show_reasoning")
        await chat.press("enter")
        await chat.until(lambda: file.exists() and own(file) == {"tui": {"show_reasoning": True}})
        await chat.until(lambda: chat.app.chat.transcript.document.shown.unfold_reasoning)
        await chat.press("alt+d")
        await chat.until(lambda: not chat.app.chat.transcript.document.shown.unfold_reasoning)
        assert own(file) == {"tui": None}
        await chat.press(*"persistence.auto")
        assert screen.query_one("#settings-query", Input).value == "persistence.auto"
        await chat.press("enter")
        await chat.until(lambda: "agent" in own(file))
        await chat.press("escape")
        await chat.until(lambda: chat.app.screen is not screen)
        assert chat.app.chat.prompt.has_focus


async def test_a_time_out_holds_from_the_next_request_on(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(FakeEngine(), later := FakeEngine(), config_file=file) as chat:
        screen = await open_settings(chat, "first_token_timeout")
        assert "from the next request on" in str(screen.query_one("#settings-about").render())
        await chat.press("enter", *"45", "enter")
        await chat.until(lambda: chat.engine.asked(ChangeModelSettings))
        assert chat.engine.asked(ChangeModelSettings)[0].changes == {"first_token_timeout": 45}
        assert own(file) == {"model": {"first_token_timeout": 45}}
        chat.engine.crash()
        await chat.until(lambda: later.asked(ChangeModelSettings))


async def listed(chat: Chat) -> list[str]:
    """What a setting can be, once it is on the screen."""
    await chat.until(lambda: isinstance(chat.app.screen, Picker) and chat.app.screen._list.rows)
    assert isinstance(chat.app.screen, Picker)
    return [row.key for row in chat.app.screen._list.rows]


async def test_a_setting_with_a_closed_set_is_chosen_from_it(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file) as chat:
        await open_settings(chat, "tui.theme")
        await chat.press("enter")
        names = await listed(chat)
        assert {"auto", "light", "mono", "nord"} <= set(names)
        picker = chat.app.screen
        assert isinstance(picker, Picker) and picker._list.chosen is not None
        assert picker._list.chosen.key == "auto", "the one in effect"
        await chat.press(*"light")
        await chat.until(lambda: picker._list.chosen and picker._list.chosen.key == "light")
        await chat.press("enter")
        await chat.until(lambda: chat.app.theme == "ragforge-light")
        assert own(file)["tui"]["theme"] == "light"
        await chat.until(lambda: isinstance(chat.app.screen, SettingsScreen))
        await chat.press(*"tui.notify", "enter")
        assert await listed(chat) == ["auto", "bell", "off"]
        await chat.press("down", "down", "enter")
        await chat.until(lambda: chat.app.chat.attention.notify == "off")


async def test_plain_takes_effect_at_once_and_ends_at_once(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file) as chat:
        await open_settings(chat, "tui.plain")
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.transcript.palette.plain)
        assert chat.app.has_class("-plain") and chat.app.chat.options.tui.reduced_motion
        await chat.press("enter")
        await chat.until(lambda: not chat.app.chat.transcript.palette.plain)
        assert not chat.app.has_class("-plain")


async def test_a_wrong_value_stays_in_the_line(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file) as chat:
        screen = await open_settings(chat, "retries")
        await chat.press("enter", "end", "backspace", "-")
        note = screen.query_one("#settings-note")
        await chat.until(lambda: "expected" in str(note.render()))
        await chat.press("1")
        await chat.until(lambda: "at least 0" in str(note.render()))
        await chat.press("enter")
        assert screen.query_one("#settings-value", Input).value == "-1"
        await chat.press("backspace", "backspace", "3")
        await chat.until(lambda: not str(note.render()))
        await chat.press("escape")
        assert screen.query_one("#settings-query", Input).has_focus and not file.exists()
        await chat.press("escape")
        assert not screen.query_one("#settings-query", Input).value
        assert chat.app.screen is screen


async def test_keys_that_cannot_work_are_reported_when_they_are_set(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file) as chat:
        screen = await open_settings(chat, "tui.keymap")
        note = screen.query_one("#settings-note")
        await chat.press("enter")
        line = screen.query_one("#settings-value", Input)
        line.value = "{retry: f1, retyr: f9}"
        await chat.press("enter")
        await chat.until(lambda: "f1 is the key of help and retry" in str(note.render()))
        assert "there is no command 'retyr'; did you mean retry?" in str(note.render())
        assert note.size.height >= 2
        await chat.press("enter")
        line.value = "{retry: f12}"
        await chat.press("enter")
        await chat.until(lambda: "tui.keymap: {" in str(note.render()))
        assert chat.app.chat.options.tui.keymap == {"retry": "f12"}


async def test_settings_that_override_the_file_are_reported(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file, origins={"model.name": "RAGFORGE_MODEL"}) as chat:
        screen = await open_settings(chat, "model.name")
        assert "RAGFORGE_MODEL overrides" in str(screen.query_one("#settings-about").render())
        await chat.press("enter", *"offline", "enter")
        await chat.until(lambda: file.exists())
        await chat.until(lambda: "overrides it" in str(screen.query_one("#settings-note").render()))


async def test_a_secret_is_typed_unseen(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file, size=(60, 20)) as chat:
        screen = await open_settings(chat, "api_key")
        await chat.press("enter", *"sk-1", "enter")
        await chat.until(lambda: file.exists())
        assert own(file) == {"model": {"api_key": "sk-1"}}
        await chat.pilot.pause()
        assert "sk-1" not in chat.app.export_screenshot()
        assert screen.query_one("#settings-value", Input).value == ""


async def test_values_are_next_to_their_names_in_a_column_of_their_own(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(size=(120, 40), config_file=tmp_path / "config.yaml") as chat:
        screen = await open_settings(chat, "tools. command")
        found = screen.query_one(ChoiceList)
        rows = [line for line in str(found.render()).splitlines() if line[2:].startswith("tools.")]
        columns = {line.index(value) for line in rows for value in ("120 s", "none", "on  ") if value in line}
        assert len(rows) > 2
        assert len(columns) == 1 and 28 <= columns.pop() <= 34
