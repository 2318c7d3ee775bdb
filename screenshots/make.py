"""Pictures of the chat, made from a real session: ``python -m screenshots.make [--repository DIR] [--out DIR]``.

Copies a repository into a temporary workspace, runs the real screen without a terminal on the real engine, with the
offline assistant and an embedded graph of its own, holds a session about the code, waits until the memory has settled,
and writes what the screen shows as SVG. What is not a default stands in `SETTINGS`: numbers
that make summaries come early and the past exceed its budget.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from ragforge_tui import __version__
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph import stop_server
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.app import ChatApp, ChatOptions
from ragforge_tui.tui.style.theme import DARK, LIGHT

ROOT = Path(__file__).resolve().parents[1]
WIDE = (120, 40)
SMALL = (80, 24)
TALL = (120, 60)
PATIENCE_SECONDS = 60.0
SETTINGS = {
    "model.name": "offline",
    "user.name": "Ada",
    "tui.theme": DARK.name,
    "tui.reduced_motion": True,
    "agent.memory.max_context_chars": 16_000,
    "agent.memory.recent.max_chars": 5_000,
    "agent.memory.summarization.every_turns": 2,
    "agent.memory.summarization.every_chars": 60_000,
    "agent.memory.summarization.level_chars": 900,
}
EARLIER = (
    ("Where are secrets masked?", "Where is `plain_text` defined?"),
    ("Read ragforge_tui/graph/target.py lines 1-20",),
    ("Which files are in ragforge_tui/tools",),
)
"""Conversations that are in the list of sessions, by their messages."""
SESSION = (
    "How does the journal set records aside?",
    "Where is `writer_alive` used?",
    "Where is `stop_requested` read?",
    "Where is `supersede` called?",
    "How is a `SummaryCreated` shown?",
    "Read ragforge_tui/graph/writer.py lines 1-12",
    "Where is `derived` called?",
    "Where is `Segment` used?",
    "Where is LEASE_GRACE used?",
)
EDIT = "Replace `timedelta(seconds=10)` with `timedelta(seconds=15)` in ragforge_tui/graph/writer.py"
AFTER_SWITCH = "Read ragforge_tui/graph/writer.py lines 17-18"
LAST = "What did we change about LEASE_GRACE?"
IN_BRANCH = "Where is `find_conversation` called?"
SCREENS = (
    ("what-was-sent", WIDE, "/context", ()),
    ("search", WIDE, "/search LEASE_GRACE", ()),
    ("sessions", WIDE, "/sessions", ()),
    ("settings", WIDE, "/settings", ("pagedown",)),
)
"""Picture, its size, the command and the keys that scroll to what is worth seeing."""


_TEXT = re.compile(r'textLength="(?P<length>[\d.]+)"(?P<more>[^>]*)>(?P<text>[^<]*)<')
"""A piece of text in a picture, and how long it is drawn, whatever its letters need."""


def without(picture: str, folder: str) -> str:
    """The picture with ``~`` for a folder, and the text it stood in as much shorter."""

    def shorter(found: re.Match[str]) -> str:
        before = found["text"]
        if folder not in before:
            return found[0]
        after = before.replace(folder, "~")
        length = float(found["length"]) * len(html.unescape(after)) / len(html.unescape(before))
        return f'textLength="{length:g}"{found["more"]}>{after}<'

    return _TEXT.sub(shorter, picture)


class Studio:
    """The running chat, and how its pictures are taken."""

    def __init__(self, app: ChatApp, pilot: Pilot[str], engine: InProcessEngine, out: Path, secret: str) -> None:
        self._app = app
        self._pilot = pilot
        self._engine = engine
        self._out = out
        self._secret = secret

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"never happened: {what}")
            await self._pilot.pause(0.05)

    async def start(self) -> None:
        """Wait for the engine and its graph."""
        state = self._app.session.state
        await self.until(lambda: state.ready and state.graph is not None and state.graph.phase == "ready", "ready")

    async def type(self, text: str) -> None:
        """Write in the prompt and press Enter; the second Enter is for the menu of commands."""
        self._app.prompt.insert(text)
        await self._pilot.pause()
        await self._pilot.press(*(["escape"] if text.startswith("/") else []), "enter")

    async def say(self, text: str, *, settle: bool = True) -> None:
        """Send a message and wait for its answer, and until the memory is done with it."""
        turns = self._turns()
        await self.type(text)
        await self.until(lambda: self._turns() > turns and not self._app.session.state.busy, text)
        if settle:
            await self.settle()

    def _turns(self) -> int:
        conversation = self._engine.agent.opened(self._app.session.state.conversation_id)
        return conversation.record.next_turn if conversation else 0

    async def settle(self) -> None:
        """Wait until keys, vectors and summaries of all turns are stored."""
        conversation = self._engine.agent.opened(self._app.session.state.conversation_id)
        if conversation is not None:
            await conversation.memory.settle()
        await self._pilot.pause(0.3)

    async def look(self, command: str, *keys: str) -> None:
        """Open a screen over the chat and wait until it has its content."""
        await self.type(command)
        await self.opened(command)
        for key in keys:
            await self._pilot.press(key)
            await self._pilot.pause(0.2)

    async def opened(self, what: str) -> None:
        """Wait until a screen stands over the chat, and has its content."""
        await self.until(lambda: len(self._app.screen_stack) > 1, what)
        await self._pilot.pause(1.0)

    async def press(self, *keys: str) -> None:
        """Press keys in the chat."""
        await self._pilot.press(*keys)
        await self._pilot.pause(0.3)

    async def close(self) -> None:
        """Back to the chat."""
        await self._pilot.press("escape")
        await self.until(lambda: len(self._app.screen_stack) == 1, "back in the chat")

    async def take(self, name: str, size: tuple[int, int] = WIDE, theme: str = DARK.name) -> None:
        """Write one picture, in that size and theme."""
        self._app.theme = theme
        await self._pilot.resize_terminal(*size)
        await self._pilot.pause(0.5)
        # The folder is a temporary one, which nobody's home is called like.
        picture = without(self._app.export_screenshot(title=self._app.title), self._secret)
        (self._out / f"{name}.svg").write_text(picture, encoding="utf-8")
        self._app.theme = DARK.name
        await self._pilot.resize_terminal(*WIDE)
        await self._pilot.pause(0.3)

    async def answer_question(self, picture: str) -> None:
        """Take a picture of the approval that is asked for, and give it."""
        await self.until(lambda: self._app.questions.has_focus, "an approval")
        await self.take(picture)
        await self._pilot.press("y")


async def session(studio: Studio) -> None:
    """The whole session, with its pictures."""
    for messages in EARLIER:
        for message in messages:
            await studio.say(message)
        await studio.type("/new")
    for message in SESSION:
        await studio.say(message)
    await studio.take("chat")
    await studio.take("chat-light", theme=LIGHT.name)
    editing = asyncio.create_task(studio.say(EDIT))
    await studio.answer_question("approval")
    await editing
    await studio.press("f4", "up", "up", "enter")
    await studio.opened("a call")
    await studio.take("trace")
    await studio.close()
    await studio.press("escape")
    await studio.look("/personas", "down")
    await studio.take("personas")
    await studio.close()
    await studio.type("/set-persona Ragnarök")
    await studio.say(AFTER_SWITCH)
    await studio.take("persona-switch")
    await studio.take("chat-80x24", SMALL)
    await studio.say(LAST)
    await studio.press("f3", "home", "down", "enter", "down", "enter", "down", "enter")
    await studio.take("memory", TALL)
    await studio.press("r")
    await studio.opened("a summary")
    await studio.take("summary")
    await studio.close()
    await studio.press("escape")
    await studio.type("/branch 3")
    await studio.say(IN_BRANCH)
    for name, size, command, keys in SCREENS:
        await studio.look(command, *keys)
        await studio.take(name, size)
        await studio.close()


async def run(loaded: Loaded, out: Path, secret: str) -> None:
    """Run the chat through the session."""
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
        studio = Studio(app, pilot, engines[0], out, secret)
        await studio.start()
        await session(studio)
        await app.session.close()


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of the README.")
    parser.add_argument("--repository", type=Path, default=ROOT / "ragforge_tui", help="what the session is about")
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="screenshots-", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder, "ragforge-chat")
        leave_out = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(given.repository, workspace / given.repository.resolve().name, ignore=leave_out)
        env = {"RAGFORGE_HOME": str(Path(folder, "home"))}
        loaded = load(workspace=str(workspace), flags=SETTINGS, env=env)
        try:
            asyncio.run(run(loaded, given.out, folder))
        finally:
            stop_server(loaded.paths)
    sys.stdout.write(f"pictures in {given.out}\n")


if __name__ == "__main__":
    main()
