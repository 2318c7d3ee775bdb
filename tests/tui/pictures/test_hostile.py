"""Hostile text in everything an engine says, on every screen: it is drawn as the letters it is, and does nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.events import Paste

from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.tui.sessions.preview_pane import preview
from ragforge_tui.tui.transcript.blocks import NoteBlock
from tests.support.fake_engine import CLOCK, conversation
from tests.support.hostile import HOSTILE, MARKUP, HostileEngine
from tests.tui.pictures.stage import Stage
from tests.tui.pictures.test_pictures import STATES
from tests.tui.transcript.samples import DARK

HARM = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
SHOWN = (
    "chat",
    "work-open",
    "work-open-end",
    "complete-files",
    "complete-arguments",
    "find",
    "own-command-undo",
    "failed",
    "retrying",
    "graph-down",
    "persona-switches",
    "approval-diff",
    "approval-several",
    "trust",
    "trust-persona",
    "trace",
    "call",
    "call-diff",
    "call-failed",
    "memory",
    "memory-working",
    "memory-reading",
    "memory-topics",
    "files",
    "files-preview",
    "what-was-sent",
    "what-was-sent-item",
    "panes",
    "sessions",
    "sessions-all",
    "sessions-deleted",
    "sessions-rename",
    "search",
    "topics",
    "topics-merge",
    "personas",
    "persona-draft",
    "persona-improved",
    "models",
    "diff",
)


def check(stage: Stage) -> None:
    """Harmless, and what an escape sequence carried is not there either."""
    harmless(stage)
    assert "owned" not in stage.text()


def harmless(stage: Stage) -> None:
    """Only letters, each line as wide as the screen, no link to anywhere."""
    width = stage.app.size.width
    for strip in stage.screen._compositor.render_strips():
        assert not HARM.search(strip.text), repr(strip.text)
        assert cell_len(strip.text) == width, repr(strip.text)
        for segment in strip:
            assert segment.style is None or not segment.style.link or "evil" not in segment.style.link


@pytest.mark.parametrize("name", SHOWN)
async def test_on_every_screen(tmp_path: Path, name: str) -> None:
    state = STATES[name]
    stage = state.stage(tmp_path, "dark")
    stage.through(HostileEngine(stage.engine))
    async with stage.app.run_test(size=(100, 30)) as pilot:
        stage.pilot = pilot
        await stage.opened()
        await state.bring(stage)
        await stage.rest()
        check(stage)
        assert "owned" not in stage.app.title


async def test_in_the_settings_file(tmp_path: Path) -> None:
    """Its values as they are listed, page by page, and in the line in which one is edited."""
    said = json.dumps(HOSTILE)  # YAML reads JSON's strings.
    path = tmp_path / "config.yaml"
    path.write_text(f"model: {{name: {said}}}\ntools: {{allow_commands: [{said}]}}\ngraph: {{username: {said}}}\n")
    loaded = load(config_file=str(path), workspace=str(tmp_path), env={"HOME": str(tmp_path)})
    options = {"config_file": path, "settings": loaded.settings, "origins": loaded.origins}
    stage = Stage(tmp_path, STATES["settings"].engine(), TuiSettings(), **options)
    async with stage.app.run_test(size=(100, 30)) as pilot:
        stage.pilot = pilot
        await stage.opened()
        await stage.command("/settings")
        for _ in range(12):
            check(stage)
            await stage.press("pagedown")
            await stage.rest()
        await stage.press("escape")
        await stage.command("/settings allow_commands")
        assert MARKUP in stage.text()
        await stage.press("enter")  # Where it is edited it stands as it is written in the file, escapes spelled out.
        await stage.rest()
        harmless(stage)


async def test_pasted(tmp_path: Path) -> None:
    state = STATES["empty"]
    stage = state.stage(tmp_path, "dark")
    async with stage.app.run_test(size=(100, 30)) as pilot:
        stage.pilot = pilot
        await stage.opened()
        stage.app.chat.prompt.post_message(Paste(HOSTILE))
        await stage.shows("[red]x[/]")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", stage.app.chat.prompt.text)
        await stage.press("enter")
        await stage.shows("You said:")
        check(stage)
        for line in ("/rename ", "/tag ", "/find ", "/search ", "/settings ", "/no such "):
            stage.app.chat.prompt.insert(line)
            stage.app.chat.prompt.post_message(Paste(HOSTILE))
            await stage.press("enter")
            await stage.rest()
            check(stage)
            await stage.press("escape", "escape", "escape")
            stage.app.chat.prompt.empty()


def test_texts_without_end_are_shown_in_part() -> None:
    endless = "x[red]y " * 1_250_000
    owner = conversation(1, endless, summary=endless, tags=[endless], persona=endless)
    assert len(preview(owner, CLOCK, glyphs={}).plain) < 30_000
    note = NoteBlock("notice", 0, endless, "error")
    assert len(note.draw(80, DARK)) < 150
    assert note.source == endless
