"""The whole path, as a person walks it: talk, approve a change, lose the terminal, resume by id."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.graph import Graph, GraphTarget
from ragforge_tui.graph.repositories import Store
from ragforge_tui.settings.schema import Paths
from ragforge_tui.tui.limits import SCREEN
from tests.conftest import DIMENSION, HEAP_MB
from tests.support.openai_server import OpenAIServer
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE

EDIT = {"path": "greeting.py", "old_string": '"hello"', "new_string": '"good day"'}
LONG = "one word after another " * 40


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small git repository."""
    root = tmp_path.resolve() / "repository"
    root.mkdir()
    (root / "greeting.py").write_text('def greet():\n    return "hello"\n', encoding="utf-8")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        running.script(
            [
                {
                    "text": "I change it.",
                    "tool_calls": [
                        {"name": "read_file", "arguments": {"path": "greeting.py"}},
                        {"name": "edit_file", "arguments": EDIT},
                    ],
                },
                {"text": "It says good day now."},
                {"text": LONG, "duration": 6.0},
                {"text": LONG, "duration": 6.0},
            ]
        )
        yield running


@pytest.fixture
def environment(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths, home: Path, server: OpenAIServer
) -> Iterator[dict[str, str]]:
    """The environment of a person who set a model by hand, on each graph."""
    # The folders of the test's server, so that both processes speak of the same embedded graph.
    state_of_graph = Path(graph_paths.data).parent if graph_target.embedded else home
    config = state_of_graph / "config.yaml"
    config.write_text(
        f"agent: {{memory: {{embeddings: {{enabled: false, dimension: {DIMENSION}}}}}}}\n"
        f"graph: {{heap_mb: {HEAP_MB}, linger_seconds: 1, adopt: true}}\nuser: {{name: Ada}}\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "RAGFORGE_HOME": str(state_of_graph),
        "RAGFORGE_CONFIG": str(config),
        "RAGFORGE_MODEL": "openai/scripted",
        "RAGFORGE_API_BASE": server.base_url,
        "RAGFORGE_API_KEY": "test",
    }
    if not graph_target.embedded:
        environment |= {
            "NEO4J_URI": graph_target.uri,
            "NEO4J_USERNAME": graph_target.username,
            "NEO4J_PASSWORD": graph_target.password,
        }
    yield environment
    config.unlink()


async def run_cli(arguments: list[str], cwd: Path, env: dict[str, str]) -> Any:
    """What a command prints as JSON."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ragforge_tui", *arguments, "--json", cwd=cwd, env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    return json.loads(out)


async def answer_stored(graph: Graph, workspace: Path, turn: int, length: int, *, ended: bool = False) -> None:
    """Wait until this many characters of a turn's reply are stored, and until nobody writes it any more."""
    store = Store(graph)
    conversation = await store.conversations.latest(str(workspace))
    assert conversation is not None
    async with asyncio.timeout(PATIENCE):
        while True:
            for found in await store.turns.between(conversation.uuid, start=turn, end=turn + 1):
                last = found.messages[-1]
                if (
                    last.role == "assistant"
                    and len(last.content) >= length
                    and not (ended and last.state == "streaming")
                ):
                    return
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_a_change_is_approved_the_terminal_dies_and_the_session_resumes(
    repository: Path, environment: dict[str, str], graph: Graph
) -> None:
    """First the screen dies and the engine finishes the answer; in the resumed session both die."""
    terminal = Terminal([], cwd=repository, env=environment)
    try:
        await terminal.wait_for("Ask")
        await terminal.wait_for("embedded" if "NEO4J_URI" not in environment else "bolt")
        terminal.type("Make the greeting formal.\r")
        await terminal.wait_for("greeting.py?")
        assert "hello" in (repository / "greeting.py").read_text(encoding="utf-8")
        await terminal.wait_for("tab prompt")
        await asyncio.sleep(2 * SCREEN.read)
        terminal.type("y")
        await terminal.wait_for("It says good day now.")
        assert "good day" in (repository / "greeting.py").read_text(encoding="utf-8")
        terminal.type("Tell me more.\r")
        await answer_stored(graph, repository, 2, 1)
        terminal.kill()
    finally:
        terminal.close()
    await answer_stored(graph, repository, 2, len(LONG), ended=True)
    listed = await run_cli(["sessions"], repository, environment)
    (session,) = [each for each in listed if each["workspace"].endswith(str(repository))]
    prefix = session["uuid"][:8]
    shown = await run_cli(["show", prefix], repository, environment)
    assert [message["turn_index"] for message in shown["messages"]] == [1, 1, 1, 2, 2]
    assert [call["success"] for call in shown["messages"][1]["tool_calls"]] == [True, True]
    last = shown["messages"][-1]
    assert (last["role"], last["state"], last["content"]) == ("assistant", "complete", LONG)
    resumed = Terminal(["--resume", prefix], cwd=repository, env=environment)
    try:
        await resumed.wait_for("It says good day now.")
        await resumed.wait_for("one word after another")
        resumed.type("And more.\r")
        await answer_stored(graph, repository, 3, 1)
        resumed.engine().kill()
        resumed.kill()
    finally:
        resumed.close()
    await answer_stored(graph, repository, 3, 1, ended=True)
    shown = await run_cli(["show", prefix], repository, environment)
    assert [message["turn_index"] for message in shown["messages"]] == [1, 1, 1, 2, 2, 3, 3]
    last = shown["messages"][-1]
    assert (last["role"], last["state"]) == ("assistant", "interrupted")
    assert last["content"]
    assert LONG.startswith(last["content"])
    again = Terminal(["--resume", prefix], cwd=repository, env=environment)
    try:
        await again.wait_for("It says good day now.")
        await again.wait_for("one word after another")
        again.type("/quit\r")
        await asyncio.to_thread(again.process.wait, PATIENCE)
        assert again.process.returncode == 0
    finally:
        again.close()
