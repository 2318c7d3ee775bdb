"""A chat on a fake engine, run without a terminal, that records what the transcript receives."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.app import ChatApp, ChatOptions
from ragforge_tui.tui.limits import SCREEN
from tests.support.fake_engine import FakeEngine
from tests.support.waiting import calm, stirred, until

Connect = Callable[[], Any]
NOON = datetime(2026, 11, 3, 18, 0, tzinfo=UTC)


class Chat:
    """A running chat and what a test asks about it."""

    def __init__(self, app: ChatApp, engine: FakeEngine) -> None:
        self.app = app
        self.engine = engine
        self.pilot: Pilot[str]
        self.notices: list[tuple[str, str]] = []
        self.events: list[object] = []
        self.loaded: list[list[Any]] = []
        self.inserted: list[list[Any]] = []
        self._record()

    def _record(self) -> None:
        transcript = self.app.chat.transcript

        def wrap(name: str, keep: Callable[..., None]) -> None:
            real = getattr(transcript, name)

            def recorded(*args: Any, **named: Any) -> Any:
                keep(*args)
                return real(*args, **named)

            setattr(transcript, name, recorded)

        wrap("notice", lambda text, level: self.notices.append((level, text)))
        wrap("apply", self.events.append)
        wrap("load", lambda turns: self.loaded.append(list(turns)))
        wrap("insert", lambda turns: self.inserted.append(list(turns)))

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        try:
            await until(holds, what, pause=stirred)
        except AssertionError as error:
            error.add_note(f"Notices: {self.notices}")
            raise

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Put text in the prompt as typing would leave it, and press Enter."""
        self.app.chat.prompt.insert(text)
        await self.pilot.pause()
        self.app.last_key = 0.0
        await self.pilot.press("enter")
        self.app.last_key = 0.0

    async def ready(self) -> None:
        """Wait for the engine."""
        await self.until(lambda: self.app.chat.session.state.ready, "ready")

    def noticed(self, word: str) -> bool:
        """Whether a notice holds this."""
        return any(word in text for _, text in self.notices)

    def happened(self, kind: type[Any]) -> bool:
        """Whether an event of this type reached the transcript."""
        return any(isinstance(event, kind) for event in self.events)


ChatRunner = Callable[..., AbstractAsyncContextManager[Chat]]


@pytest.fixture(scope="session", autouse=True)
def modules_stay() -> None:
    """Each app is some garbage; looking for it need not go through all that was imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def styles_are_parsed_once() -> Iterator[None]:
    """Keep what was parsed of style sheets, which each app would parse again."""
    kept: dict[object, list[RuleSet]] = {}
    parse = Stylesheet._parse_rules

    def parsed(sheet: Stylesheet, *args: Any, **named: Any) -> list[RuleSet]:
        key = args, tuple(named.items()), tuple(sheet._variables.items())
        if key not in kept:
            kept[key] = parse(sheet, *args, **named)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parsed)
        yield


@pytest.fixture(autouse=True)
def lines_go() -> Iterator[None]:
    """Let go of the lines of widgets that are gone, which Textual keeps for the last thousand."""
    yield
    StylesCache.get_inner_outer.cache_clear()


@pytest.fixture(autouse=True)
def pilots_watch_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot waits until there is nothing to do, not until the process has been idle for a while."""
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", lambda *_: calm())


@pytest.fixture(autouse=True)
def mark_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turns that were jumped to stay marked, however slow the machine is."""
    monkeypatch.setattr(SCREEN, "mark", 3600.0)


@pytest.fixture(autouse=True)
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question may be answered as soon as it is shown; what holds before that has tests of its own."""
    monkeypatch.setattr(SCREEN, "read", 0.0)
    monkeypatch.setattr(SCREEN, "read_next", 0.0)
    monkeypatch.setattr(SCREEN, "alone", 0.0)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """None of the developer's own colours, multiplexers and time zone."""
    for name in ("NO_COLOR", "COLORFGBG", "TEXTUAL_THEME", "TMUX", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def make_app(connect: Connect, state_dir: Path, **options: Any) -> ChatApp:
    """A chat with everything fixed that would differ from run to run."""
    options.setdefault("persona", "Ragnarök")
    options.setdefault("exports_dir", Path("/exports"))
    app = ChatApp(connect, ChatOptions(state_dir=state_dir, workspace="/w", version="0.1.0", **options))
    app.chat.now = lambda: NOON
    app.chat.clock = lambda: 0.0
    app.chat.prompt.cursor_blink = False
    return app


@pytest.fixture
def run_chat(tmp_path: Path) -> ChatRunner:
    """Run a chat; `engines` are given out one after the other, as after crashes."""

    @asynccontextmanager
    async def run(
        engine: FakeEngine | None = None,
        *later: FakeEngine,
        size: tuple[int, int] = (80, 24),
        gate: asyncio.Event | None = None,
        tui: TuiSettings | None = None,
        **options: Any,
    ) -> AsyncIterator[Chat]:
        engines = [engine or FakeEngine(), *later]
        left = iter(engines)

        async def connect() -> Engine:
            if gate is not None:
                await gate.wait()
            return next(left)

        app = make_app(connect, tmp_path, tui=tui or TuiSettings(reduced_motion=True, sidebar=False), **options)
        chat = Chat(app, engines[0])
        async with app.run_test(size=size) as pilot:
            chat.pilot = pilot
            await pilot.pause()
            yield chat

    return run
