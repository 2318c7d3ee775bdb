"""The index of real files: what is taken and left out, what changes bring, and what an interruption leaves."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragforge_tui.code import files, indexer
from ragforge_tui.code.files import FileLimits
from ragforge_tui.code.indexer import Indexer
from ragforge_tui.code.worker import ANSWER_CPU_SECONDS, MOST_MEMORY_BYTES, Embed, Link, Parse, Remember
from ragforge_tui.code.worker_client import WorkerClient, WorkerDiedError, WorkerGoneError
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.llm.embeddings import LocalEmbedder
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import now
from tests.conftest import ONE_BACKEND
from tests.support.sizes import DIMENSION
from tests.support.waiting import until

MAIN = """import helper

def main():
    helper.greet("you")
    print(unknown_thing())
"""
HELPER = """def greet(name):
    \"\"\"Say hello.\"\"\"
    return shout(name)

def shout(text):
    return text.upper()
"""


class Lengths:
    """An embedder that keeps what it is asked for; every vector is an axis by the text's length."""

    name, dimension = "lengths", DIMENSION

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return np.stack([np.eye(DIMENSION, dtype=np.float32)[len(text) % DIMENSION] for text in texts])


class Index:
    """An indexer of a folder, and questions to what it stored."""

    def __init__(self, graph: Graph, root: Path, **limits: Any) -> None:
        self.graph, self.store, self.workspace = graph, Store(graph), str(root)
        self.worker = WorkerClient()
        self.phases: list[str] = []
        self.limits = FileLimits(**{"max_files": 100, "max_file_bytes": 5_000, **limits})
        self.indexer = self.another()

    def another(
        self, embedder: Lengths | None = None, worker: WorkerClient | None = None, pace: Pace | None = None
    ) -> Indexer:
        """An indexer as another start of the program would have it."""

        async def store() -> Store:
            return self.store

        return Indexer(
            self.workspace,
            self.limits,
            worker=worker or self.worker,
            store=store,
            embedder=embedder,
            pace=pace or Pace(),
            report=lambda phase, done, todo: self.phases.append(phase),
        )

    async def paths(self) -> list[str]:
        found = await self.store.code.indexed(self.workspace)
        return sorted(path for path, file in found.items() if not file.left_out)

    async def names(self) -> list[str]:
        """The functions of the workspace that a search finds."""
        hits = await self.store.code.candidates(self.workspace, ["def", "name", "text", "helper", "return"])
        return sorted(hit.scope.name for hit in hits if hit.scope.kind == "function")

    async def callers(self, name: str) -> list[str]:
        """The functions that refer to a function."""
        (scope,) = await self.store.code.by_name(self.workspace, name)
        found = await self.store.code.dependents(scope.uuid)
        return sorted({source.name for _, source in found if source.kind == "function"})

    async def unresolved(self, name: str) -> set[str]:
        named = await self.store.code.by_name(self.workspace, name)
        (scope,) = [scope for scope in named if scope.kind == "function"]
        return {found.name.rsplit(".", 1)[-1] for found in await self.store.code.unresolved(scope.uuid)}


Make = Callable[..., Index]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two files that belong together."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "main.py").write_text(MAIN)
    (root / "helper.py").write_text(HELPER)
    return root


@pytest.fixture
async def make(graph: Graph, folder: Path) -> AsyncIterator[Make]:
    """A function that makes an index, of `folder` unless told otherwise."""
    made: list[Index] = []

    def index(root: Path = folder, **limits: Any) -> Index:
        made.append(Index(graph, root, **limits))
        return made[-1]

    yield index
    for one in made:
        await one.worker.close()


async def test_a_project_is_indexed_with_its_references(make: Make) -> None:
    index = make()
    assert await index.indexer.run()
    assert await index.paths() == ["helper.py", "main.py"]
    assert await index.names() == ["greet", "main", "shout"]
    assert (await index.callers("greet"), await index.callers("shout")) == (["main"], ["greet"])
    assert "unknown_thing" in await index.unresolved("main")
    counted = await index.store.code.count(index.workspace)
    (stored,) = await index.store.code.totals(index.workspace)
    assert (stored.files, stored.complete, stored.vectors) == (2, True, 0)
    for name in ("files", "scopes", "references", "unresolved"):
        assert getattr(stored, name) == getattr(counted, name) > 0


async def test_a_second_start_reads_nothing_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make()
    await index.indexer.run()
    index.phases.clear()
    statements: list[str] = []
    for name in ("run", "rows"):
        inner = getattr(index.graph, name)

        async def counted(statement: str, /, _inner: Any = inner, **values: Any) -> Any:
            statements.append(statement)
            return await _inner(statement, **values)

        monkeypatch.setattr(index.graph, name, counted)
    second = index.another()
    assert not await second.run()
    assert index.phases == ["looking"]
    # The table of files, the totals, and their time: none for each file.
    assert len(statements) == 3
    assert second.totals.files == 2


async def test_only_what_changed_and_what_depends_on_it_is_linked(make: Make, folder: Path) -> None:
    index = make()
    await index.indexer.run()
    (folder / "helper.py").write_text(HELPER.replace("def greet", "def welcome"))
    second = index.another()
    await second.run()
    assert await index.names() == ["main", "shout", "welcome"]
    # The caller did not change, but what it refers to is gone.
    assert "greet" in await index.unresolved("main")
    (folder / "helper.py").write_text(HELPER)
    await second.run(["helper.py"])
    assert await index.callers("greet") == ["main"]


async def test_renamed_and_deleted_files(make: Make, folder: Path) -> None:
    index = make()
    await index.indexer.run()
    (folder / "package").mkdir()
    (folder / "helper.py").rename(folder / "package" / "deep.py")
    await index.indexer.run(["helper.py", "package/deep.py"])
    assert await index.paths() == ["main.py", "package/deep.py"]
    (folder / "package" / "deep.py").unlink()
    (folder / "package").rmdir()
    await index.indexer.run(["package"])
    assert (await index.paths(), await index.names()) == (["main.py"], ["main"])


@ONE_BACKEND
async def test_files_left_out_of_the_index_and_why(make: Make, folder: Path, tmp_path: Path) -> None:
    (folder / ".gitignore").write_text("ignored.py\n")
    for name in ("ignored.py", "patterned.py"):
        (folder / name).write_text(HELPER)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "vendored.js").write_text("function vendored() {}")
    (folder / "large.py").write_text("x = 1\n" * 2_000)
    (folder / "binary.py").write_bytes(b"def x():\0\0")
    (folder / "latin.py").write_bytes(b'def caf\xe9():\n    return "\xe9"\n')
    (folder / "credentials.yaml").write_text("key: 1")
    (tmp_path / "outside.py").write_text(HELPER)
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "linked").symlink_to(tmp_path)
    index = make(ignore=["patterned.py"])
    await index.indexer.run()
    assert await index.paths() == ["helper.py", "latin.py", "main.py"]
    (stored,) = await index.store.code.totals(index.workspace)
    assert stored.left_out == {"too large": 1, "not text": 1, "may hold keys": 1}
    # The same one by one as in a look at everything.
    names = ["ignored.py", "patterned.py", "large.py", "link.py", "linked/outside.py", "node_modules/vendored.js"]
    assert not await index.indexer.run(names)
    (folder / ".gitignore").write_text("helper.py\n")
    await index.indexer.run()
    assert await index.paths() == ["ignored.py", "latin.py", "main.py"]
    (folder / "main.py").write_text(MAIN + "x = 1\n" * 2_000)
    await index.indexer.run(["main.py"])
    assert await index.paths() == ["ignored.py", "latin.py"]


async def test_two_workspaces_stay_apart(make: Make, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "helper.py").write_text(HELPER)
    first, second = make(), make(other)
    await first.indexer.run()
    await second.indexer.run()
    assert await second.callers("greet") == []
    (other / "helper.py").unlink()
    await second.indexer.run()
    assert await second.names() == []
    assert await first.callers("greet") == ["main"]


async def test_two_indexers_at_once_store_once(make: Make) -> None:
    index, other = make(), make()
    await asyncio.gather(index.indexer.run(), other.indexer.run())
    counted = await index.store.code.count(index.workspace)
    assert (counted.files, counted.references) == (2, index.indexer.totals.references)
    assert await index.names() == ["greet", "main", "shout"]


async def test_an_interrupted_run_is_continued(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "BATCH_FILES", 1)
    index = make()
    inner = index.store.code.replace_files
    stored = 0

    async def dies(workspace: str, batch: Any) -> None:
        nonlocal stored
        if stored:
            raise asyncio.CancelledError
        stored += 1
        await inner(workspace, batch)

    with monkeypatch.context() as patch:
        patch.setattr(index.store.code, "replace_files", dies)
        with pytest.raises(asyncio.CancelledError):
            await index.indexer.run()
    (totals,) = await index.store.code.totals(index.workspace)
    assert not totals.complete
    assert await index.paths() == ["helper.py"]
    await index.another().run()
    assert await index.paths() == ["helper.py", "main.py"]
    assert await index.callers("greet") == ["main"]


