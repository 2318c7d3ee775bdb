"""The stage the states are brought to: a chat on a scripted engine, with what would differ from run to run fixed.

A state is a name and a function that brings the stage there. It says what it waits for; `rest` then waits until the
screen stands still, so that a picture depends neither on the machine nor on how busy it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.app import ChatApp
from tests.support.chat_scene import scene_engine
from tests.support.fake_engine import FakeEngine
from tests.support.waiting import quiet, stirred, until
from tests.tui.conftest import make_app

SOON = 0.2
"""Longer than any pause of the program after which the screen changes by itself."""


class Stage:
    """A chat and its engine."""

    def __init__(self, folder: Path, engine: FakeEngine, tui: TuiSettings, **options: Any) -> None:
        self.engine = engine
        self.theme = tui.theme
        self._engines: list[Engine] = [engine]

        async def connect() -> Engine:
            if not self._engines:
                await asyncio.Event().wait()  # After a crash no other one comes.
            return self._engines.pop()

        options.setdefault("continue_last", True)
        self.app: ChatApp = make_app(connect, folder, tui=tui, **options)
        self.pilot: Pilot[Any]

    def through(self, engine: Engine) -> None:
        """Connect the chat to another engine, which speaks for the scripted one."""
        self._engines = [engine]

    @property
    def screen(self) -> Screen[Any]:
        """What is on top."""
        return cast(Screen[Any], self.app.screen)

    @property
    def owner(self) -> Conversation:
        """The conversation that is open."""
        opened = self.app.chat.session.state.conversation
        assert opened is not None
        return self.engine.conversations[opened.uuid]

    async def opened(self) -> None:
        """Wait until the engine answers and the conversation is there, where one is wanted."""
        state = self.app.chat.session.state
        wanted = self.app.chat.options.continue_last
        await self.until(lambda: state.connection == "up" and state.graph is not None, "an engine")
        if wanted:
            await self.until(lambda: state.conversation and self.app.chat.transcript.document.blocks, "a conversation")

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        try:
            await until(holds, what, pause=stirred)
        except AssertionError as error:
            error.add_note(f"On the screen:\n{self.text()}")
            raise

    async def shows(self, words: str) -> None:
        """Wait until these words are on the screen."""
        await self.until(lambda: words in self.text(), words)

    async def rest(self) -> None:
        """Wait until nothing is left to do for the chat and its engine, now and soon."""
        await quiet(SOON)

    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Write in the prompt and press Enter; the menu of completions is closed first."""
        self.app.chat.prompt.insert(text)
        await self.pilot.pause()
        await self.pilot.press(*(["escape"] if text.startswith("/") else []), "enter")

    def fill(self, text: str) -> None:
        """Put text into the focused field at once: a field that searches while one types sees no part of it."""
        field = self.screen.focused
        assert isinstance(field, Input)
        field.insert_text_at_cursor(text)

    async def command(self, text: str) -> None:
        """Give a command that opens a screen, and wait for it."""
        await self.type(text)
        await self.until(lambda: len(self.app.screen_stack) > 1, text)
        await self.rest()

    async def wear(self, theme: str) -> None:
        """Switch to another theme, as the setting names it, and let all follow."""
        if theme != self.theme:
            self.theme = theme
            self.app.chat.settings.use_theme(theme)
        await self.rest()

    async def resize(self, width: int, height: int) -> None:
        """Make the terminal larger or smaller."""
        if self.app.size != (width, height):
            await self.pilot.resize_terminal(width, height)

    def svg(self) -> str:
        """Return the screen as an SVG, without the name that Rich derives from its content."""
        return re.sub(r"terminal-\d+", "terminal", self.app.export_screenshot(simplify=True))

    def tell(self, *events: Event) -> None:
        """Let the engine say something."""
        for event in events:
            self.engine.emit(event)


@dataclass(frozen=True)
class State:
    """A named state of the screen.

    Attributes:
        name: Names the picture.
        bring: Brings the stage there, from a chat whose conversation is open.
        engine: Makes the engine.
        tui: Settings of the screen besides the theme.
        options: How the chat starts.
    """

    name: str
    bring: Callable[[Stage], Awaitable[None]]
    engine: Callable[[], FakeEngine] = scene_engine
    tui: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def stage(self, folder: Path, theme: str) -> Stage:
        """The stage of the state, before the chat runs."""
        settings = {"theme": theme, "reduced_motion": True, "sidebar": False, **self.tui}
        return Stage(folder, self.engine(), TuiSettings(**settings), **self.options)


async def as_it_is(stage: Stage) -> None:
    """Nothing more is to be done."""


def keys(*pressed: str) -> Callable[[Stage], Awaitable[None]]:
    """Press keys, and let what each leads to come."""

    async def bring(stage: Stage) -> None:
        for key in pressed:
            await stage.press(key)
            await stage.rest()

    return bring


def command(text: str, *pressed: str) -> Callable[[Stage], Awaitable[None]]:
    """Give a command that opens a screen, and press keys there."""

    async def bring(stage: Stage) -> None:
        await stage.command(text)
        await keys(*pressed)(stage)

    return bring


def named(states: Sequence[State]) -> dict[str, State]:
    """States by name; each has its own."""
    table = {state.name: state for state in states}
    assert len(table) == len(states), "two states have one name"
    return table
