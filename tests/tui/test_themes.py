"""Themes: which one a terminal gets, trying them on, keeping one, and none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.color import Color

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.tui.drawing import theme
from ragforge_tui.tui.drawing.palette import COLOR_NAMES, contrast, palette_of, persona_color
from ragforge_tui.tui.settings.settings_screen import ThemePicker
from ragforge_tui.tui.widgets.choice_list import ChoiceList
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.tui.conftest import ChatRunner


@pytest.mark.parametrize(
    ("setting", "env", "name"),
    [
        ("auto", {}, "ragforge-dark"),
        ("auto", {"COLORFGBG": "0;15"}, "ragforge-light"),
        ("auto", {"COLORFGBG": "15;default;0"}, "ragforge-dark"),
        ("auto", {"TEXTUAL_THEME": "nord"}, "nord"),
        ("dark", {"COLORFGBG": "0;15"}, "ragforge-dark"),
        ("ansi", {}, "ragforge-ansi-dark"),
        ("ansi", {"COLORFGBG": "0;15"}, "ragforge-ansi-light"),
        ("contrast-light", {}, "ragforge-contrast-light"),
        ("mono", {}, "ragforge-mono"),
        ("nord", {}, "nord"),
    ],
)
def test_which_theme(setting: str, env: dict[str, str], name: str) -> None:
    assert theme.choose(setting, env) == name
    assert theme.choose(setting, env, no_color=True) == "ragforge-mono"


def variables(own: Any) -> dict[str, str]:
    """As the app gives them."""
    return own.to_color_system().generate() | own.variables


@pytest.mark.parametrize(
    ("own", "least"),
    [(theme.DARK, 4.5), (theme.LIGHT, 4.5), (theme.CONTRAST_DARK, 7.0), (theme.CONTRAST_LIGHT, 7.0)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_every_style_can_be_read(own: Any, least: float) -> None:
    palette = palette_of(variables(own), dark=own.dark, ansi=False)
    background = Color.parse(own.background)
    for field in palette.__struct_fields__:
        style = getattr(palette, field)
        if isinstance(style, bool) or style.bgcolor is not None:
            continue
        assert style.color is not None, field
        # Rules, bars and arrows are no text, for which 3 is enough.
        enough = min(least, 3.0) if field in ("faint", "arrow") else least
        assert contrast(Color.from_rich_color(style.color), background) >= enough, field
    assert palette.band.bgcolor is not None
    band = Color.from_rich_color(palette.band.bgcolor)
    assert contrast(band, background) > 1.05
    for field in ("text", "muted", "you", "link"):
        assert contrast(Color.from_rich_color(getattr(palette, field).color), band) >= least, field


@pytest.mark.parametrize("own", [theme.DARK, theme.LIGHT, theme.CONTRAST_DARK, theme.CONTRAST_LIGHT])
@pytest.mark.parametrize("color", [*COLOR_NAMES, "#000000", "#ffffff", "#ffb000", "#123456"])
def test_every_persona_can_be_read(own: Any, color: str) -> None:
    found = persona_color(color, dark=own.dark)
    assert found is not None
    assert contrast(found, Color.parse(own.panel)) >= 7 and contrast(found, Color.parse(own.background)) >= 7


def test_without_colours_there_are_none() -> None:
    palette = palette_of(variables(theme.MONO), dark=True, ansi=True)
    styles = [value for field in palette.__struct_fields__ if not isinstance(value := getattr(palette, field), bool)]
    assert all(style.color is None and style.bgcolor is None for style in styles)
    assert palette.speaker("#ff0000").color is None
    assert palette.you != palette.text and palette.link != palette.text and palette.comment != palette.text


def test_the_terminals_own_colours_are_its_sixteen() -> None:
    for own in (theme.ANSI_DARK, theme.ANSI_LIGHT):
        palette = palette_of(variables(own), dark=own.dark, ansi=True)
        for field in palette.__struct_fields__:
            style = getattr(palette, field)
            if not isinstance(style, bool) and style.color is not None:
                assert style.color.is_default or (style.color.number is not None and style.color.number < 16), field


async def test_a_theme_is_tried_on_and_kept_or_not(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# mine\ntui:\n  theme: dark # calm\n")
    async with run_chat(config_file=file, tui=TuiSettings(theme="dark", sidebar=False)) as chat:
        await chat.ready()
        await chat.type("/theme")
        await chat.until(lambda: isinstance(chat.app.screen, ThemePicker))
        await chat.press("down")
        await chat.until(lambda: chat.app.theme == "ragforge-light")
        await chat.press("escape")
        await chat.until(lambda: chat.app.theme == "ragforge-dark")
        assert chat.app.chat.prompt.has_focus
        await chat.type("/theme")
        await chat.until(lambda: isinstance(chat.app.screen, ThemePicker))
        await chat.pilot.click(ChoiceList, offset=(4, 3))
        await chat.until(lambda: chat.app.theme == "ragforge-light")
        assert isinstance(chat.app.screen, ThemePicker), "a first click only tries it on"
        await chat.press(*"nord", "enter")
        await chat.until(lambda: 'theme: "nord"' in file.read_text())
        assert file.read_text() == '# mine\ntui:\n  theme: "nord" # calm\n'
        assert chat.app.theme == "nord"


async def test_a_theme_by_name(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file, origins={"tui.theme": "/p/.ragforge/config.yaml"}) as chat:
        await chat.ready()
        await chat.type("/theme contrast-light")
        await chat.until(lambda: chat.app.theme == "ragforge-contrast-light")
        await chat.until(lambda: chat.noticed("overrides it at the next start"))
        assert yaml.safe_load(file.read_text()) == {"tui": {"theme": "contrast-light"}}
        await chat.type("/settings x")
        await chat.press("escape", "escape")
        chat.app.chat.prompt.empty()
        await chat.type("/model ")


async def test_no_color(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with run_chat(tui=TuiSettings(theme="light", sidebar=False)) as chat:
        await chat.ready()
        await chat.type("hello *there* `code`")
        await chat.until(lambda: chat.engine.turns)
        await chat.press("/")
        await chat.pilot.pause()
        assert chat.app.theme == "ragforge-mono"
        for strip in chat.app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                if style is not None:
                    assert style.color is None or style.color.is_default
                    assert style.bgcolor is None or style.bgcolor.is_default


async def test_a_theme_that_does_not_exist_and_keys_that_clash_are_reported(run_chat: ChatRunner) -> None:
    tui = TuiSettings(theme="nrod", keymap={"retry": "f1", "nothing": "f9", "stop": "ctrl+a"}, sidebar=False)
    async with run_chat(tui=tui) as chat:
        await chat.ready()
        await chat.until(lambda: chat.noticed("there is no theme 'nrod'"))
        assert chat.noticed("f1 is the key of help and retry")
        assert chat.noticed("there is no command 'nothing'")
        assert chat.noticed("ctrl+a is needed for typing")
        assert chat.app.theme == "ragforge-dark"


@pytest.mark.parametrize("wanted", [{"continue_last": True}, {"resume": "00000001"}, {"resume": ""}])
async def test_key_problems_appear_below_a_resumed_conversation(run_chat: ChatRunner, wanted: dict[str, Any]) -> None:
    engine = FakeEngine()
    for number in (1, 2):
        owner = conversation(number)
        engine.store(owner, turn(owner, 1, "said before", "answered before"))
    async with run_chat(engine, tui=TuiSettings(keymap={"retry": "f1"}, sidebar=False), **wanted) as chat:
        await chat.ready()
        if wanted == {"resume": ""}:
            await chat.until(lambda: len(chat.app.screen_stack) == 2)
            await chat.press("escape")
            await chat.until(lambda: len(chat.app.screen_stack) == 1)
            chat.app.chat.session.spawn(chat.app.chat.session.open("00000001"), group="open")

        def warnings() -> list[str]:
            return [block.source for block in chat.app.chat.transcript.document.blocks]

        await chat.until(lambda: any("answered before" in text for text in warnings()))
        assert [number for number, text in enumerate(warnings()) if "f1 is the key of" in text] == [len(warnings()) - 1]
        await chat.app.chat.session.open("00000002")
        assert not any("f1 is the key of" in text for text in warnings())
