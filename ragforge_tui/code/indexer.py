"""The index of a workspace's code: brings the graph to the state of the files, in runs that can be interrupted.

A run looks at all files or at some that changed, parses those with another size, time or content than stored, then
resolves references. Vectors take much longer, so they are made afterwards, a few files at a time, and pause during the
next run. Each file is complete with its digest, and references and vectors are noted at the file they belong to, so
that the next run continues where a killed one ended. An unchanged file costs no statement.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np

from ragforge_tui.code.files import FileLimits, Found, FoundFile
from ragforge_tui.code.query_words import is_plain
from ragforge_tui.code.search import is_test
from ragforge_tui.code.worker import Embed, Link, Look, Parse, Parsed, Remember, Resolve, Resolved
from ragforge_tui.code.worker_client import WorkerClient, WorkerDiedError, WorkerGoneError
from ragforge_tui.graph import Store
from ragforge_tui.llm.embeddings import Embedder, LocalEmbedder, Vectors
from ragforge_tui.shared.code_records import CodeTotals, IndexedFile, Scope
from ragforge_tui.shared.code_words import code_words, first_sentence, identifier_words
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.events import CodePhase
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

VERSION = 2
"""Version of the stored records of a file: raised when the parser changes, so that all files are parsed again."""
BATCH_FILES = 12
BATCH_BYTES = 120_000
RESOLVED_AT_ONCE = 50
"""Files between two looks at whether a turn runs; a statement that was sent delays those of the turn."""
REMEMBERED_AT_ONCE = 500
EMBEDDED_AT_ONCE = 16
"""Texts embedded between two looks at whether a turn runs."""
EMBEDDED_FILES = 5
"""Files whose missing vectors are read at once."""
WORDS_AT_ONCE = 128
EMBEDDED_CHARS = 300
"""Of a section."""
EMBEDDED_NAME_WORDS = 6
"""Last words of a qualified name."""
EMBEDDED_SENTENCE_CHARS = 160
TURN_SHARE = 4
"""While a turn runs, the index pauses this many times as long as it works."""
LONGEST_PAUSE = 5.0
CRASHED = "the parser failed"
MOST_CRASHED = 5
"""Files that may end the process that parses, each of which is left out alone."""

Report = Callable[[CodePhase, int, int], None]
"""Called with the phase, how many of its files are done, and how many there are."""


class Indexer:
    """Indexer of one workspace.

    Args:
        worker: The process that parses.
        pace: When this work may use the processor.
        report: Receives the progress.

    Attributes:
        totals: Of the index, also during a run.
        folders: Folders with files to index, as the last complete look found them.
    """

    def __init__(
        self,
        workspace: str,
        limits: FileLimits,
        *,
        worker: WorkerClient,
        store: Callable[[], Awaitable[Store]],
        embedder: Embedder | None,
        pace: Pace,
        report: Report,
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._worker = worker
        self._store = store
        self._embedder = embedder
        self._pace = pace
        self._report = report
        self._known: dict[str, IndexedFile] | None = None
        self._words: set[str] | None = None
        """Words that have a vector."""
        self._remembered: set[str] = set()
        self._generation = 0
        self._idle = asyncio.Event()
        """Set while there is no run; vectors wait for it."""
        self._idle.set()
        self._everything = True
        """Whether the references of all files have to be resolved in this run."""
        self._crashed = 0
        """Files that ended the process that parses."""
        self.totals = CodeTotals(workspace=workspace)
        self.folders: list[str] = []

    async def run(self, paths: Collection[str] | None = None) -> bool:
        """Bring the index to the state of the files; return whether anything changed.

        Args:
            paths: Only these and the files below them; None for all files.

        Raises:
            GraphError: The graph failed; the next run continues.
            WorkerGoneError: The process that parses cannot be started, or the files ended it.
        """
        self._idle.clear()
        try:
            return await self._run(paths)
        except WorkerDiedError:
            await self._note_death()
            raise
        finally:
            self._idle.set()

    async def _note_death(self) -> None:
        """Note that the files ended the process that parses; after the second time the folder is left out."""
        totals = self.totals
        totals.deaths += 1
        totals.indexed_at = now()
        if (until := totals.rests_until) is not None:
            totals.problem = (
                f"This folder is left out of the code index: its files stopped the indexer {totals.deaths} times. "
                f"The next try is after {until.astimezone():%Y-%m-%d %H:%M}."
            )
        await self._store_totals(await self._store(), complete=False)

    async def _run(self, paths: Collection[str] | None) -> bool:
        store = await self._store()
        known = await self._stored_files(store)
        if self.totals.rests_until is not None:
            return False
        self._report("looking", 0, 0)
        found = await self._look(paths)
        generation = self._generation
        if found.refused:
            # What was indexed stays: the folder may be back at the next start.
            self.totals.problem = found.problem
            return False
        if paths is None:
            self.folders = found.folders
            gone = set() if found.partial else known.keys() - {file.path for file in found.files}
        else:
            gone = {path for path in known if any(_within(path, lost) for lost in found.gone)}
        changed = [file for file in found.files if not _same(known.get(file.path), file)]
        if gone or changed:
            await self._begin(store, [*gone, *(file.path for file in changed)])
            await store.code.remove_files(self._workspace, sorted(gone))
            for path in gone:
                del known[path]
            await self._read(store, changed)
        altered = not self.totals.complete
        if altered:
            await self._link(store, sorted(gone), generation)
        if paths is None:
            self.totals.left_out, self.totals.problem = self._left_out(found), found.problem
        if altered or paths is None:
            await self._store_totals(store, complete=True)
        return altered

    def forget_known(self) -> None:
        """Read the stored files again at the next run: another process may have changed them."""
        self._known = None
        self._words = None

    # --- files -----------------------------------------------------------------------------------------------------

    async def _stored_files(self, store: Store) -> dict[str, IndexedFile]:
        if self._known is None:
            self._known = await store.code.indexed(self._workspace)
            stored = await store.code.totals(self._workspace)
            for totals in stored:
                self.totals.complete, self.totals.deaths = totals.complete, totals.deaths
                self.totals.indexed_at, self.totals.problem = totals.indexed_at, totals.problem
            self._count()
        return self._known

    async def _begin(self, store: Store, paths: Sequence[str]) -> None:
        """Note that a run changes the index, and what its files were before, which decides what depends on them."""
        assert self._known is not None
        self._everything = not self.totals.complete
        await self._store_totals(store, complete=False)
        before = [path for path in paths if path in self._known]
        if len(before) > len(self._known) / 2:
            self._everything = True
        if not self._everything:
            await self._remember(store, before)

    async def _look(self, paths: Collection[str] | None) -> Found:
        request = Look(self._workspace, self._limits, None if paths is None else sorted(paths))
        await self._meet_process()
        try:
            return await self._worker.ask(request, Found)
        except WorkerGoneError as error:
            # A process that died since the last run is noticed by the first request after it.
            log.info("%s; another one is started", error)
            await self._meet_process()
            return await self._worker.ask(request, Found)

    async def _read(self, store: Store, changed: Sequence[FoundFile]) -> None:
        """Parse and store files, the next ones while the last ones are stored."""
        done = 0
        upcoming: asyncio.Task[list[IndexedFile]] | None = None
        batches = list(_batches(changed))
        try:
            for number, batch in enumerate(batches):
                started = time.monotonic()
                self._report("reading", done, len(changed))
                files = await (upcoming or asyncio.create_task(self._parse(batch)))
                upcoming = asyncio.create_task(self._parse(batches[number + 1])) if number + 1 < len(batches) else None
                await self._store_files(store, files)
                done += len(batch)
                await self._give_way(started)
        finally:
            if upcoming is not None:
                upcoming.cancel()
                await asyncio.gather(upcoming, return_exceptions=True)
        if changed:
            self._report("reading", done, len(changed))

    async def _parse(self, batch: Sequence[FoundFile]) -> list[IndexedFile]:
        """Return parsed files; one that ends the process that parses is left out, the others are parsed again."""
        request = Parse(self._workspace, self._workspace, [file.path for file in batch], self._limits.max_file_bytes)
        try:
            await self._meet_process()
            return (await self._worker.ask(request, Parsed)).files
        except WorkerGoneError as error:
            if len(batch) > 1:
                return [parsed for file in batch for parsed in await self._parse([file])]
            self._crashed += 1
            if self._crashed > MOST_CRASHED:
                raise
            log.warning("%s is left out: %s", batch[0].path, error)
            file = batch[0]
            return [IndexedFile(path=file.path, digest="", size=file.size, mtime=file.mtime, left_out=CRASHED)]

    async def _store_files(self, store: Store, files: Sequence[IndexedFile]) -> None:
        assert self._known is not None
        new: list[IndexedFile] = []
        touched: list[IndexedFile] = []
        for file in files:
            self._remembered.add(file.path)
            file.version, file.defines = VERSION, len(file.scopes)
            before = self._known.get(file.path)
            if before is not None and (before.digest, before.version) == (file.digest, VERSION) and file.digest:
                before.size, before.mtime = file.size, file.mtime
                touched.append(before)
            else:
                new.append(file)
        await store.code.replace_files(self._workspace, new)
        await store.code.touch_files(self._workspace, touched)
        for file in new:
            # The table of all files stays small.
            file.scopes, file.search_texts, file.parsed = [], [], b""
            self._known[file.path] = file
        self._count()

    # --- references ------------------------------------------------------------------------------------------------

    async def _link(self, store: Store, gone: Sequence[str], generation: int) -> None:
        """Resolve the references of the files that changed and of those that depend on them.

        All are resolved after an interrupted run and when the process that parses is not that of `generation`, because
        then nothing knows what the changed files were before.
        """
        assert self._known is not None
        await self._remember(store, list(self._known))
        affected = await self._worker.ask(Link(self._workspace, list(gone)), list[str])
        self._remembered -= set(gone)
        await self._meet_process()
        if self._everything or self._generation != generation:
            affected = list(self._known)
        files = [path for path in affected if path in self._known and self._known[path].defines]
        done = 0
        for start in range(0, len(files), RESOLVED_AT_ONCE):
            started = time.monotonic()
            page = files[start : start + RESOLVED_AT_ONCE]
            self._report("linking", done, len(files))
            await self._store_references(store, page, await self._worker.ask(Resolve(page), Resolved))
            done += len(page)
            await self._give_way(started)
        self._report("linking", done, len(files))

    async def _remember(self, store: Store, paths: Sequence[str]) -> None:
        """Give the process that parses what it does not know of files, as they are stored."""
        assert self._known is not None
        await self._meet_process()
        missing = [path for path in paths if path not in self._remembered]
        for start in range(0, len(missing), REMEMBERED_AT_ONCE):
            parsed = await store.code.parsed(self._workspace, missing[start : start + REMEMBERED_AT_ONCE])
            for path in await self._worker.ask(Remember(parsed), list[str]):
                # Of another version of the parser: the next run parses it again.
                self._known[path].mtime = 0
        self._remembered |= set(missing)

    async def _store_references(self, store: Store, page: Sequence[str], resolved: Resolved) -> None:
        assert self._known is not None
        altered = [
            path for path in page if path in resolved.files and self._known[path].linked != resolved.files[path].digest
        ]
        if not altered:
            return
        names = [resolved.files[path] for path in altered]
        await store.code.replace_references(
            self._workspace,
            altered,
            [reference for one in names for reference in one.references],
            [name for one in names for name in one.unresolved],
        )
        for path, one in zip(altered, names, strict=True):
            file = self._known[path]
            file.linked, file.refers, file.unresolved = one.digest, len(one.references), len(one.unresolved)
        await store.code.touch_files(self._workspace, [self._known[path] for path in altered])
        self._count()

    async def _meet_process(self) -> None:
        """Start the process that parses if it does not run; a new one remembers nothing."""
        generation = await self._worker.ensure()
        if generation != self._generation:
            self._generation = generation
            self._remembered.clear()

    # --- vectors ---------------------------------------------------------------------------------------------------

    async def embed(self) -> None:
        """Make the vectors that are missing; without a model, search has words only. A run can start meanwhile.

        Raises:
            GraphError: The graph failed; the next call continues.
            WorkerGoneError: The process that runs the local model cannot be started.
        """
        store, embedder = await self._store(), self._embedder
        if embedder is None:
            return
        model, dimension = await store.vectors.claim_model(embedder.name, embedder.dimension)
        if (model, dimension) != (embedder.name, embedder.dimension):
            return
        done = 0
        try:
            while missing := self._without_vectors(model):
                self._report("embedding", done, done + len(missing))
                page = missing[:EMBEDDED_FILES]
                if not await self._embed_files(store, embedder, page):
                    break
                done += len(page)
        except ModelError as error:
            log.warning("code is searched by words only: %s", error)
        finally:
            if done:
                await store.code.search.vectors.changed(self._workspace)
                await self._store_totals(store, complete=self.totals.complete)

    def _without_vectors(self, model: str) -> list[IndexedFile]:
        known = self._known or {}
        return [file for file in known.values() if file.defines and file.embedded != model]

    async def _embed_files(self, store: Store, embedder: Embedder, files: Sequence[IndexedFile]) -> bool:
        assert self._known is not None
        known, vectors = self._known, store.code.search.vectors
        missing = await vectors.missing(self._workspace, embedder.name, [file.path for file in files])
        # First, because after an interruption only scopes without vectors are looked at.
        await self._embed_words(store, embedder, missing)
        for start in range(0, len(missing), EMBEDDED_AT_ONCE):
            await self._idle.wait()
            started = time.monotonic()
            batch = missing[start : start + EMBEDDED_AT_ONCE]
            made = await self._vectors(embedder, [embedded_text(scope) for scope in batch])
            if not await vectors.store(self._workspace, embedder.name, list(zip(batch, made, strict=True))):
                return False
            await self._give_way(started)
        await self._idle.wait()
        # A file that changed meanwhile has another record, whose vectors are made next.
        same = [file for file in files if known.get(file.path) is file]
        for file in same:
            file.embedded = embedder.name
        await store.code.touch_files(self._workspace, same)
        self._count()
        return True

    async def _vectors(self, embedder: Embedder, texts: list[str]) -> Vectors:
        """Return the vectors of texts; the local model runs in the process that parses, where it delays nothing."""
        if not isinstance(embedder, LocalEmbedder):
            return await embedder.embed(texts)
        await self._meet_process()
        made = await self._worker.ask(Embed(texts), bytes)
        return np.frombuffer(made, np.float32).reshape(len(texts), embedder.dimension)

    async def _embed_words(self, store: Store, embedder: Embedder, scopes: Sequence[Scope]) -> None:
        """Make the vectors of words that no scope had before: a question may use others for the same."""
        vectors = store.code.search.vectors
        if self._words is None:
            self._words = await vectors.words(self._workspace, embedder.name)
        words = {word for scope in scopes if not is_test(scope) for word in vocabulary(scope)}
        new = sorted(words - self._words)
        for start in range(0, len(new), WORDS_AT_ONCE):
            started = time.monotonic()
            batch = new[start : start + WORDS_AT_ONCE]
            await vectors.store_words(self._workspace, embedder.name, batch, await self._vectors(embedder, batch))
            self._words.update(batch)
            await self._give_way(started)

    async def _store_totals(self, store: Store, *, complete: bool) -> None:
        self._count()
        self.totals.complete = complete
        if complete:
            self.totals.deaths = 0
        await store.code.store_totals(self.totals)

    async def _give_way(self, started: float) -> None:
        """Pause while a turn runs, for a multiple of the time since `started`, and while the user waits or types."""
        if self._pace.turn_runs and not self._pace.needed:
            await asyncio.sleep(min((time.monotonic() - started) * TURN_SHARE, LONGEST_PAUSE))
        await self._pace.clear()

    def _count(self) -> None:
        assert self._known is not None
        indexed = [file for file in self._known.values() if not file.left_out]
        model = self._embedder.name if self._embedder is not None else ""
        totals = self.totals
        totals.files = len(indexed)
        totals.scopes = sum(file.defines for file in indexed)
        totals.references = sum(file.refers for file in indexed)
        totals.unresolved = sum(file.unresolved for file in indexed)
        totals.vectors = sum(file.defines for file in indexed if model and file.embedded == model)

    def _left_out(self, found: Found) -> dict[str, int]:
        """Return the number of files left out by reason, by the look at them or by the parser."""
        assert self._known is not None
        parsed = Counter(file.left_out for file in self._known.values() if file.left_out)
        return dict(parsed + Counter(found.left_out))


def vocabulary(scope: Scope) -> set[str]:
    """Return the words of a scope's name, signature and documentation that a question may mean by others."""
    return {word for word in code_words(f"{scope.qualified_name} {scope.signature} {scope.doc}") if is_plain(word)}


def embedded_text(scope: Scope) -> str:
    """Return what the vector of a scope is made of: the words of its name, and the first sentence about it.

    A section has its beginning instead. More text makes the vector of a short question less similar.
    """
    name = " ".join(identifier_words(scope.qualified_name or scope.name)[-EMBEDDED_NAME_WORDS:])
    if scope.kind == "section":
        return f"{name}: {' '.join(scope.text.split())}"[:EMBEDDED_CHARS]
    sentence = first_sentence(scope.doc)
    return f"{name}. {sentence[:EMBEDDED_SENTENCE_CHARS]}" if sentence else name


def _same(known: IndexedFile | None, found: FoundFile) -> bool:
    return known is not None and (known.size, known.mtime, known.version) == (found.size, found.mtime, VERSION)


def _within(path: str, folder: str) -> bool:
    return path == folder or PurePosixPath(folder) in PurePosixPath(path).parents


def _batches(files: Sequence[FoundFile]) -> Iterator[list[FoundFile]]:
    batch: list[FoundFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) >= BATCH_FILES or size + file.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch
