"""Journals on disk: one folder per graph, which graph answered at which address, and the lines of a file.

A journal belongs to a graph by the identity the graph keeps in its version node; an address may be taken by another
graph. Until a graph was reached from this machine its identity is unknown: its journal is named after the address, and
gets the identity when that address first answers.

    <state>/journal/<identity>/          graph.json, *.jsonl, *.rejected
    <state>/journal/at-<digest>/         the same, of an address nothing has answered at yet
    <state>/journal/addresses/*.json     the identity that answered last, by address

A line is one operation of the store. The store's operations are idempotent, so a line may be applied twice. A turn that
began while the graph was unreachable has an index guessed by the engine; the store allocates the real one. Every other
record names its turn by the uuid of the turn's first message, so it finds that turn whenever and by whomever it is
written.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, make_private, open_regular, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import SHORT_ID, Conversation, Message, ToolCall, now
from ragforge_tui.shared.sanitize import storable_value

if TYPE_CHECKING:
    from ragforge_tui.graph.repositories import Store

_ADDRESSES = "addresses"
_NOTE = "graph.json"


class GraphNote(msgspec.Struct, frozen=True, kw_only=True):
    """A graph as a journal knows it.

    Attributes:
        identity: Empty until the graph was reached.
        address: Where it was last, without credentials.
    """

    identity: str = ""
    address: str = ""


class JournalInfo(msgspec.Struct, kw_only=True):
    """One graph's journal, for lists.

    Attributes:
        key: The identity, or the folder's name while that is unknown.
        records: Number of pending records.
        refused: Number of records that the graph rejected permanently.
        since: Time of the oldest of them.
    """

    key: str
    identity: str = ""
    address: str = ""
    records: int = 0
    refused: int = 0
    since: datetime | None = None

    @property
    def name(self) -> str:
        """Return the graph in words."""
        short = self.identity[:SHORT_ID] or "not reached yet"
        return f"{self.address or 'graph'} ({short})"

    def amount(self) -> str:
        """Return the number of pending records with their unit."""
        return "1 record" if self.records == 1 else f"{self.records} records"


class JournalFolders:
    """The folders of all journals.

    Args:
        root: ``<state>/journal``; made when first needed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def remembered(self, address: str) -> str:
        """Return the identity that answered last at an address, empty when none did."""
        return _read(self._address_file(address)).identity

    def remember(self, address: str, identity: str) -> None:
        """Record that a graph answered at an address, and assign it the records journaled for the address so far.

        Raises:
            OSError: It cannot be written.
        """
        if self.remembered(address) != identity:
            atomic_write(
                self._address_file(address), msgspec.json.encode(GraphNote(identity=identity, address=address))
            )
        unbound = self.root / _folder_name("", address)
        if unbound.is_dir() and not self._note(unbound).identity:
            _write_note(unbound / _NOTE, identity, address)
        own = self.root / identity
        if own.is_dir() and self._note(own).address != address:
            _write_note(own / _NOTE, identity, address)

    def make(self, identity: str, address: str) -> Path:
        """Return the folder to journal in, made when it is missing.

        Raises:
            OSError: It cannot be made.
        """
        folder = self.root / _folder_name(identity, address)
        make_private(folder)
        if not (folder / _NOTE).exists():
            # Another process may have reached the graph since this one started.
            atomic_write(
                folder / _NOTE,
                msgspec.json.encode(GraphNote(identity=identity or self.remembered(address), address=address)),
            )
        return folder

    def of(self, identity: str, address: str) -> list[Path]:
        """Return the folders of a graph; one without an identity is known by its address."""
        found = []
        for folder in self._all():
            note = self._note(folder)
            if note.identity == identity if identity or note.identity else note.address == address:
                found.append(folder)
        return found

    def waiting(self) -> list[JournalInfo]:
        """Return the journals that hold anything, the oldest first."""
        found: dict[str, JournalInfo] = {}
        for folder in self._all():
            note = self._note(folder)
            key = note.identity or folder.name
            info = found.setdefault(key, JournalInfo(key=key, identity=note.identity))
            info.address = note.address or info.address
            for path in (*by_age([folder], "*.jsonl"), *by_age([folder], "*.rejected")):
                _count(info, path)
        kept = [info for info in found.values() if info.records or info.refused]
        return sorted(kept, key=lambda info: (info.since or datetime.now(UTC), info.key))

    def files(self, key: str) -> list[Path]:
        """Return the files of the journal with this key, those of refused records last."""
        folders = [folder for folder in self._all() if key in (self._note(folder).identity, folder.name)]
        return by_age(folders, "*.jsonl") + by_age(folders, "*.rejected")

    def _all(self) -> Iterator[Path]:
        if self.root.is_dir():
            yield from (path for path in self.root.iterdir() if path.is_dir() and path.name != _ADDRESSES)

    def _note(self, folder: Path) -> GraphNote:
        note = _read(folder / _NOTE)
        named = "" if folder.name.startswith("at-") else folder.name
        return note if note.identity or not named else GraphNote(identity=named, address=note.address)

    def _address_file(self, address: str) -> Path:
        return self.root / _ADDRESSES / f"{_digest(address)}.json"


def by_age(folders: list[Path], pattern: str) -> list[Path]:
    """Return the files in folders, the oldest first."""
    found = []
    for folder in folders:
        for path in folder.glob(pattern):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def _folder_name(identity: str, address: str) -> str:
    return identity or f"at-{_digest(address)}"


