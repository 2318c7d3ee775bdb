"""Share of questions that a search for code answers among its first hits: ``python -m benchmarks.code_search``.

Fetches three code bases by name and version (see `code_sources`), or takes folders with ``--repo NAME=PATH``, indexes
them in a graph of its own as the program does, and asks questions with known answers. Printed are the shares with a
right scope first and among the first five, and the mean reciprocal rank, for search_functions and brain_search; beside
them plain grep, BM25 and vectors alone over the same scopes; by half, kind and repository. Questions in other words
than the code are asked again with what a model gave as ``also`` for them (``data/code_rewrites.json``). ``--half tune``
keeps the other half unseen. In the same graph as one of the code bases is a conversation about it, with questions of
its own.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import statistics
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import numpy.typing as npt

from benchmarks.code_baselines import Baselines
from benchmarks.code_sources import DATA, Question, fetch, read_questions
from benchmarks.recall import open_store
from ragforge_tui.code.brain import Brain
from ragforge_tui.code.files import FileLimits
from ragforge_tui.code.indexer import Indexer, embedded_text
from ragforge_tui.code.query_words import query_words
from ragforge_tui.code.search import search
from ragforge_tui.code.worker_client import WorkerClient
from ragforge_tui.graph import Store
from ragforge_tui.llm.embeddings import LocalEmbedder
from ragforge_tui.memory.retrieval import Questions, Recall
from ragforge_tui.settings.schema import CodeSettings, MemorySettings, RecallSettings
from ragforge_tui.shared.code_records import BrainHit, Scope, ScopeKind
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Conversation, Message, Turn

Vectors = npt.NDArray[np.float32]
REWRITES = msgspec.json.decode((DATA / "code_rewrites.json").read_bytes(), type=dict[str, list[str]])
"""Other wordings of questions, by a large language model that saw the questions alone."""
FIRST = 5
DEPTH = 10
FUNCTIONS: tuple[ScopeKind, ...] = tuple(kind for kind in get_args(ScopeKind) if kind != "section")
"""What search_functions searches; brain_search has the sections of text files too."""


class KeptVectors:
    """The local embedding model, with the vectors it made before read from a folder."""

    def __init__(self, folder: Path) -> None:
        self._model = LocalEmbedder()
        self.name, self.dimension = self._model.name, self._model.dimension
        self._folder = folder
        self._known: dict[bytes, Vectors] = {}
        for path in sorted(folder.glob("vectors-*.npz")):
            with np.load(path) as kept:
                self._known |= dict(zip((bytes(key) for key in kept["keys"]), kept["rows"], strict=True))
        self._new: dict[bytes, Vectors] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            made = await self._model.embed(list(missing.values()))
            new = {key: row.astype(np.float16) for key, row in zip(missing, made, strict=True)}
            self._known |= new
            self._new |= new
            if len(self._new) >= 2_000:
                self.keep()
        rows = [self._known[key].astype(np.float32) for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def keep(self) -> None:
        """Write the vectors that were made since the last time."""
        if self._new:
            self._folder.mkdir(parents=True, exist_ok=True)
            keys = np.array([np.frombuffer(key, np.uint8) for key in self._new])
            np.savez(self._folder / f"vectors-{uuid.uuid4()}.npz", keys=keys, rows=np.stack(list(self._new.values())))
            self._new = {}


class Talk(msgspec.Struct, frozen=True):
    """Conversation about a code base, and questions that one of its turns answers."""

    class Said(msgspec.Struct, frozen=True):
        """Turn."""

        date: datetime
        user: str
        assistant: str

    class Asked(msgspec.Struct, frozen=True):
        """Question with the index of the turn that answers it."""

        text: str
        turn: int

    repo: str
    title: str
    turns: list[Said]
    questions: list[Asked]

    def export(self, workspace: str) -> ConversationExport:
        """Return the conversation as it is imported."""
        conversation_id = str(uuid.uuid4())
        turns = [
            Turn(
                turn_index=number,
                messages=[
                    Message(
                        uuid=str(uuid.uuid4()),
                        conversation_id=conversation_id,
                        turn_index=number,
                        position=position,
                        role="user" if position == 0 else "assistant",
                        content=text,
                        char_count=len(text),
                        timestamp=said.date.replace(tzinfo=UTC),
                    )
                    for position, text in enumerate((said.user, said.assistant))
                ],
            )
            for number, said in enumerate(self.turns, 1)
        ]
        messages = [message for turn in turns for message in turn.messages]
        record = Conversation(
            uuid=conversation_id,
            title=self.title,
            created_at=messages[0].timestamp,
            updated_at=messages[-1].timestamp,
            message_count=len(messages),
            total_chars=sum(message.char_count for message in messages),
            next_turn=len(turns) + 1,
            workspace=workspace,
        )
        return ConversationExport(conversation=record, turns=turns)


class Places:
    """Places of the right answers by method, half, and any other group; 0 for not among the first ten."""

    def __init__(self) -> None:
        self._places: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)

    def add(self, method: str, half: str, groups: Sequence[str], place: int) -> None:
        """Add the place of one answer to each of its groups."""
        for group in ("all", *groups):
            self._places[method, half, group].append(place)

    def shares(self, method: str, half: str, group: str) -> tuple[int, float, float, float]:
        """Return the number of questions, the shares first and among the first five, and the mean reciprocal rank."""
        places = self._places[method, half, group]
        count = max(len(places), 1)
        return (
            len(places),
            sum(place == 1 for place in places) / count,
            sum(0 < place <= FIRST for place in places) / count,
            sum(1 / place for place in places if place) / count,
        )

    def table(self, halves: Sequence[str]) -> None:
        """Print everything."""
        methods = list(dict.fromkeys(method for method, _, _ in self._places))
        for half in halves:
            print(f"\n{half} half: questions; first %, among the first five %, mean reciprocal rank")
            for method in methods:
                groups = [g for m, h, g in self._places if (m, h) == (method, half)]
                for group in groups:
                    count, first, five, rank = self.shares(method, half, group)
                    print(f"  {method:24}{group:10}{count:4}{100 * first:7.0f}{100 * five:6.0f}{rank:8.3f}")


async def main(
    folders: dict[str, Path], embedder: KeptVectors | None, graph: str, halves: Sequence[str], misses: bool
) -> None:
    """Index, ask, print."""
    asked = read_questions()
    half_of = asked.halves()
    places = Places()
    times: defaultdict[str, list[float]] = defaultdict(list)
    async with open_store(graph) as store:
        for name, folder in folders.items():
            workspace = str(folder.resolve())
            baselines = await indexed(store, workspace, embedder)
            for question in asked.questions:
                if question.repo == name and half_of[question.text] in halves:
                    await ask(
                        store, workspace, embedder, question, half_of[question.text], baselines, places, times, misses
                    )
        await ask_about_talk(store, folders, embedder, halves, places, times, misses)
    if embedder is not None:
        embedder.keep()
    places.table(halves)
    figures = {
        f"{method}_{half}": 100 * places.shares(method, half, "all")[2]
        for half in halves
        for method in (
            "search_functions",
            "brain_search",
            "bm25_functions",
            "bm25_all",
            "brain_talk",
            "search_also",
            "brain_also",
        )
        if places.shares(method, half, "all")[0]
    }
    for method, took in times.items():
        cuts = statistics.quantiles(took, n=20)
        print(f"{method}: {statistics.median(took):.0f} ms p50, {cuts[-1]:.0f} ms p95, without the question's vector")
        figures |= {f"{method}_p50": statistics.median(took), f"{method}_p95": cuts[-1]}
    print("code_search " + " ".join(f"{name}={value:.1f}" for name, value in figures.items()))


async def indexed(store: Store, workspace: str, embedder: KeptVectors | None) -> dict[str, Baselines]:
    """Index a workspace; return the baselines over its code, and over everything."""
    start = time.perf_counter()
    settings = CodeSettings()
    worker = WorkerClient()

    async def ready() -> Store:
        return store

    indexer = Indexer(
        workspace,
        FileLimits(max_files=settings.max_files, max_file_bytes=settings.max_file_bytes, ignore=[]),
        worker=worker,
        store=ready,
        embedder=embedder,
        pace=Pace(),
        report=lambda phase, done, todo: None,
    )
    try:
        await indexer.run()
        await indexer.embed()
    finally:
        await worker.close()
    scopes: list[Scope] = []
    for path in await store.code.files(workspace):
        scopes += await store.code.in_lines(workspace, path, 1, 2**31 - 1)
    vectors = await _embedded(embedder, [embedded_text(_as_embedded(scope)) for scope in scopes])
    code = [row for row, scope in enumerate(scopes) if scope.kind != "section"]
    print(f"{Path(workspace).name}: {len(scopes)} scopes, {len(code)} of code, {time.perf_counter() - start:.0f} s")
    return {
        "functions": Baselines([scopes[row] for row in code], vectors[code]),
        "all": Baselines(scopes, vectors),
    }


async def _embedded(embedder: KeptVectors | None, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts; without a model, rows of one zero."""
    return np.zeros((len(texts), 1), np.float32) if embedder is None else await embedder.embed(texts)


