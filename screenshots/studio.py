"""The running chat without a terminal, and pictures of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from ragforge_tui import __version__
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.app import ChatApp, ChatOptions
from ragforge_tui.tui.drawing.theme import DARK
from screenshots.film import SAMPLE_SECONDS, Film
from screenshots.svg import png, with_font, without_folder

WIDE = (120, 40)
TIMEOUT_SECONDS = 60.0
QUESTION_SECONDS, ANSWER_SECONDS = 2.2, 3.0
"""How long a film shows a question and an answer."""
TYPED_AT_ONCE = 3
"""Letters that a film shows typed at once."""


class Studio:
    """Keys and messages for a running chat, and its pictures.

    Args:
        secret: Folder that pictures show as ``~``.
        fonts: Folder of the fonts to embed.
    """

    def __init__(
        self, app: ChatApp, pilot: Pilot[str], engine: InProcessEngine, out: Path, secret: str, fonts: Path
    ) -> None:
        self._app = app
        self._pilot = pilot
        self._engine = engine
        self._out = out
        self._secret = secret
        self._fonts = fonts

    async def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until the condition holds.

        Raises:
            TimeoutError: It did not within `TIMEOUT_SECONDS`.
        """
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"timed out: {what}")
            await self._pilot.pause(0.05)

    async def start(self) -> None:
        """Wait for the engine and its graph."""
        state = self._app.session.state
        await self.wait_until(lambda: state.ready and state.graph is not None and state.graph.phase == "ready", "ready")

    async def type(self, text: str) -> None:
        """Write text into the prompt and press Enter; Escape first closes the menu of commands."""
        self._app.prompt.insert(text)
        await self._pilot.pause()
        await self._pilot.press(*(["escape"] if text.startswith("/") else []), "enter")

    async def send(self, text: str, *, approve: bool = False, film: Film | None = None) -> None:
        """Send a message and wait for the answer and for the memory.

        Args:
            approve: Answer all questions with yes.
            film: Shows how the message is typed; questions and the answer are held, to be read.
        """
        turns = self._turns()
        if film is None:
            await self.type(text)
        else:
            await self._type_slowly(text)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._turns() == turns or self._app.session.state.busy:
            if time.monotonic() > deadline:
                raise TimeoutError(f"timed out: {text}")
            await self._pilot.pause(0.1)
            if approve and self._app.questions.has_focus:
                await self._pilot.pause(0.8)  # a question ignores keys for its first 0.7 seconds
                if film is not None:
                    film.hold(QUESTION_SECONDS)
                await self._pilot.press("y")
        await self.settle()
        if film is not None:
            film.hold(ANSWER_SECONDS)

    async def _type_slowly(self, text: str) -> None:
        for start in range(0, len(text), TYPED_AT_ONCE):
            self._app.prompt.insert(text[start : start + TYPED_AT_ONCE])
            await self._pilot.pause(SAMPLE_SECONDS)
        await self._pilot.press("enter")

    def film(self) -> Film:
        """Return a film of the chat that has just been started."""
        film = Film(self._app, self._secret)
        film.start()
        return film

    def keep(self, film: Film, name: str) -> None:
        """Write a film."""
        (self._out / f"{name}.svg").write_text(film.picture(self._fonts), encoding="utf-8")

    async def resize(self, size: tuple[int, int]) -> None:
        """Change the size of the terminal."""
        await self._pilot.resize_terminal(*size)
        await self._pilot.pause(0.3)

    def _turns(self) -> int:
        conversation = self._engine.agent.opened(self._app.session.state.conversation_id)
        return conversation.record.next_turn if conversation else 0

    async def settle(self) -> None:
        """Wait until keys, vectors and summaries of all turns are stored."""
        conversation = self._engine.agent.opened(self._app.session.state.conversation_id)
        if conversation is not None:
            await conversation.memory.settle()
        await self._pilot.pause(0.3)

    async def open(self, command: str, *keys: str) -> None:
        """Open a screen by a command, then press the keys in it."""
        await self.type(command)
        await self.opened(command)
        for key in keys:
            await self._pilot.press(key)
            await self._pilot.pause(0.2)

    async def opened(self, what: str) -> None:
        """Wait until a screen is open over the chat and loaded."""
        await self.wait_until(lambda: len(self._app.screen_stack) > 1, what)
        await self._pilot.pause(1.0)

    async def press(self, *keys: str) -> None:
        """Press keys in the chat."""
        await self._pilot.press(*keys)
        await self._pilot.pause(0.3)

    async def close(self) -> None:
        """Return to the chat."""
        await self._pilot.press("escape")
        await self.wait_until(lambda: len(self._app.screen_stack) == 1, "return to the chat")

    async def take(
        self, name: str, size: tuple[int, int] = WIDE, theme: str = DARK.name, *, as_png: bool = False
    ) -> None:
        """Write one picture in that size and theme, as SVG or as PNG."""
        self._app.theme = theme
        await self._pilot.resize_terminal(*size)
        await self._pilot.pause(0.5)
        picture = without_folder(self._app.export_screenshot(title=self._app.title), self._secret)
        if as_png:
            (self._out / f"{name}.png").write_bytes(png(picture, self._fonts))
        else:
            (self._out / f"{name}.svg").write_text(with_font(picture, self._fonts), encoding="utf-8")
        self._app.theme = DARK.name
        await self._pilot.resize_terminal(*WIDE)
        await self._pilot.pause(0.3)

    async def question(self, picture: str) -> None:
        """Take a picture of the approval that is asked for, and give it."""
        await self.wait_until(lambda: self._app.questions.has_focus, "an approval")
        await self._pilot.pause(0.8)
        await self.take(picture)
        await self._pilot.press("y")


async def run(
    loaded: Loaded, session: Callable[[Studio], Awaitable[None]], *, out: Path, secret: str, fonts: Path
) -> None:
    """Run the chat through a session."""
    engines: list[InProcessEngine] = []

    async def connect() -> Engine:
        engines.append(InProcessEngine(loaded, interactive=True))
        return engines[-1]

    options = ChatOptions(
        tui=loaded.settings.tui,
        state_dir=Path(loaded.paths.state),
        workspace=loaded.workspace,
        version=__version__,
        settings=loaded.settings,
        origins=loaded.origins,
        config_file=Path(loaded.paths.config, "config.yaml"),
    )
    app = ChatApp(connect, options)
    async with app.run_test(size=WIDE) as pilot:
        while not engines:
            await pilot.pause(0.05)
        studio = Studio(app, pilot, engines[0], out, secret, fonts)
        await studio.start()
        await session(studio)
        await app.session.close()