def _digest(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()[:32]


def _read(path: Path) -> GraphNote:
    try:
        return decode_json(read_regular(path, STATE_BYTES), GraphNote)
    except (OSError, msgspec.MsgspecError):
        return GraphNote()


def _write_note(path: Path, identity: str, address: str) -> None:
    atomic_write(path, msgspec.json.encode(GraphNote(identity=identity, address=address)))


def _count(info: JournalInfo, path: Path) -> None:
    try:
        with open_regular(path) as file:
            begun = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            lines = 0
            for raw in complete_lines(file):
                if not lines:
                    begun = _written_at(raw) or begun
                lines += 1
    except FileNotFoundError:
        return
    if not lines:
        return
    if path.suffix == ".rejected":
        info.refused += lines
    else:
        info.records += lines
    info.since = min(info.since or begun, begun)


def _written_at(raw: bytes) -> datetime | None:
    try:
        return decode_json(raw, Line).at
    except msgspec.MsgspecError:
        return None


_RECORDS: dict[str, type[Any]] = {
    "create_conversation": Conversation,
    "begin_turn": Message,
    "add_message": Message,
    "finish_message": Message,
    "start_tool_call": ToolCall,
    "finish_tool_call": ToolCall,
}
"""Operations on one record; further arguments are passed on. The names are part of the format of a journal."""

_PLAIN = frozenset({"update_conversation", "store_context", "store_persona"})
"""Operations that take only named arguments."""

_TIMES = frozenset({"deleted_at", "updated_at"})


class Line(msgspec.Struct, omit_defaults=True):
    """One operation. `at` is when it was journalled."""

    op: str
    record: msgspec.Raw = msgspec.Raw(b"null")
    arguments: dict[str, Any] = {}
    at: datetime | None = None


class Named(msgspec.Struct):
    """The conversations that lines are about: those they create, and those that must exist already."""

    created: set[str]
    others: set[str]


def encode_line(op: str, record: Any, arguments: Mapping[str, Any]) -> bytes:
    """Return an operation as a line of a journal.

    Raises:
        ValueError: The store's operation is not one that can be journalled.
    """
    if op not in _RECORDS and op not in _PLAIN:
        raise ValueError(f"the journal does not know {op!r}")
    body = msgspec.json.encode(storable_value(msgspec.to_builtins(record)))
    plain = storable_value(msgspec.to_builtins(dict(arguments)))
    return msgspec.json.encode(Line(op=op, record=msgspec.Raw(body), arguments=plain, at=now())) + b"\n"


def complete_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield complete lines: an incomplete one was cut short by a crash and never acknowledged."""
    for line in file:
        if line.endswith(b"\n") and line.strip():
            yield line.rstrip(b"\n")


async def apply_line(store: Store, line: Line, touched: set[str]) -> None:
    """Do one operation.

    Args:
        touched: Conversations with new turns; extended here.

    Raises:
        GraphError: The graph is unreachable, or rejects it.
    """
    arguments = dict(line.arguments)
    if line.op in _PLAIN:
        for name in _TIMES & arguments.keys():
            arguments[name] = msgspec.convert(arguments[name], datetime | None)
        await _method(store, line.op)(**arguments)
        return
    if line.op not in _RECORDS:
        raise ValueError(f"the journal does not know {line.op!r}")
    record = decode_json(line.record, _RECORDS[line.op])
    await _method(store, line.op)(record, **arguments)
    if line.op == "begin_turn":
        touched.add(record.conversation_id)


def _method(store: Store, op: str) -> Callable[..., Awaitable[object]]:
    """Return the method of a repository that does an operation of a journal."""
    methods: dict[str, Callable[..., Awaitable[object]]] = {
        "create_conversation": store.conversations.create,
        "update_conversation": store.conversations.update,
        "begin_turn": store.messages.begin_turn,
        "add_message": store.messages.add,
        "finish_message": store.messages.finish,
        "store_persona": store.messages.store_persona,
        "start_tool_call": store.tool_calls.start,
        "finish_tool_call": store.tool_calls.finish,
        "store_context": store.contexts.store,
    }
    return methods[op]


def concerns(line: Line, conversation_id: str, messages: set[str]) -> bool:
    """Return whether a line is about a conversation; ids of its messages are added to `messages` for later lines."""
    record = decode_json(line.record)
    if isinstance(record, dict):
        if line.op != "create_conversation" and record.get("conversation_id") == conversation_id:
            messages.add(record.get("uuid", ""))
        if record.get("message_id") in messages:
            return True
    return conversation_id in _conversations(line, record) or line.arguments.get("message_uuid") in messages


def named_in(lines: Iterable[bytes]) -> Named:
    """Return the conversations that lines are about; what cannot be read is left out."""
    named = Named(created=set(), others=set())
    for raw in lines:
        try:
            line = decode_json(raw, Line)
            found = _conversations(line, decode_json(line.record))
        except msgspec.MsgspecError:
            continue
        if line.op == "create_conversation":
            named.created |= found
        else:
            named.others |= found
    named.others -= named.created
    return named


def _conversations(line: Line, record: Any) -> set[str]:
    found = {line.arguments.get("conversation_id"), line.arguments.get("uuid")}
    if isinstance(record, dict):
        found.add(record.get("uuid" if line.op == "create_conversation" else "conversation_id"))
    return {uuid for uuid in found if isinstance(uuid, str) and uuid}
