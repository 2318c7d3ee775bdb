"""The journal: records that could not be written to a graph, in files until they can.

While the graph is unreachable, or starts and a user waits for an answer, the engine appends the records it would have
stored: one file per process, one JSON line per record, on the disk before `append` returns. A journal belongs to one
graph and waits for it. `drain` writes all its files into the graph, in order and once: the store's operations are
idempotent, and a file is deleted only when all of it is stored. A file belongs to the process that holds its lock, so
several processes can drain side by side, and the files of dead processes are taken over.
"""

from __future__ import annotations

import io
import logging
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.journal_files import (
    JournalFolders,
    JournalInfo,
    Line,
    Named,
    apply_line,
    by_age,
    complete_lines,
    concerns,
    encode_line,
    named_in,
)
from ragforge_tui.shared.errors import GraphError, GraphUnavailableError, NotFoundError, RagforgeError, storage_error
from ragforge_tui.shared.files import atomic_write, lock_open, open_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import Conversation, now

if TYPE_CHECKING:
    from ragforge_tui.graph.repositories import Store

log = logging.getLogger(__name__)


class Moved(msgspec.Struct, frozen=True):
    """The outcome of `move_journal`, in records."""

    written: int
    refused: int
    busy: int
    """Files that a running chat still appends to; they were left alone."""
    conversations: int
    """Conversations created for turns whose own conversation is in another graph."""


class _OwnFile:
    """The file that this process appends to, and whose lock it holds."""

    def __init__(self, path: Path, file: io.BufferedWriter) -> None:
        self.path = path
        self.file = file

    def move_to(self, folder: Path) -> None:
        """Move it into the journal of another graph; the lock stays.

        Raises:
            OSError: It cannot be moved.
        """
        self.path = self.path.rename(folder / self.path.name)


class Journal:
    """The journal of this process's graph; writes the journals of all processes into the graph.

    Args:
        root: ``<state>/journal``; made when first needed.
        address: Address of the graph, without credentials.
    """

    def __init__(self, root: Path, address: str) -> None:
        self._folders = JournalFolders(root)
        self._address = address
        self._identity = self._folders.remembered(address)
        self._committed = False
        """Whether this process has reached the graph, or journaled for it, and is therefore bound to it."""
        self.starting = False
        """Whether the graph is still starting: the records go to the one that answers, even if it replaced another."""
        self._file: _OwnFile | None = None
        self.touched: set[str] = set()
        """Conversations with turns written from the journal, which still lack recall keys."""

    @property
    def knows_graph(self) -> bool:
        """Return whether a graph was reached at the address before."""
        return bool(self._identity)

    def append(self, op: str, record: Any = None, **arguments: Any) -> None:
        """Append one operation of the store; it is on disk when this returns.

        Args:
            op: Name of the store's method.
            record: Its record, for the methods that take one.
            arguments: Its other arguments, by name (``workspace=…``).

        Raises:
            GraphError: It cannot be written (disk full, no permission): nothing was stored.
        """
        line = encode_line(op, record, arguments)
        try:
            file = self._open()
            start = file.tell()
            try:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                # An incomplete line must not precede the next one.
                os.ftruncate(file.fileno(), start)
                raise
        except OSError as error:
            what = "still starting" if self.starting else "unreachable"
            info = storage_error(error, at=self._folders.root)
            reason = info.what if info else f"{self._folders.root}: {error.strerror}."
            raise GraphError(
                f"The graph is {what}, and its journal cannot be written. {reason}",
                todo=info.todo if info else "Make that folder writable, then send the message again.",
                kind="journal",
            ) from error
        self._committed |= bool(self._identity) and not self.starting

    def check(self, identity: str) -> None:
        """Check that the graph that answered is the one this process keeps to.

        Raises:
            GraphUnavailableError: It is another one: its predecessor was replaced, or the address is used again.
        """
        if self._committed and identity != self._identity:
            raise GraphUnavailableError(
                f"The graph at {self._address} is not the one this chat started with.",
                kept="New turns are kept in the journal of the first one.",
                todo="Restart the chat to use this graph; `ragforge-chat graph journal` lists the pending records.",
                kind="graph_replaced",
            )

    def pending(self) -> int:
        """Return the number of pending records for this graph, of all processes."""
        keys = {self._identity, *(folder.name for folder in self._own_folders())} - {""}
        return sum(info.records for info in self._folders.waiting() if info.key in keys)

    def left_behind(self) -> list[JournalInfo]:
        """Return the journals of graphs that were at this address before, which no chat tries to reach."""
        return [
            info
            for info in self._folders.waiting()
            if info.records and info.identity != self._identity and info.address == self._address
        ]

    async def drain(self, store: Store) -> int:
        """Write all pending records of the store's graph, except files that another running process still appends to.

        Returns:
            The number of records written.

        Raises:
            GraphUnavailableError: The graph became unreachable again, or is another one; remaining records are kept.
            GraphError: The state folder cannot be written.
        """
        self._reached(store.graph.identity)
        # Its lock is kept until it is drained: a process that took it over would let later records overtake these.
        own, self._file = self._file, None
        try:
            return await self._drain_files(store, own.path if own is not None else None)
        finally:
            if own is not None:
                own.file.close()

    async def _drain_files(self, store: Store, locked: Path | None) -> int:
        written = 0
        for path in by_age(self._own_folders(), "*.jsonl"):
            try:
                with open_regular(path, "rb+") as file:
                    if path != locked and not lock(path, file):
                        continue
                    written += await drain_file(store, path, file, self.touched)
            except FileNotFoundError:
                continue
        return written

    def forget(self, conversation_id: str) -> int:
        """Drop pending and rejected records of a conversation that was purged here.

        What another living process still appends to is left to its own drain, which finds the conversation gone. What
        waits for another graph is that graph's, though it may have a conversation of the same id.

        Returns:
            The number of records dropped.

        Raises:
            OSError: A file cannot be written; it stays as it was.
        """
        dropped = 0
        folders = self._own_folders()
        for path in (*by_age(folders, "*.jsonl"), *by_age(folders, "*.rejected")):
            try:
                with open_regular(path, "rb+") as file:
                    if lock(path, file):
                        dropped += _forget_in(path, file, conversation_id)
            except FileNotFoundError:
                continue
        return dropped

    def close(self) -> None:
        """Close this process's file; another process, or the next `append`, may continue it."""
        if self._file is not None:
            self._file.file.close()
            self._file = None

    def _reached(self, identity: str) -> None:
        self.check(identity)
        try:
            self._folders.remember(self._address, identity)
            if self._file is not None and identity != self._identity:
                self._file.move_to(self._folders.make(identity, self._address))
        except OSError as error:
            raise GraphError(
                f"The journal in {self._folders.root} cannot be written: {error.strerror}.",
                todo="Free some space there or make it writable.",
                kind="journal",
            ) from error
        self._identity, self._committed = identity, True

    def _own_folders(self) -> list[Path]:
        return self._folders.of(self._identity, self._address)

    def _open(self) -> io.BufferedWriter:
        while (own := self._file) is None:
            folder = self._folders.make(self._identity, self._address)
            path = folder / f"{os.getpid()}-{uuid.uuid4().hex}.jsonl"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            file = os.fdopen(descriptor, "wb")
            lock_open(file, path)
            if os.fstat(file.fileno()).st_nlink:
                self._file = _OwnFile(path, file)
            else:  # another process took the new file for an empty one left behind, before it was locked
                file.close()
        return own.file


