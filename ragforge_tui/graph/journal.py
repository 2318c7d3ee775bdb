"""What could not be written to the graph, kept in files until it can.

While the graph is away the engine appends here what it would have stored: one file a process, one JSON line a
record, on the disk before `append` returns. `drain` writes all files in, in order and once: the store's operations
are idempotent, and a file is deleted only when all of it is in. A file belongs to whoever holds its lock, so
several processes can drain side by side and the files of dead ones are taken over.

A turn begun while the graph was away got its index from the engine's guess. The store allocates the real one, and
what follows for that turn in the same file is moved along.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.errors import GraphError, GraphUnavailableError, RagforgeError
from ragforge_tui.models import Conversation, Message, ToolCall
from ragforge_tui.text import storable_value

if TYPE_CHECKING:
    from ragforge_tui.graph.store import Store

log = logging.getLogger(__name__)

_RECORDS: dict[str, type[Any]] = {
    "create_conversation": Conversation,
    "begin_turn": Message,
    "add_message": Message,
    "finish_message": Message,
    "start_tool_call": ToolCall,
    "finish_tool_call": ToolCall,
}
"""Operations of the store on one record; `append`'s further arguments are passed on."""

_PLAIN = frozenset({"update_conversation", "supersede", "index_turn", "store_context", "store_persona"})
"""Operations of the store that take only named arguments."""

_TIMES = frozenset({"deleted_at", "updated_at"})


class _Line(msgspec.Struct, omit_defaults=True):
    op: str
    record: msgspec.Raw = msgspec.Raw(b"null")
    arguments: dict[str, Any] = {}


class Journal:
    """The journal of this process, and the way back into the graph for all of them.

    Args:
        folder: ``<state>/journal``; made when first needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: io.BufferedWriter | None = None
        self.touched: set[str] = set()
        """Conversations whose turns were written in: what they are found by is not made yet."""

    def append(self, op: str, record: Any = None, **arguments: Any) -> None:
        """Keep one operation of the store, on disk when this returns.

        Args:
            op: Name of the store's method.
            record: Its record, for the methods that take one.
            arguments: Its other arguments, by name (``workspace=…``).

        Raises:
            GraphError: It cannot be written (disk full, no permission): nothing was kept.
        """
        if op not in _RECORDS and op not in _PLAIN:
            raise ValueError(f"the journal does not know {op!r}")
        body = msgspec.json.encode(storable_value(msgspec.to_builtins(record)))
        line = msgspec.json.encode(_Line(op=op, record=msgspec.Raw(body), arguments=_plain(arguments))) + b"\n"
        try:
            file = self._open()
            start = file.tell()
            try:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                # Half a line must not stand before the next one.
                os.ftruncate(file.fileno(), start)
                raise
        except OSError as error:
            raise GraphError(
                f"The graph is away and the journal in {self._folder} cannot be written: {error.strerror}.",
                todo="Make room there or allow writing, then send the message again.",
                kind="journal",
            ) from error

    def pending(self) -> int:
        """How many records wait, of all processes."""
        total = 0
        for path in self._files():
            try:
                with path.open("rb") as file:
                    total += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
            except FileNotFoundError:
                continue
        return total

    async def drain(self, store: Store) -> int:
        """Write in all that waits, except what another living process still appends to.

        Returns:
            The number of records written in.

        Raises:
            GraphUnavailableError: The graph went away again; what is not in yet is kept.
        """
        self.close()
        written = 0
        for path in self._files():
            try:
                with path.open("rb+") as file:
                    if _locked(file) and path.exists() and os.fstat(file.fileno()).st_nlink:
                        written += await self._drain_file(store, path, file)
            except FileNotFoundError:
                continue
        return written

    def forget(self, conversation_id: str) -> int:
        """Drop what waits of a conversation that was purged, and what was refused for good.

        What another living process still appends to is left to its own drain, which finds the conversation gone.

        Returns:
            How many records were dropped.

        Raises:
            OSError: A file cannot be written; it stays as it was.
        """
        dropped = 0
        for path in (*self._files(), *self._folder.glob("*.rejected")):
            try:
                with path.open("rb+") as file:
                    if _locked(file) and path.exists():
                        dropped += _forget_in(path, file, conversation_id)
            except FileNotFoundError:
                continue
        return dropped

    def close(self) -> None:
        """Let go of this process's file; another process, or the next `append`, may go on."""
        if self._file is not None:
            self._file.close()
            self._file = None

    async def _drain_file(self, store: Store, path: Path, file: io.BufferedRandom) -> int:
        turns: dict[tuple[str, int], int] = {}
        written = 0
        rejected: list[bytes] = []
        for raw in _lines(file):
            try:
                await _apply(store, msgspec.json.decode(raw, type=_Line), turns)
                written += 1
            except GraphUnavailableError:
                raise
            except (RagforgeError, msgspec.MsgspecError, TypeError, ValueError) as error:
                log.warning("journal: a record of %s was refused: %s", path.name, error)
                rejected.append(raw)
        self.touched.update(conversation_id for conversation_id, _ in turns)
        _done(path, rejected)
        return written

    def _files(self) -> list[Path]:
        """The journals there are, the oldest first."""
        found = []
        for path in self._folder.glob("*.jsonl"):
            try:
                found.append((path.stat().st_mtime_ns, path))
            except FileNotFoundError:
                continue
        return [path for _, path in sorted(found)]

    def _open(self) -> io.BufferedWriter:
        while self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / f"{os.getpid()}-{uuid.uuid4().hex}.jsonl"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            file = os.fdopen(descriptor, "wb")
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                self._file = file
            else:  # another process took the new file for an empty one left behind, before it was locked
                file.close()
        return self._file


def _forget_in(path: Path, file: io.BufferedRandom, conversation_id: str) -> int:
    """Write a file anew without a conversation's records; the number of those."""
    lines = list(_lines(file))
    kept: list[bytes] = []
    messages: set[str] = set()
    for raw in lines:
        try:
            told = _conversation_of(msgspec.json.decode(raw, type=_Line), conversation_id, messages)
        except msgspec.MsgspecError:
            told = False
        if not told:
            kept.append(raw)
    if len(kept) == len(lines):
        return 0
    if kept:
        partial = path.with_suffix(".partial")
        partial.write_bytes(b"\n".join(kept) + b"\n")
        partial.replace(path)
    else:
        path.unlink()
    return len(lines) - len(kept)


def _conversation_of(line: _Line, conversation_id: str, messages: set[str]) -> bool:
    """Whether a record is of that conversation; `messages` gathers the ids of its messages for those that follow."""
    record = msgspec.json.decode(line.record)
    named = {line.arguments.get("conversation_id"), line.arguments.get("uuid")}
    if isinstance(record, dict):
        named |= {record.get("conversation_id")}
        if line.op == "create_conversation":
            named |= {record.get("uuid")}
        elif record.get("conversation_id") == conversation_id:
            messages.add(record.get("uuid", ""))
        if record.get("message_id") in messages:
            return True
    return conversation_id in named or line.arguments.get("message_uuid") in messages


def _done(path: Path, rejected: list[bytes]) -> None:
    """Remove a file that is written in, keeping beside it what the graph refused for good."""
    if rejected:
        path.with_suffix(".rejected").write_bytes(b"\n".join(rejected) + b"\n")
    path.unlink()


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = storable_value(msgspec.to_builtins(dict(arguments)))
    return plain


def _locked(file: io.BufferedRandom) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lines(file: io.BufferedRandom) -> Iterator[bytes]:
    """Whole lines: one without its end was cut short by a crash and never acknowledged."""
    for line in file:
        if line.endswith(b"\n") and line.strip():
            yield line.rstrip(b"\n")


async def _apply(store: Store, line: _Line, turns: dict[tuple[str, int], int]) -> None:
    arguments = _moved(line.arguments, turns)
    if line.op in _PLAIN:
        for name in _TIMES & arguments.keys():
            arguments[name] = msgspec.convert(arguments[name], datetime | None)
        await getattr(store, line.op)(**arguments)
        return
    record = msgspec.json.decode(line.record, type=_RECORDS[line.op])
    if line.op == "begin_turn":
        guessed = record.turn_index
        stored = await store.begin_turn(record)
        turns[record.conversation_id, guessed] = stored.turn_index
        return
    if isinstance(record, Message):
        record.turn_index = turns.get((record.conversation_id, record.turn_index), record.turn_index)
    await getattr(store, line.op)(record, **arguments)


def _moved(arguments: dict[str, Any], turns: dict[tuple[str, int], int]) -> dict[str, Any]:
    """The arguments with a guessed turn index replaced by the one the store gave."""
    key = (arguments.get("conversation_id", ""), arguments.get("turn_index", 0))
    return {**arguments, "turn_index": turns[key]} if key in turns else arguments
