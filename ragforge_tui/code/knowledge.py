"""Knowledge of a workspace's code: the index, kept current in the background, and searches over it.

One process of the user indexes a workspace, the one that holds its lock; the others read what it stores and take over
when it ends. A program that does not stay only refreshes an index that exists. With its first message to a model it
makes one, in the background: the code tools are offered at once, and wait a while for what they need.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from ragforge_tui.code.files import FileLimits, refusal
from ragforge_tui.code.indexer import Indexer
from ragforge_tui.code.limits import INDEXING
from ragforge_tui.code.watcher import Watcher
from ragforge_tui.code.worker_client import WorkerClient, WorkerGoneError
from ragforge_tui.graph import Store
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.settings.schema import CodeSettings
from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.code_records import CodeTotals
from ragforge_tui.shared.errors import GraphError, RagforgeError
from ragforge_tui.shared.events import CodeIndexChanged, CodePhase
from ragforge_tui.shared.files import FileLock, make_private
from ragforge_tui.shared.pace import Pace

log = logging.getLogger(__name__)


OnChange = Callable[[CodeIndexChanged], None]


class CodeKnowledge:
    """Index of a workspace's code and searches over it; one for each agent.

    Args:
        ignore: The user's patterns of paths to leave out.
        locks: Folder of the locks between processes.
        store: Returns the graph's store; waits while the graph starts.
        pace: When the index may use the processor.
        on_change: Receives the state whenever it changes, and progress a few times a second at most.

    Attributes:
        state: The last state reported.
    """

    def __init__(
        self,
        workspace: Path,
        settings: CodeSettings,
        *,
        ignore: list[str],
        locks: Path,
        store: Callable[[], Awaitable[Store]],
        embedder: Embedder | None,
        pace: Pace,
        on_change: OnChange,
    ) -> None:
        self.workspace = str(workspace)
        self._settings = settings
        self._locks = locks
        self._store = store
        self._pace = pace
        self._on_change = on_change
        self._worker = WorkerClient()
        limits = FileLimits(max_files=settings.max_files, max_file_bytes=settings.max_file_bytes, ignore=ignore)
        self._indexer = Indexer(
            self.workspace,
            limits,
            worker=self._worker,
            store=store,
            embedder=embedder,
            pace=pace,
            report=self._report,
        )
        self._task: asyncio.Task[None] | None = None
        self._embedding: asyncio.Task[None] | None = None
        self._keep = False
        self._wanted = False
        """Whether the workspace is indexed although the program does not stay."""
        self._is_new = False
        self._indexed = asyncio.Event()
        self._read = asyncio.Event()
        """Set once it is known what the graph holds of the workspace."""
        self._reported = 0.0
        self.state = CodeIndexChanged(phase="waiting" if settings.enabled else "off", workspace=self.workspace)

    @property
    def ready(self) -> bool:
        """Return whether the workspace has an index with something in it."""
        return self.state.scopes > 0

    @property
    def coming(self) -> bool:
        """Return whether the first index of the workspace is being made."""
        started = self._task is not None and not self._task.done() and (self._keep or self._wanted)
        return started and self.state.phase != "failed" and not self._indexed.is_set()

    @property
    def keeps_current(self) -> bool:
        """Return whether changes of files reach the index while the program runs."""
        return self._task is not None and not self._task.done()

    def start(self, *, keep: bool) -> None:
        """Start to index in the background; does nothing if the settings turn it off or it has started.

        Args:
            keep: Index a new workspace too and keep the index current; otherwise one that exists is refreshed once.
        """
        if self._settings.enabled and self._task is None:
            self._keep = keep
            self._task = asyncio.create_task(self._run(keep), name="code-index")

    def index_new(self) -> None:
        """Index the workspace in the background if it has no index yet: there is a message about it."""
        if self._task is None or self._wanted or refusal(Path(self.workspace), home_folder()):
            return
        self._wanted = True
        if self._is_new and self._task.done():
            self._indexed.clear()
            self._task = asyncio.create_task(self._run(False), name="code-index")

    async def pending(self) -> str:
        """Wait a while for an index that is being made; return how far it is if that was not enough, else nothing."""
        if self.coming:
            with suppress(TimeoutError), self._pace.awaited():
                async with asyncio.timeout(INDEXING.wait):
                    await self._indexed.wait()
        if not self.coming:
            return ""
        state = self.state
        done = f": {state.phase}, {state.done} of {state.todo} files" if state.todo else ""
        return f"The index of the workspace is still being made{done}. Parts may be missing; grep_files finds them."

    async def close(self) -> None:
        """Stop; the next start continues."""
        tasks = [task for task in (self._task, self._embedding) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.close()

    async def wait_read(self) -> None:
        """Wait until it is known whether the workspace has an index; returns at once if off."""
        if self._task is not None:
            await self._read.wait()

    async def wait_indexed(self) -> None:
        """Wait until the files as they are now are in the index, by this process or another; returns at once if off."""
        if self._task is not None:
            await self._indexed.wait()

    async def index_once(self) -> str:
        """Index the workspace now if it has no index yet, else wait until its index is current.

        Returns:
            What the user should know about the index; empty if nothing.

        Raises:
            RagforgeError: The graph is unreachable, or the files could not be read.
        """
        await self.wait_indexed()
        problem = self.state.problem
        if self._task is None:
            return problem
        if (totals := await self._stored()) is not None:
            return problem or totals.problem
        lock = self._lock()
        while not lock.try_acquire():
            await self._follow()
            if self.state.files:
                return self.state.problem
            await asyncio.sleep(INDEXING.report)
        try:
            await self._run_once(None)
            await self._embed()
        except (WorkerGoneError, OSError) as error:
            raise RagforgeError(f"The code could not be indexed: {error}.", todo="The log has the details.") from error
        finally:
            lock.release()
        return self.state.problem

    # --- the background --------------------------------------------------------------------------------------------

    async def _run(self, keep: bool) -> None:
        while True:
            try:
                await self._index(keep)
                return
            except GraphError as error:
                log.warning("the code is not indexed: %s", error)
                self._set("failed", problem=error.info.what)
            except (WorkerGoneError, OSError) as error:
                log.warning("the code is not indexed: %s", error)
                self._set("failed", problem="The code could not be read: see the log (ragforge-chat doctor).")
            if not keep:
                self._indexed.set()
                return
            self._indexer.forget_known()
            await asyncio.sleep(INDEXING.retry)

    async def _index(self, keep: bool) -> None:
        totals = await self._stored()
        if totals is None and not keep and not self._wanted:
            self._is_new = True
            self._indexed.set()
            return
        lock = self._lock()
        try:
            while not lock.try_acquire():
                await self._follow()
                if not keep:
                    self._indexed.set()
                    return
                await asyncio.sleep(INDEXING.take_over)
            await self._pace.clear()
            self._indexer.forget_known()
            await self._run_once(None)
            if keep and self._settings.watch:
                self._embed_soon()
                await self._watch()
            else:
                await self._embed()
        finally:
            if self._embedding is not None:
                self._embedding.cancel()
                await asyncio.gather(self._embedding, return_exceptions=True)
            lock.release()

    async def _watch(self) -> None:
        while True:
            watcher = Watcher(self.workspace, self._indexer.folders)
            try:
                async for paths in watcher.changes():
                    await self._run_once(paths)
                    self._embed_soon()
                    if paths is None and set(self._indexer.folders) != set(watcher.folders):
                        break
            except OSError as error:
                # Most often the limit of watched folders: fs.inotify.max_user_watches.
                log.warning("the workspace cannot be watched, so it is read every %g s: %s", INDEXING.rescan, error)
                await self._rescan()
            finally:
                await watcher.close()

    async def _rescan(self) -> None:
        while True:
            await asyncio.sleep(INDEXING.rescan)
            await self._run_once(None)
            self._embed_soon()

    async def _run_once(self, paths: Collection[str] | None) -> None:
        await self._indexer.run(paths)
        totals = self._indexer.totals
        self._set("left_out" if totals.rests_until is not None else "ready", problem=totals.problem)
        self._indexed.set()

    async def _embed(self) -> None:
        await self._indexer.embed()
        if self.state.phase == "embedding":
            self._set("ready", problem=self._indexer.totals.problem)

    def _embed_soon(self) -> None:
        """Make missing vectors in the background, unless that is in progress, which takes new files along."""

        async def embed() -> None:
            try:
                await self._embed()
            except (GraphError, WorkerGoneError, OSError) as error:
                # The next run makes them.
                log.warning("vectors of code were not made: %s", error)

        if self._embedding is None or self._embedding.done():
            self._embedding = asyncio.create_task(embed(), name="code-vectors")

    async def _follow(self) -> None:
        """Show what the process that holds the lock stored."""
        totals = await self._stored()
        if totals is not None and totals.complete:
            self._indexed.set()
        self._set("elsewhere", totals=totals, problem=totals.problem if totals else "")

    async def _stored(self) -> CodeTotals | None:
        found = await (await self._store()).code.totals(self.workspace)
        if found:
            self._set("waiting", totals=found[0])
        self._read.set()
        return found[0] if found else None

    def _lock(self) -> FileLock:
        make_private(self._locks)
        return FileLock(self._locks / f"{hashlib.sha256(self.workspace.encode()).hexdigest()[:24]}.lock")

    # --- the state -------------------------------------------------------------------------------------------------

    def _report(self, phase: CodePhase, done: int, todo: int) -> None:
        moment = time.monotonic()
        if phase == self.state.phase and done < todo and moment - self._reported < INDEXING.report:
            return
        self._reported = moment
        self._set(phase, done=done, todo=todo)

    def _set(
        self, phase: CodePhase, *, done: int = 0, todo: int = 0, totals: CodeTotals | None = None, problem: str = ""
    ) -> None:
        told = totals or self._indexer.totals
        state = CodeIndexChanged(
            phase=phase,
            workspace=self.workspace,
            done=done,
            todo=todo,
            files=told.files,
            scopes=told.scopes,
            references=told.references,
            unresolved=told.unresolved,
            vectors=told.vectors,
            problem=problem,
        )
        if state != self.state:
            self.state = state
            self._on_change(msgspec.structs.replace(state))