async def move_journal(root: Path, key: str, store: Store, *, workspace: str) -> Moved:
    """Write a journal into a graph it does not belong to, because a user wants it there.

    Conversations that only the other graph has are made here, to hold the turns that are in the journal. Records that
    were refused are tried again.

    Args:
        key: Of the `JournalInfo`.
        workspace: Folder of the conversations that are made.

    Raises:
        GraphUnavailableError: The graph became unreachable; remaining records are kept.
    """
    written = refused = busy = made = 0
    for path in JournalFolders(root).files(key):
        try:
            with open_regular(path, "rb+") as file:
                if not lock(path, file):
                    busy += 1
                    continue
                lines = list(complete_lines(file))
                made += await _make_missing(store, named_in(lines), workspace)
                file.seek(0)
                done = await drain_file(store, path, file, set())
                written, refused = written + done, refused + len(lines) - done
        except FileNotFoundError:
            continue
    return Moved(written=written, refused=refused, busy=busy, conversations=made)


async def _make_missing(store: Store, named: Named, workspace: str) -> int:
    missing = [ref for ref in sorted(named.others) if not await is_stored(store, ref)]
    for ref in missing:
        moment = now()
        await store.conversations.create(
            Conversation(uuid=ref, title="From a journal", created_at=moment, updated_at=moment, workspace=workspace)
        )
    return len(missing)


async def drain_file(store: Store, path: Path, file: io.BufferedRandom, touched: set[str]) -> int:
    """Write a locked file into the graph and remove it; records that the graph rejects are kept next to it.

    Returns:
        The number of records written. The conversations with new turns are added to `touched`.

    Raises:
        GraphUnavailableError: The graph became unreachable; the file stays.
    """
    written = 0
    rejected: list[bytes] = []
    for raw in complete_lines(file):
        try:
            await apply_line(store, decode_json(raw, Line), touched)
            written += 1
        except GraphUnavailableError:
            raise
        except (RagforgeError, msgspec.MsgspecError, TypeError, ValueError) as error:
            log.warning("journal: a record of %s was refused: %s", path.name, error)
            rejected.append(raw)
    _done(path, rejected)
    return written


def _done(path: Path, rejected: list[bytes]) -> None:
    """Remove a file that was written into the graph, and keep the rejected records next to it."""
    aside = path.with_suffix(".rejected")
    if rejected:
        atomic_write(aside, b"\n".join(rejected) + b"\n")
    if not rejected or aside != path:
        path.unlink()


def lock(path: Path, file: io.BufferedRandom) -> bool:
    """Take a file that no living process holds, when it is still there."""
    return lock_open(file, path, wait=False) and path.exists() and os.fstat(file.fileno()).st_nlink > 0


async def is_stored(store: Store, uuid: str) -> bool:
    """Return whether the graph has a conversation, whatever its status."""
    try:
        await store.conversations.get(uuid)
    except NotFoundError:
        return False
    return True


def _forget_in(path: Path, file: io.BufferedRandom, conversation_id: str) -> int:
    """Write a file again without a conversation's records; the number of those."""
    lines = list(complete_lines(file))
    kept: list[bytes] = []
    messages: set[str] = set()
    for raw in lines:
        try:
            about = concerns(decode_json(raw, Line), conversation_id, messages)
        except msgspec.MsgspecError:
            about = False
        if not about:
            kept.append(raw)
    if len(kept) == len(lines):
        return 0
    if kept:
        atomic_write(path, b"\n".join(kept) + b"\n")
    else:
        path.unlink()
    return len(lines) - len(kept)