def _as_embedded(scope: Scope) -> Scope:
    """Return a scope with the text its vector is made of: that of a section alone counts."""
    return scope if scope.kind == "section" else msgspec.structs.replace(scope, text="")


async def ask(
    store: Store,
    workspace: str,
    embedder: KeptVectors | None,
    question: Question,
    half: str,
    baselines: dict[str, Baselines],
    places: Places,
    times: dict[str, list[float]],
    misses: bool,
) -> None:
    """Ask one question in every way."""
    # Vectors of the question and its words are made before, so that the times are those of the search.
    vector = (await _embedded(embedder, [question.text, *query_words(question.text)]))[0]
    groups = (question.kind, question.repo)

    def place(found: Sequence[tuple[str, str]]) -> int:
        right = (number for number, hit in enumerate(found[:DEPTH], 1) if question.answered_by(*hit))
        return next(right, 0)

    async def known(texts: Sequence[str]) -> Vectors | None:
        return None if embedder is None else await embedder.embed(texts)

    if not question.only:
        start = time.perf_counter()
        hits = await search(store, workspace, question.text, known, kinds=FUNCTIONS, limit=DEPTH)
        times["search_functions"].append((time.perf_counter() - start) * 1000)
        found = [(hit.scope.file, hit.scope.qualified_name) for hit in hits]
        places.add("search_functions", half, groups, place(found))
        _tell_miss(misses, "search_functions", question.text, place(found), [name for _, name in found])
    also = REWRITES.get(question.text, [])
    if also and not question.only:
        await _embedded(embedder, [text for one in also for text in (one, *query_words(one))])
        start = time.perf_counter()
        hits = await search(store, workspace, question.text, known, also=also, kinds=FUNCTIONS, limit=DEPTH)
        times["search_also"].append((time.perf_counter() - start) * 1000)
        places.add("search_also", half, groups, place([(hit.scope.file, hit.scope.qualified_name) for hit in hits]))
        everything = await _brain(store, embedder, workspace).search(question.text, also=also, limit=DEPTH)
        places.add("brain_also", half, groups, place([(hit.file, hit.title) for hit in everything]))
    brain, start = _brain(store, embedder, workspace), time.perf_counter()
    everything = await brain.search(question.text, limit=DEPTH)
    times["brain_search"].append((time.perf_counter() - start) * 1000)
    found = [(hit.file, hit.title) for hit in everything]
    places.add("brain_search", half, groups, place(found))
    _tell_miss(misses, "brain_search", question.text, place(found), [f"{hit.kind} {hit.title}" for hit in everything])
    for over, baseline in baselines.items():
        if over == "functions" and question.only:
            continue
        ways: dict[str, Callable[[], list[Scope]]] = {
            "grep": lambda baseline=baseline: baseline.grep(question.text),
            "bm25": lambda baseline=baseline: baseline.bm25(question.text),
        }
        if embedder is not None:
            ways["vector"] = lambda baseline=baseline: baseline.vector(vector)
        for method, way in ways.items():
            ranked = [(scope.file, scope.qualified_name) for scope in way()]
            places.add(f"{method}_{over}", half, groups, place(ranked))


async def ask_about_talk(
    store: Store,
    folders: dict[str, Path],
    embedder: KeptVectors | None,
    halves: Sequence[str],
    places: Places,
    times: dict[str, list[float]],
    misses: bool,
) -> None:
    """Import the conversation into its workspace, and ask where something was discussed."""
    talk = msgspec.json.decode((DATA / "code_talk.json").read_bytes(), type=Talk)
    if talk.repo not in folders:
        return
    workspace = str(folders[talk.repo].resolve())
    async with imported(store, talk, workspace, embedder):
        brain = _brain(store, embedder, workspace)
        for number, question in enumerate(sorted(talk.questions, key=lambda asked: _digest(asked.text))):
            half = ("tune", "unseen")[number % 2]
            if half not in halves:
                continue
            await _embedded(embedder, [question.text, *query_words(question.text)])
            start = time.perf_counter()
            hits = await brain.search(question.text, limit=DEPTH)
            times["brain_talk"].append((time.perf_counter() - start) * 1000)
            place = next((n for n, hit in enumerate(hits, 1) if _tells(hit, question.turn)), 0)
            places.add("brain_talk", half, (), place)
            places.add("brain_talk, a turn first", half, (), int(bool(hits) and hits[0].kind == "turn"))
            _tell_miss(misses, "brain_talk", question.text, place, [f"{hit.kind} {hit.title}" for hit in hits])


@asynccontextmanager
async def imported(store: Store, talk: Talk, workspace: str, embedder: KeptVectors | None) -> AsyncIterator[None]:
    """Keep a conversation in the graph, with keys and vectors as recall makes them."""
    record = (await store.transfer.import_(talk.export(workspace))).conversation

    async def ready() -> Store:
        return store

    settings = MemorySettings()
    questions = Questions(ready, embedder, settings.recall, workspace)
    recall = Recall(questions, settings, conversation_id=record.uuid, workspace=workspace)
    await recall.load()
    await recall.store_missing()
    await recall.embed()
    try:
        yield
    finally:
        await store.purges.purge(record.uuid)


def _brain(store: Store, embedder: KeptVectors | None, workspace: str) -> Brain:
    async def ready() -> Store:
        return store

    return Brain(Questions(ready, embedder, RecallSettings(), workspace))


def _tells(hit: BrainHit, turn: int) -> bool:
    return hit.kind == "turn" and hit.turn_index == turn


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _tell_miss(wanted: bool, method: str, text: str, place: int, found: Sequence[str]) -> None:
    if wanted and not 0 < place <= FIRST:
        print(f"  miss {method} ({place or 'none'}): {text!r}; found {list(found[:FIRST])}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How often a search for code shows a right scope among the first.")
    parser.add_argument("--repo", action="append", default=[], metavar="NAME=PATH", help="a folder of sources instead")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this code base only")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "ragforge-code-search")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    parser.add_argument("--half", choices=("tune", "unseen", "both"), default="both")
    parser.add_argument("--no-vectors", dest="vectors", action="store_false", help="go by words alone")
    parser.add_argument(
        "--misses", action="store_true", help="print each question without a right answer in the first five"
    )
    given = parser.parse_args()
    named = {name: Path(path) for name, _, path in (text.partition("=") for text in given.repo)}
    repositories = read_questions().repositories
    wanted = {
        name: named.get(name) or fetch(name, repositories[name], given.cache) for name in given.only or repositories
    }
    kept = KeptVectors(given.cache) if given.vectors else None
    chosen = ("tune", "unseen") if given.half == "both" else (given.half,)
    asyncio.run(main(wanted, kept, given.graph, chosen, given.misses))