async def test_a_change_before_an_interruption_still_reaches_its_dependents(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make()
    await index.indexer.run()
    (folder / "helper.py").write_text(HELPER.replace("def greet", "def welcome"))

    async def dies(*_: Any) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(index.indexer, "_link", dies)
    with pytest.raises(asyncio.CancelledError):
        await index.indexer.run()
    await index.another(worker=make().worker).run()
    assert "greet" in await index.unresolved("main")


@ONE_BACKEND
async def test_a_killed_parser_is_started_again(make: Make, folder: Path) -> None:
    index = make()
    await index.indexer.run()
    os.kill(index.worker.pid, signal.SIGKILL)
    (folder / "helper.py").write_text(HELPER.replace("shout", "whisper"))
    await index.another().run()
    assert await index.names() == ["greet", "main", "whisper"]
    assert (await index.callers("greet"), await index.callers("whisper")) == (["main"], ["greet"])


@ONE_BACKEND
async def test_a_parser_whose_end_was_not_noticed_yet_is_started_again(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make()
    await index.indexer.run()
    inner, asked = index.worker.ask, 0

    async def ask(request: Any, answer: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise WorkerGoneError("the process that parses ended")
        return await inner(request, answer)

    monkeypatch.setattr(index.worker, "ask", ask)
    (folder / "helper.py").write_text(HELPER.replace("shout", "whisper"))
    await index.another().run()
    assert await index.names() == ["greet", "main", "whisper"]


@ONE_BACKEND
async def test_a_file_that_ends_the_parser_is_left_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make()
    inner = index.worker.ask

    async def ask(request: Any, answer: Any) -> Any:
        if hasattr(request, "max_file_bytes") and "helper.py" in request.paths:
            os.kill(index.worker.pid, signal.SIGKILL)
        return await inner(request, answer)

    monkeypatch.setattr(index.worker, "ask", ask)
    await index.indexer.run()
    assert await index.paths() == ["main.py"]
    (stored,) = await index.store.code.totals(index.workspace)
    assert stored.left_out == {indexer.CRASHED: 1}


async def test_a_folder_that_ended_the_parser_twice_is_left_out_for_a_day(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make()
    inner, deadly, asked = index.worker.ask, True, 0

    async def ask(request: Any, answer: Any) -> Any:
        nonlocal asked
        asked += 1
        if deadly and isinstance(request, Link):
            os.kill(index.worker.pid, signal.SIGKILL)
        return await inner(request, answer)

    monkeypatch.setattr(index.worker, "ask", ask)
    for _ in range(2):
        with pytest.raises(WorkerDiedError):
            await index.another().run()
    asked = 0
    third = index.another()
    assert not await third.run() and asked == 0
    (stored,) = await index.store.code.totals(index.workspace)
    assert stored.rests_until is not None and not stored.complete
    assert "left out of the code index" in stored.problem == third.totals.problem
    # What was read is still found by words.
    assert await index.names() == ["greet", "main", "shout"]
    await index.graph.run("MATCH (i:CodeIndex) SET i.indexed_at = $at", at=now() - timedelta(days=2))
    deadly = False
    await index.another().run()
    (stored,) = await index.store.code.totals(index.workspace)
    assert (stored.complete, stored.deaths, stored.problem) == (True, 0, "")
    assert await index.callers("greet") == ["main"]


@ONE_BACKEND
async def test_files_that_end_the_parser_one_by_one_end_the_run(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(indexer.MOST_CRASHED):
        (folder / f"deadly{number}.py").write_text(HELPER)
    index = make()
    inner = index.worker.ask

    async def ask(request: Any, answer: Any) -> Any:
        if isinstance(request, Parse):
            os.kill(index.worker.pid, signal.SIGKILL)
        return await inner(request, answer)

    monkeypatch.setattr(index.worker, "ask", ask)
    with pytest.raises(WorkerDiedError):
        await index.indexer.run()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
async def test_the_process_that_parses_has_limits_of_memory_and_time() -> None:
    worker = WorkerClient()
    try:
        assert await worker.ask(Remember({}), list[str]) == []
        assert resource.prlimit(worker.pid, resource.RLIMIT_AS)[0] == MOST_MEMORY_BYTES
        most = resource.prlimit(worker.pid, resource.RLIMIT_CPU)[0]
        assert ANSWER_CPU_SECONDS <= most < ANSWER_CPU_SECONDS + 60
    finally:
        await worker.close()


def test_a_folder_that_became_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.py").write_text("KEY = 1\n")
    (folder / "deep").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError):
        files.read_file(folder, "deep/key.py", 5_000)
    os.mkfifo(folder / "fifo.py")
    with pytest.raises(PermissionError):
        files.read_file(folder, "fifo.py", 5_000)
    with pytest.raises(PermissionError):
        files.read_file(folder, "main.py", 5)
    assert files.read_file(folder, "main.py", 5_000)[0] == MAIN.encode()


async def test_vectors_are_made_once_for_what_they_are_made_of(make: Make, graph: Graph, folder: Path) -> None:
    index, embedder = make(), Lengths()
    await record_embedding(graph, "", DIMENSION)
    try:
        first = index.another(embedder)
        await first.run()
        assert embedder.texts == []
        await first.embed()
        (stored,) = await index.store.code.totals(index.workspace)
        words = await index.store.code.search.vectors.words(index.workspace, embedder.name)
        assert "hello" in words
        assert stored.vectors == stored.scopes == len(embedder.texts) - len(words)
        assert any("Say hello" in text for text in embedder.texts)
        hits = await index.store.code.candidates(index.workspace, [], [1.0] * DIMENSION)
        assert len(hits) == stored.scopes
        embedder.texts.clear()
        (folder / "helper.py").write_text(HELPER.replace("text.upper()", "text.lower()"))
        again = index.another(embedder)
        await again.run()
        await again.embed()
        assert embedder.texts == []
        (stored,) = await index.store.code.totals(index.workspace)
        assert (stored.complete, stored.vectors) == (True, stored.scopes)
    finally:
        await record_embedding(graph, "", DIMENSION)


async def test_vectors_wait_while_a_request_is_prepared(
    make: Make, graph: Graph, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, embedder, pace = make(), Lengths(), Pace()
    await record_embedding(graph, "", DIMENSION)
    monkeypatch.setattr(indexer, "WORDS_AT_ONCE", 1)
    monkeypatch.setattr(indexer, "EMBEDDED_AT_ONCE", 1)
    try:
        another = index.another(embedder, pace=pace)
        await another.run()
        with pace.urgent():
            making = asyncio.create_task(another.embed())
            await until(lambda: embedder.texts)
            await asyncio.sleep(0.2)
            assert len(embedder.texts) == 1
        await making
        assert len(embedder.texts) > 1
    finally:
        await record_embedding(graph, "", DIMENSION)


@pytest.mark.slow
async def test_the_local_model_runs_in_the_process_that_parses() -> None:
    texts = ["def greet(name): say hello", ""]
    worker = WorkerClient()
    try:
        await worker.ensure()
        made = np.frombuffer(await worker.ask(Embed(texts), bytes), np.float32)
    finally:
        await worker.close()
    expected = await LocalEmbedder().embed(texts)
    assert made.reshape(expected.shape) == pytest.approx(expected, abs=1e-6)


@ONE_BACKEND
async def test_too_many_files_are_told(make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make(max_files=1)
    await index.indexer.run()
    assert len(await index.paths()) == 1
    assert "1 of 2 files are not indexed" in index.indexer.totals.problem


def test_a_folder_that_is_no_project_has_a_lower_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_WITHOUT_PROJECT", 1)
    limits = FileLimits(max_files=100, max_file_bytes=5_000)
    assert len(files.find_files(folder, limits, lambda path: True).files) == 2
    (folder / ".git").rmdir()
    found = files.find_files(folder, limits, lambda path: True)
    assert len(found.files) == 1 and "git init" in found.problem


@ONE_BACKEND
async def test_a_home_folder_is_never_indexed(make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "home" in files.refusal(Path("/"), folder)
    assert "home" in files.refusal(folder.parent, folder)
    assert files.refusal(folder, folder) == ""
    (folder / ".git").rmdir()
    monkeypatch.setenv("HOME", str(folder))
    index = make()
    assert not await index.indexer.run()
    assert await index.store.code.totals(index.workspace) == []
    assert "home" in index.indexer.totals.problem


async def test_a_folder_that_is_away_keeps_its_index(make: Make, folder: Path) -> None:
    index = make()
    await index.indexer.run()
    await asyncio.to_thread(folder.rename, folder.parent / "away")
    assert not await index.another().run()
    assert await index.paths() == ["helper.py", "main.py"]
