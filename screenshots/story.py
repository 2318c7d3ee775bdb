"""The story of the film and of its pictures, in five scenes."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from screenshots import past
from screenshots.past import HERE, SUBJECT
from screenshots.stage import CTRL_Q, ESCAPE, F3, HOME, Stage, environment
from tests.support.model_script import Step
from tests.support.openai_server import OpenAIServer

IDLE = "idle · ask · context"
"""The status line without anything that runs in the background."""
FILM = "film"
LONGEST_SECONDS = 22.0
STILLS = ("recalled", "tree", "context", "blame")
"""The pictures that are files of their own too; the others are in the film only."""
WHY = "Why do retried pickups carry an Idempotency-Key? We settled it last week."
RUNBOOK = "Write a runbook: a customer paid for two pickups."
ABOUT = "Retried orders carry one key"
BETWEEN = (
    ("How long may an order take?", "within an order."),
    ("Which of our calls are retried?", "a key."),
    ("Should we log the key?", "customer's address."),
)
LAST = "And a courier without keys?"
TOP = "Retried orders: keys, limits, support"
LINE = "courier/client.py:22"


async def play(stage: Stage, server: OpenAIServer) -> None:
    """Play all scenes."""
    stage.open()
    await stage.type("ragforge-chat")
    await stage.shows("What shall we look at", "graph embedded ●", without="starting")

    stage.scene("It forgets nothing: ask about last week, in a new session", 5.6)
    await stage.type(WHY)
    await stage.shows("↺ recalled")
    stage.hold(0.6)
    await stage.shows("for 24 hours.", IDLE, "Keys of retried orders")
    stage.take("recalled", hold=1.2)

    stage.scene("Close the terminal in mid-answer: -c shows the answer, whole", 5.0)
    await stage.type(RUNBOOK)
    await stage.shows("Refund nothing")
    stage.take("mid-answer", hold=0.3)
    await stage.close()
    stage.hold(0.7)
    server.release("closed")
    stage.open()
    await stage.shell()
    await stage.type("ragforge-chat -c")
    await stage.shows("settle later.", IDLE, "Keys of retried orders", without="memory")
    stage.take("resumed", hold=1.4)

    stage.cut()
    for question, end in BETWEEN:
        await stage.type(question)
        await stage.shows(end, IDLE, without="summarising")
    await stage.press(F3)
    await stage.shows("turns 1–2", "turns 3–4", ABOUT)
    await stage.press(ESCAPE)
    await stage.shows("Ask, type", without="MEMORY")

    stage.scene("Summaries grow in levels: Enter drills down to the exact words", 5.0)
    await stage.type(LAST)
    await stage.shows("and decides.")
    await stage.press(F3)
    await stage.shows(TOP, "turns 5–6", "turns 1–4", ABOUT, without="summarising")
    stage.take("tree", hold=0.7)
    await stage.press(HOME)
    await stage.choose(TOP)
    await stage.shows("turns 1–2", "turns 3–4")
    await stage.choose("turns 1–2")
    await stage.shows("2 Write a runbook")
    stage.take("drilled", hold=0.6)
    await stage.choose("2 Write a runbook")
    await stage.shows("you  2", "1. Find both orders.", without="MEMORY")
    stage.take("exact-words", hold=0.9)

    stage.cut()
    await stage.press(ESCAPE)
    await stage.shows("esc esc go back")
    stage.scene("/context: every word that the model was sent", 3.0)
    await stage.type("/context")
    await stage.shows("Instructions", "What was decided and found")
    stage.take("context", hold=0.9)
    stage.cut()
    await stage.press(HOME)
    stage.roll()
    await stage.choose("recalled turn t2")
    await stage.shows("As it was sent")
    stage.take("as-sent", hold=0.9)
    stage.cut()
    await stage.press(ESCAPE)
    await stage.shows("Instructions")
    await stage.press(ESCAPE)
    await stage.shows("Ask, type", without="Instructions")
    await stage.press(CTRL_Q)
    await stage.shell()

    stage.scene("blame: from a line of code to the talk that wrote it", 3.2)
    await stage.type(f"ragforge-chat blame {LINE}")
    await stage.shows("Decision:", SUBJECT)
    await stage.shell()
    stage.take("blame", hold=2.0)


async def played(*, filming: bool, patience: float) -> Stage:
    """Play the story in a new home and return its stage, with the pictures and the film.

    Args:
        filming: Whether to make a film too.
        patience: Seconds to wait for anything.
    """
    steps = msgspec.json.decode((HERE / "answers.json").read_bytes(), type=dict[str, list[Step]])["film"]
    # What is asked in the background is asked again where its answer was not stored in time.
    again = [step for step in steps if step.when == "plain"]
    with tempfile.TemporaryDirectory(prefix="film-", dir=_temporary(), ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        async with OpenAIServer([*steps, *again, *again]) as server:
            env = environment(home, server.base_url)
            workspace = _workspace(home, env)
            stage = Stage(workspace, env, filming=filming, patience=patience)
            rolling = asyncio.create_task(stage.film()) if filming else None
            try:
                await play(stage, server)
            finally:
                if rolling is not None:
                    rolling.cancel()
                await stage.close()
                _run(workspace, env, "graph", "stop")
    return stage


def _temporary() -> Path:
    """Return the folder for temporary files without symbolic links: macOS has one, and the shell shows where it is."""
    return Path(tempfile.gettempdir()).resolve()


def _workspace(home: Path, env: dict[str, str]) -> Path:
    """Return the project's folder, with the session of last week in the memory."""
    then = datetime.now().astimezone() - timedelta(days=7)
    folder = past.workspace(home, env, changed=then)
    session = home / "last_week.json"
    session.write_text(past.dated(past.FILE.read_text(encoding="utf-8"), folder, then), encoding="utf-8")
    _run(folder, env, "import", str(session))
    return folder


def _run(folder: Path, env: dict[str, str], *arguments: str) -> None:
    subprocess.run(["ragforge-chat", *arguments], cwd=folder, env=env, check=True, capture_output=True)
