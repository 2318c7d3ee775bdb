"""The command line as its users run it: whole commands, on each graph backend, with the scripted model server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ragforge_tui.cli.app import app
from ragforge_tui.conversation import current_model
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.conftest import CONTENTS, DIMENSION, HEAP_MB, LINGER, _known, empty, open_graph
from tests.support.model_script import Script
from tests.support.openai_server import OpenAIServer
from tests.support.scripted_model import make_scripted

ROOT = Path(__file__).parents[2]


class Ran:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def _hear_interrupts() -> None:
    """Ctrl-C is ignored by what a shell started in the background, and by all that is started from there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Cli:
    """Runs commands in this process, in a workspace of their own."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Ran:
        result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="ragforge-chat")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    def ok(self, *arguments: str, stdin: str | bytes | None = None) -> Ran:
        ran = self.run(*arguments, stdin=stdin)
        assert ran.code == 0, ran
        return ran

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """The real program, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "ragforge_tui.cli", *arguments],
            cwd=self.workspace,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_hear_interrupts,
            **{"stdin": subprocess.DEVNULL, **options},
        )


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """A command sets up logging and signals for the whole process; here it is not the process's own."""
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Commands that need no graph."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    return Cli(workspace)


@pytest.fixture
def cli(
    bare: Cli, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Commands on an empty graph of each backend, answered by the offline assistant unless a test says otherwise."""

    async def clean() -> None:
        graph = await open_graph(graph_target, graph_paths)
        try:
            await empty(graph)
        finally:
            await graph.close()

    asyncio.run(clean())
    config = tmp_path / "config.yaml"
    settings = {
        "model": {"name": "offline", "retries": 0},
        "graph": {"adopt": graph_target.adopt, "heap_mb": HEAP_MB, "linger_seconds": LINGER},
        # Without vectors, whose model takes seconds to load; tests about them say otherwise.
        "agent": {
            "memory": {
                "embeddings": {"enabled": False, "dimension": DIMENSION},
                "persistence": {"type": CONTENTS},
            }
        },
    }
    config.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("RAGFORGE_CONFIG", str(config))
    monkeypatch.setenv("RAGFORGE_HOME", str(Path(graph_paths.data).parent))
    if not graph_target.embedded:
        monkeypatch.setenv("NEO4J_URI", graph_target.uri)
        monkeypatch.setenv("NEO4J_USERNAME", graph_target.username)
        monkeypatch.setenv("NEO4J_PASSWORD", graph_target.password)
    return bare


@pytest.fixture
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """A scripted model that answers the commands; for tests marked `http`, as a server that other processes reach."""
    monkeypatch.setenv("RAGFORGE_MODEL", "openai/scripted")
    monkeypatch.setenv("RAGFORGE_API_KEY", "sk-test-0123456789abcdefghijklmnop")
    if not request.node.get_closest_marker("http"):
        script = Script()
        monkeypatch.setattr(current_model, "make_model", make_scripted(script))
        monkeypatch.setattr(current_model, "check_provider", _known)
        yield script
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = OpenAIServer()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    monkeypatch.setenv("RAGFORGE_API_BASE", server.base_url)
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
