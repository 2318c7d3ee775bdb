"""Exports in real time: the files of a conversation are updated in the background as its data is stored.

The conversation reports that something was stored and continues at once. Writes during an answer are throttled and
cover everything stored meanwhile; the end of a turn is written right away. Files are made from the graph, so nothing
is lost if one cannot be written: the user gets one warning, and the next write completes the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.live_export.growing_file import GrowingFile
from ragforge_tui.conversation.live_export.regions import (
    OPEN_TURNS,
    Fresh,
    JsonRenderer,
    MarkdownRenderer,
    Renderer,
    Tally,
)
from ragforge_tui.export import ExportFormat, file_name, names_a_file
from ragforge_tui.graph import Store
from ragforge_tui.settings.schema import ExportSettings, Paths
from ragforge_tui.shared.errors import GraphError, NotFoundError, storage_error
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    MessageFinished,
    Notice,
    ToolCallFinished,
    TurnStarted,
)
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.wire import CLOSE_SECONDS

log = logging.getLogger(__name__)

MESSAGE_FACTOR, TURN_FACTOR = 20.0, 4.0
"""Least time as a multiple of the last write's duration, during a turn and at its end: a huge conversation, whose
files take long to copy, is not copied all the time."""

_RENDERERS: dict[ExportFormat, Callable[[], Renderer]] = {"json": JsonRenderer, "markdown": MarkdownRenderer}


class ExportWriter:
    """Background writer of the export files of conversations.

    Args:
        store: Returns the store, waiting while the graph starts.
        emit: Receives one notice if files cannot be written.
        workspace: Parent of a relative folder in the settings; empty for the folder the program was started in.
    """

    def __init__(
        self,
        settings: ExportSettings,
        paths: Paths,
        store: Callable[[], Awaitable[Store]],
        emit: Callable[[Event], None],
        *,
        workspace: str = "",
    ) -> None:
        self._settings = settings
        self._data = paths.data
        self.folder = settings.folder(paths.data, workspace)
        self._enabled = settings.enabled
        self._every_message = settings.on_every_message
        self._formats: list[ExportFormat] = ["json", "markdown"] if settings.format == "both" else [settings.format]
        self._store = store
        self._emit = emit
        self._jobs: dict[str, _Job] = {}
        self._complained = False
        self._closing = False

    def on_event(self, event: Event) -> None:
        """Schedule a write after an event that part of a turn was stored, or that the conversation changed."""
        if isinstance(event, TurnStarted | MessageFinished | ToolCallFinished):
            self.message_stored(event.conversation_id)
        elif isinstance(event, ConversationChanged):
            self.turn_stored(event.conversation.uuid)

    def message_stored(self, conversation_id: str) -> None:
        """Schedule a write after part of a running turn was stored; returns at once."""
        if self._every_message:
            self._ask(conversation_id, at_once=False)

    def turn_stored(self, conversation_id: str) -> None:
        """Schedule a write after a turn ended or other data of the conversation changed; returns at once."""
        self._ask(conversation_id, at_once=True)

    async def memory_changed(self, conversation_ids: Iterable[str]) -> None:
        """Schedule a write of those of the conversations that have been exported."""
        if not self._enabled:
            return

        def exported() -> list[str]:
            return [
                uuid
                for uuid in filter(names_a_file, conversation_ids)
                if any((self.folder / file_name(uuid, format)).exists() for format in self._formats)
            ]

        for uuid in await asyncio.to_thread(exported):
            self.turn_stored(uuid)

    async def turn_ended(self, conversation_id: str) -> None:
        """Write a turn that has ended, and wait for that within a limit: its end is announced afterwards."""
        self._ask(conversation_id, at_once=True)
        job = self._jobs.get(conversation_id)
        if not self._enabled or job is None or job.task is None:
            return
        job.hurry()
        _, late = await asyncio.wait({job.task}, timeout=CONVERSATION.export_ended)
        if late:
            log.info("exports: %s is still being written", conversation_id)

    async def written(self, conversation_id: str) -> None:
        """Wait until the files of a conversation are complete: a program reads them next."""
        job = self._jobs.get(conversation_id)
        if self._enabled and job is not None and job.task is not None:
            job.hurry()
            await asyncio.wait({job.task})

    async def flush(self) -> None:
        """Wait until all scheduled writes are done."""
        for job in list(self._jobs.values()):
            job.hurry()
        await asyncio.gather(*(job.task for job in self._jobs.values() if job.task is not None))

    async def close(self) -> None:
        """Finish scheduled writes, for at most `CLOSE_SECONDS`, and stop."""
        self._closing = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.flush()
        except TimeoutError:
            log.warning("exports: some files were not finished within %s s", CLOSE_SECONDS)
        for job in self._jobs.values():
            if job.task is not None:
                job.task.cancel()

    async def removed(self, conversation_id: str, workspace: str) -> list[str]:
        """Delete the files of a purged conversation, even if exports are off now; return sentences on failures."""
        job = self._jobs.pop(conversation_id, None)
        if job is not None and job.task is not None:
            job.task.cancel()
            await asyncio.gather(job.task, return_exceptions=True)
        left: list[str] = []
        folders = {self.folder, self._settings.folder(self._data, workspace)} if names_a_file(conversation_id) else ()
        for path in [folder / file_name(conversation_id, format) for folder in folders for format in _RENDERERS]:
            try:
                await asyncio.to_thread(GrowingFile(path).remove)
            except OSError as error:
                left.append(f"The export {path} could not be deleted: {error.strerror}.")
        return left

    def _ask(self, conversation_id: str, *, at_once: bool) -> None:
        if not self._enabled or self._closing:
            return
        job = self._jobs.get(conversation_id)
        if job is None and not names_a_file(conversation_id):
            log.warning("exports: no file can be named after the conversation %r", conversation_id)
            return
        if job is None:
            files = {format: GrowingFile(self.folder / file_name(conversation_id, format)) for format in self._formats}
            job = self._jobs[conversation_id] = _Job(conversation_id, files, self._write)
        job.ask(at_once=at_once)

    async def _write(self, job: _Job) -> None:
        """Update the files; errors are reported, not raised."""
        try:
            await job.update(await self._store())
        except NotFoundError:
            log.info("exports: %s is gone", job.conversation_id)
        except GraphError as error:
            log.warning("exports: %s not written: %s", job.conversation_id, error)
        except OSError as error:
            job.forget()
            self._complain(error, job.conversation_id)
        except Exception:
            job.forget()
            log.exception("exports: %s not written", job.conversation_id)
        else:
            self._complained = False

    def _complain(self, error: OSError, conversation_id: str) -> None:
        log.warning("exports: %s", error)
        if self._complained:
            return
        self._complained = True
        info = storage_error(error)
        why = info.what if info else f"{error.strerror or error}: {error.filename or self.folder}."
        text = (
            f"The conversation could not be exported to {self.folder}. {why} It is stored in the graph; "
            "the files will be updated once they can be written."
        )
        self._emit(Notice(text=text, level="warning", conversation_id=conversation_id))


class _Job:
    """Files of one conversation, with the schedule of their next write."""

    def __init__(
        self,
        conversation_id: str,
        files: dict[ExportFormat, GrowingFile],
        write: Callable[[_Job], Awaitable[None]],
    ) -> None:
        self.conversation_id = conversation_id
        self.task: asyncio.Task[None] | None = None
        self._files = files
        self._write = write
        self._wanted = False
        self._at_once = False
        self._hurried = False
        self._changed = asyncio.Event()
        self._last_end = -CONVERSATION.export_running
        self._took = 0.0
        self._tidied = False
        self.forget()

    def forget(self) -> None:
        """Discard the state of the files: the next write creates them from the start."""
        self._renderers = {format: _RENDERERS[format]() for format in self._files}
        self._tally = Tally()
        self._final = 0
        self._stamp = ""
        self._personas: set[str] = set()
        self._fresh_start = True

    def ask(self, *, at_once: bool) -> None:
        """Schedule a write, now or soon."""
        self._wanted = True
        self._at_once |= at_once
        self._changed.set()
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run(), name=f"export {self.conversation_id}")

    def hurry(self) -> None:
        """Write without further delay."""
        self._hurried = True
        self._changed.set()

    async def _run(self) -> None:
        while self._wanted:
            while (pause := self._pause()) > 0:
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._changed.wait()
            self._wanted = self._at_once = self._hurried = False
            began = time.monotonic()
            await self._write(self)
            self._last_end = time.monotonic()
            self._took = self._last_end - began

    def _pause(self) -> float:
        """Return the seconds the next write still waits, to cover more changes."""
        if self._hurried:
            return 0.0
        least = (
            self._took * TURN_FACTOR if self._at_once else max(CONVERSATION.export_running, self._took * MESSAGE_FACTOR)
        )
        return self._last_end + least - time.monotonic()

    async def update(self, store: Store) -> None:
        """Write the changes since the last write; everything if the files were changed by others."""
        if not self._tidied:
            self._tidied = True
            for file in self._files.values():
                await asyncio.to_thread(file.tidy)
        if self._fresh_start or not await asyncio.to_thread(self._known):
            self.forget()
        uuid = self.conversation_id
        conversation = await store.conversations.get(uuid)
        stamp = await store.memory_exporter.stamp(uuid)
        fresh = await self._read(store, conversation)
        personas = {spoken.persona for spoken in fresh.spoken}
        if stamp != self._stamp or not self._personas.issuperset(personas):
            fresh.memory = await store.memory_exporter.memory(uuid)
        # Until the files are in place, the renderers' state is ahead of them.
        self._fresh_start = True
        await asyncio.to_thread(self._write_files, fresh)
        self._final, self._stamp, self._fresh_start = fresh.final, stamp, False
        self._personas |= personas

    async def _read(self, store: Store, conversation: Conversation) -> Fresh:
        """Read everything that is not final yet."""
        fresh = Fresh(conversation=conversation, final=self._final)
        uuid = self.conversation_id
        start, end = self._final + 1, conversation.next_turn
        if start < end:
            fresh.turns = await store.turns.between(uuid, start=start, end=end, changes=True)
            fresh.contexts = await store.memory_exporter.contexts(uuid, start=start, end=end)
            fresh.spoken = await store.memory_exporter.spoken(uuid, start=start, end=end)
        for turn in fresh.turns:
            running = any(message.state == "streaming" for message in turn.messages)
            if running or turn.turn_index >= conversation.next_turn - OPEN_TURNS:
                break
            fresh.final = turn.turn_index
        return fresh

    def _known(self) -> bool:
        return all(file.known() for file in self._files.values())

    def _write_files(self, fresh: Fresh) -> None:
        fresh.files = self._tally.with_turns(fresh.turns, fresh.final)
        for format, file in self._files.items():
            file.write(self._renderers[format].render(fresh))
