"""The index in the background: started, watched, shared between processes, and turned off."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.code import watcher
from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.code.limits import INDEXING
from ragforge_tui.conversation.agent import ConversationAgent
from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.settings.schema import CodeSettings, Loaded, Paths
from ragforge_tui.shared.code_records import CodeTotals
from ragforge_tui.shared.events import CodeIndexChanged
from ragforge_tui.shared.pace import Pace
from tests.conftest import ONE_BACKEND
from tests.support.fake_embedder import FakeEmbedder
from tests.support.sizes import DIMENSION
from tests.support.waiting import until

SOURCE = "def greet(name):\n    return name\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "main.py").write_text(SOURCE)
    return root


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


Make = Callable[..., CodeKnowledge]


@pytest.fixture
async def make(store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """A function that makes what a process knows of `folder`; all are closed at the end."""
    monkeypatch.setattr(INDEXING, "take_over", 0.1)
    monkeypatch.setattr(INDEXING, "changes", 0.1)
    monkeypatch.setattr(INDEXING, "pause", 0.02)
    made: list[CodeKnowledge] = []

    async def opened() -> Store:
        return store

    def code(
        states: list[CodeIndexChanged] | None = None, embedder: FakeEmbedder | None = None, **settings: Any
    ) -> CodeKnowledge:
        made.append(
            CodeKnowledge(
                folder,
                CodeSettings(**settings),
                ignore=[],
                locks=tmp_path / "locks",
                store=opened,
                embedder=embedder,
                pace=Pace(),
                on_change=(states if states is not None else []).append,
            )
        )
        return made[-1]

    yield code
    for one in made:
        await one.close()


async def test_it_indexes_and_tells_its_progress(make: Make) -> None:
    states: list[CodeIndexChanged] = []
    code = make(states, watch=False)
    code.start(keep=True)
    await code.wait_indexed()
    phases = list(dict.fromkeys(state.phase for state in states))
    assert phases == ["looking", "reading", "linking", "ready"]
    assert (code.state.files, code.ready, code.state.running) == (1, True, False)


async def test_changes_are_noticed_while_it_runs(make: Make, store: Store, folder: Path) -> None:
    code = make()
    code.start(keep=True)
    await code.wait_indexed()

    async def is_there(path: str, name: str) -> bool:
        return any(scope.file == path for scope in await store.code.by_name(str(folder), name))

    (folder / "main.py").write_text(SOURCE.replace("greet", "welcome"))
    await until(lambda: is_there("main.py", "welcome"))
    # A new folder is watched from then on.
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "new.py").write_text(SOURCE)
    await until(lambda: is_there("deep/er/new.py", "greet"))
    (folder / "deep" / "er" / "new.py").write_text(SOURCE.replace("greet", "again"))
    await until(lambda: is_there("deep/er/new.py", "again"))
    (folder / ".gitignore").write_text("deep/\n")

    async def is_gone() -> bool:
        return list(await store.code.files(str(folder))) == ["main.py"]

    await until(is_gone)


async def test_changes_are_noticed_while_vectors_are_made(make: Make, store: Store, folder: Path) -> None:
    states: list[CodeIndexChanged] = []
    embedder = FakeEmbedder()
    embedder.stuck_after = 0
    await record_embedding(store.graph, "", DIMENSION)
    try:
        code = make(states, embedder)
        code.start(keep=True)
        await code.wait_indexed()
        (folder / "main.py").write_text(SOURCE.replace("greet", "welcome"))

        async def is_there() -> bool:
            return bool(await store.code.by_name(str(folder), "welcome"))

        await until(is_there)
        assert "embedding" in [state.phase for state in states]
        assert (code.state.files, code.state.vectors) == (1, 0)
    finally:
        await code.close()
        await record_embedding(store.graph, "", DIMENSION)


@ONE_BACKEND
async def test_a_folder_that_cannot_be_watched_is_read_now_and_then(
    make: Make, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watcher, "awatch", refuses)
    monkeypatch.setattr(INDEXING, "rescan", 0.1)
    code = make()
    code.start(keep=True)
    await code.wait_indexed()
    (folder / "new.py").write_text(SOURCE)

    async def is_read() -> bool:
        return "new.py" in await store.code.files(str(folder))

    await until(is_read)
    assert "cannot be watched" in caplog.text


async def test_one_process_indexes_and_the_next_takes_over(make: Make, store: Store, folder: Path) -> None:
    first, second = make(), make()
    first.start(keep=True)
    await first.wait_indexed()
    second.start(keep=True)
    await second.wait_indexed()
    assert (second.state.phase, second.state.files, second.ready) == ("elsewhere", 1, True)
    await first.close()
    (folder / "new.py").write_text(SOURCE)

    async def is_read() -> bool:
        return "new.py" in await store.code.files(str(folder))

    await until(is_read)
    assert second.state.phase != "elsewhere"


async def test_a_question_only_refreshes_an_index_that_exists(make: Make, store: Store, folder: Path) -> None:
    asks = make()
    asks.start(keep=False)
    await asks.wait_indexed()
    assert await store.code.totals(str(folder)) == []
    chat = make(watch=False)
    chat.start(keep=True)
    await chat.wait_indexed()
    await chat.close()
    (folder / "new.py").write_text(SOURCE)
    again = make()
    again.start(keep=False)
    await again.wait_indexed()
    assert set(await store.code.files(str(folder))) == {"main.py", "new.py"}


@ONE_BACKEND
async def test_turned_off_nothing_runs(make: Make, store: Store, folder: Path) -> None:
    code = make(enabled=False)
    code.start(keep=True)
    await code.wait_indexed()
    assert (code.state.phase, code.ready) == ("off", False)
    assert await store.code.files(str(folder)) == {}


@ONE_BACKEND
@pytest.mark.parametrize("enabled", [True, False])
async def test_an_agent_indexes_its_workspace_unless_told_not_to(loaded: Loaded, enabled: bool) -> None:
    agent_settings = msgspec.structs.replace(loaded.settings.agent, code=CodeSettings(enabled=enabled, watch=False))
    settings = msgspec.structs.replace(loaded.settings, agent=agent_settings)
    async with ConversationAgent(msgspec.structs.replace(loaded, settings=settings), interactive=True) as agent:
        await agent.services.code.wait_indexed()
        assert agent.services.code.state.files == int(enabled)
        found = await (await agent.store()).code.by_name(loaded.workspace, "greet")
        assert [scope.file for scope in found] == ["greeting.py"] * int(enabled)


_KILLED = """
import asyncio, sys
import msgspec
from pathlib import Path
from ragforge_tui.code import indexer
from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.schema import CodeSettings, Paths
from ragforge_tui.shared.pace import Pace
from tests.conftest import ONE_BACKEND, open_graph

async def main(target, paths, folder, locks):
    graph = await open_graph(msgspec.json.decode(target, type=GraphTarget), msgspec.json.decode(paths, type=Paths))
    store = Store(graph)
    indexer.BATCH_FILES = 1
    inner = store.code.replace_files

    async def told(workspace, files):
        await inner(workspace, files)
        print("stored", flush=True)
        await asyncio.sleep(60)

    store.code.replace_files = told

    async def opened():
        return store

    code = CodeKnowledge(Path(folder), CodeSettings(), ignore=[], locks=Path(locks), store=opened, embedder=None,
                         pace=Pace(), on_change=lambda state: None)
    code.start(keep=True)
    await asyncio.sleep(120)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_killed_process_leaves_an_index_that_the_next_one_continues(
    make: Make, store: Store, folder: Path, tmp_path: Path, graph_target: GraphTarget, graph_paths: Paths
) -> None:
    (folder / "second.py").write_text(SOURCE.replace("greet", "second"))
    given = [msgspec.json.encode(graph_target).decode(), msgspec.json.encode(graph_paths).decode()]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, *given, str(folder), str(tmp_path / "locks"), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"stored\n"
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert len(await store.code.files(str(folder))) == 1
    code = make(watch=False)
    code.start(keep=True)
    await code.wait_indexed()
    assert set(await store.code.files(str(folder))) == {"main.py", "second.py"}
    assert code.state.phase == "ready"


def test_an_index_is_told_in_a_phrase() -> None:
    totals = CodeTotals(workspace="/w", files=2, scopes=9, references=4, unresolved=1, left_out={"too large": 3})
    assert totals.summary() == (
        "2 files, 9 scopes, 4 references; 1 unresolved names; 0 with vectors; left out: 3 too large; not complete"
    )
