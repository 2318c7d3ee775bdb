"""Pictures and a film of the chat from real sessions: ``python -m screenshots.make [--out DIR] [--only NAME]``.

Each session runs the real screen, engine and embedded graph without a terminal:

- `recorded`: a language model works on the small project in ``screenshots/project``. Its answers to the real prompts
  were recorded in ``answers.json`` and are replayed by a server on loopback.
- `demo`: the first turns of the same, as a film.
- `offline`: the offline assistant answers questions about the program's own code.

Needs ``pip install -e '.[pictures]'`` and the DejaVu fonts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from ragforge_tui.graph import stop_server
from ragforge_tui.settings.load import load
from ragforge_tui.tui.drawing.theme import DARK, LIGHT
from screenshots.studio import ANSWER_SECONDS, WIDE, Studio, run
from tests.support.model_script import Step
from tests.support.openai_server import OpenAIServer

HERE = Path(__file__).resolve().parent
SMALL = (80, 24)
TALL = (120, 60)
FILM = (120, 36)
COMMON = {
    "user.name": "Ada",
    "tui.theme": DARK.name,
    "tui.reduced_motion": True,
    "agent.memory.summarization.every_turns": 2,
}
RECORDED_SETTINGS = {
    **COMMON,
    "model.name": "openai/claude",
    "model.context_window": 200_000,
    "agent.memory.summarization.every_turns": 4,
}
OFFLINE_SETTINGS = {
    **COMMON,
    "model.name": "offline",
    "agent.memory.max_context_chars": 16_000,
    "agent.memory.recent.max_chars": 5_000,
    "agent.memory.summarization.every_chars": 60_000,
    "agent.memory.summarization.level_chars": 900,
}
"""Numbers that make summaries come early and the past exceed its budget."""
RECORDED = (
    "A pickup was ordered twice last night. Can a retry do that?",
    "They do: Idempotency-Key, kept for 24 hours. Do it, and add a test.",
    "The retry test fails now and then in CI. Why?",
    "Fix the test, not the backoff. Nobody should wait in tests.",
)
"""Messages of the recorded session."""
EARLIER = (
    ("Where are secrets masked?", "Where is `plain_text` defined?"),
    ("Read ragforge_tui/graph/target.py lines 1-20",),
    ("Which files are in ragforge_tui/tools",),
)
"""Messages of the conversations in the list of sessions."""
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
"""Name, size, command and scrolling keys of each picture of a screen."""


async def recorded(studio: Studio) -> None:
    """Hold the recorded session."""
    for message in RECORDED:
        await studio.send(message, approve=True)
    await studio.take("chat", as_png=True)
    await studio.take("chat-light", theme=LIGHT.name)


async def offline(studio: Studio) -> None:
    """Hold a session about the program's own code with the offline assistant."""
    for messages in EARLIER:
        for message in messages:
            await studio.send(message)
        await studio.type("/new")
    for message in SESSION:
        await studio.send(message)
    await studio.take("offline")
    editing = asyncio.create_task(studio.send(EDIT))
    await studio.question("approval")
    await editing
    await studio.press("f4", "up", "up", "enter")
    await studio.opened("a call")
    await studio.take("trace")
    await studio.close()
    await studio.press("escape")
    await studio.open("/personas", "down")
    await studio.take("personas")
    await studio.close()
    await studio.type("/set-persona Ragnarök")
    await studio.send(AFTER_SWITCH)
    await studio.take("persona-switch")
    await studio.take("chat-80x24", SMALL)
    await studio.send(LAST)
    await studio.press("f3", "home", "down", "enter", "down", "enter", "down", "enter")
    await studio.take("memory", TALL)
    await studio.press("r")
    await studio.opened("a summary")
    await studio.take("summary")
    await studio.close()
    await studio.press("escape")
    await studio.type("/branch 3")
    await studio.send(IN_BRANCH)
    for name, size, command, keys in SCREENS:
        await studio.open(command, *keys)
        await studio.take(name, size)
        await studio.close()


async def demo(studio: Studio) -> None:
    """Hold the first turns of the recorded session as a film, then look at what was sent."""
    await studio.resize(FILM)
    film = studio.film()
    for message in RECORDED[:2]:
        await studio.send(message, approve=True, film=film)
    await studio.press("f3")
    film.hold(ANSWER_SECONDS)
    await studio.open("/context")
    film.hold(ANSWER_SECONDS)
    await studio.close()
    studio.keep(film, "demo")


SESSIONS = {
    "recorded": (HERE / "project", "courier", RECORDED_SETTINGS, recorded),
    "demo": (HERE / "project", "courier", RECORDED_SETTINGS | {"agent.memory.summarization.every_turns": 2}, demo),
    "offline": (HERE.parent / "ragforge_tui", "ragforge-chat/ragforge_tui", OFFLINE_SETTINGS, offline),
}
"""Source of the workspace, its copy (the first folder is the workspace), settings and the session itself."""


async def _make(name: str, folder: Path, out: Path, fonts: Path) -> None:
    async with OpenAIServer(msgspec.json.decode((HERE / "answers.json").read_bytes(), type=list[Step])) as server:
        source, copy, settings, session = SESSIONS[name]
        shutil.copytree(source, folder / copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        workspace = folder / Path(copy).parts[0]
        env = {"RAGFORGE_HOME": str(folder / "home"), "RAGFORGE_API_BASE": server.base_url, "OPENAI_API_KEY": "none"}
        loaded = load(workspace=str(workspace), flags=settings, env=env)
        try:
            await run(loaded, session, out=out, secret=str(folder), fonts=fonts)
        finally:
            stop_server(loaded.paths)


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of the README.")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", choices=list(SESSIONS))
    parser.add_argument("--fonts", type=Path, default=Path("/usr/share/fonts/truetype/dejavu"))
    options = parser.parse_args()
    # The model's commands run the Python of this environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in [options.only] if options.only else SESSIONS:
        with tempfile.TemporaryDirectory(prefix="screenshots-", ignore_cleanup_errors=True) as folder:
            asyncio.run(_make(name, Path(folder), options.out, options.fonts))
    sys.stdout.write(f"pictures in {options.out}\n")


if __name__ == "__main__":
    main()
