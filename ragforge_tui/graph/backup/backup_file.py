"""The file of a backup: a magic line, a header, compressed records, an end record, and the SHA-256 of all of it.

Nothing in it belongs to one backend: nodes and relationships have their properties, and nodes are named by their keys.
It is written under another name and renamed when it is on disk, and read completely before anything is done with it, so
that a part of a backup is never taken for one. It may also come from elsewhere: however it is made, reading it takes a
bounded amount of memory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from ragforge_tui.graph.backup.backup_checks import ContentCheck, InvalidBackupError, check_origin
from ragforge_tui.graph.labels import ALL
from ragforge_tui.graph.schema.migrate import VERSION
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.files import lock_open, make_private, open_regular

MAGIC = b"ragforge-chat backup\n"
FORMAT = 1
_LENGTH = struct.Struct(">I")
_DIGEST_BYTES = hashlib.sha256().digest_size
_LEVEL = 3
_READ_BYTES = 1024 * 1024
FRAME_BYTES = 1024 * 1024
"""Records are made of this size; only a row that is larger makes a larger one."""
_MOST_BYTES = 64 * 1024 * 1024
_MANY_BYTES = 2 * 1024 * 1024
"""A larger frame holds a few large texts: a million small values would take a hundred times its size in memory."""
_MOST_VALUES = 100_000
_PARTIAL = ".part"
_RELATIONSHIP = re.compile(r"[A-Z_]+")

Key = list[str]
"""The key of a node: the values of its label's key properties."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of a backup.

    Attributes:
        schema_version: Version of the graph's schema.
        graph: The graph as the screen names it: "embedded", or the URI.
        identity: Id of that graph.
        schema: Properties of its version node.
    """

    format: int
    schema_version: int
    created_at: datetime
    graph: str
    identity: str
    schema: dict[str, Any]


class Nodes(msgspec.Struct, frozen=True, tag="nodes"):
    """Properties of some nodes of a label."""

    label: str
    rows: list[dict[str, Any]]


class Edges(msgspec.Struct, frozen=True, tag="edges"):
    """Relationships of one kind between two labels: keys of both nodes, and properties."""

    kind: str
    source: str
    target: str
    rows: list[tuple[Key, Key, dict[str, Any]]]


class FileText(msgspec.Struct, frozen=True, array_like=True):
    """A text that is stored in a file: the uuid of its node, the property, the SHA-256 and the text."""

    owner: str
    kind: str
    sha256: str
    data: str


class Texts(msgspec.Struct, frozen=True, tag="texts"):
    """Texts in files that the nodes after them refer to."""

    conversation: str
    texts: list[FileText]


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end"):
    """Content of a backup: nodes by label, relationships by type, texts in files, and those that could not be read."""

    nodes: dict[str, int]
    edges: dict[str, int]
    texts: int
    lost: int


Record = Nodes | Edges | Texts | End
_HEADER = msgspec.msgpack.Decoder(Header)
_RECORD = msgspec.msgpack.Decoder(Record)


class BackupWriter:
    """Writer of a backup; blocks."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._write(MAGIC)
        self._frame(msgspec.msgpack.encode(header))

    def put(self, record: Record) -> None:
        self._frame(msgspec.msgpack.encode(record))

    def mark(self) -> tuple[int, Any]:
        """Return the current place, to which `rewind` returns."""
        return self._file.tell(), self._sum.copy()

    def rewind(self, mark: tuple[int, Any]) -> None:
        """Drop everything written since a place."""
        place, digest = mark
        self._file.seek(place)
        self._file.truncate()
        self._sum = digest.copy()

    def finish(self, end: End) -> None:
        """Write the end and the checksum."""
        self.put(end)
        self._file.write(self._sum.digest())

    def _frame(self, data: bytes) -> None:
        packed = zlib.compress(data, _LEVEL)
        self._write(_LENGTH.pack(len(packed)) + packed)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)


@contextmanager
def new_backup(path: Path, header: Header) -> Iterator[BackupWriter]:
    """Yield the writer of a new file, which has its name when the block ends without an error.

    Raises:
        GraphError: Another kind of file has the name, or it cannot be written.
    """
    if path.exists() and not is_backup(path):
        raise GraphError(
            f"{path} exists and is not a backup.",
            kept="It was not changed.",
            todo="Choose another name.",
            kind="backup",
        )
    partial = path.with_name(f"{path.name}{_PARTIAL}")
    try:
        make_private(path.parent)
        _remove_partial(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
            lock_open(file, partial, wait=False)
            os.fchmod(file.fileno(), 0o600)
            yield BackupWriter(file, header)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise GraphError(
                f"The backup {path} cannot be written: {error.strerror or error}.",
                kept="The graph was not changed.",
                todo="Make room, or choose another folder.",
                kind="backup",
            ) from error
        raise


def is_backup(path: Path) -> bool:
    """Return whether a file begins as backups do."""
    try:
        with _opened(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, GraphError):
        return False


def _opened(path: Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        GraphError: It is no file.
        OSError: It cannot be read.
    """
    try:
        return open_regular(path)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR):
            raise _refused(f"{path} is not a file.", "Choose a file that `graph backup` wrote.") from error
        raise


def _remove_partial(folder: Path) -> None:
    """Remove the parts of backups in a folder that were killed while they were written."""
    for path in folder.glob(f"*{_PARTIAL}"):
        with suppress(OSError, GraphError), _opened(path) as file:
            if file.read(len(MAGIC)) == MAGIC and lock_open(file, path, wait=False):
                path.unlink()


def check(path: Path) -> tuple[Header, End]:
    """Read a whole backup and check all that it holds, and return its header and its end; blocks.

    Raises:
        GraphError: It is no backup, was made by a newer release, is cut off or changed, or holds what this program
            does not write.
    """
    try:
        with _opened(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise _refused(f"{path} is not a backup of ragforge-chat.", "Choose a file that `graph backup` wrote.")
            _verify(file, path)
        return _checked(path)
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror or error}.", "Check the name.") from error
    except InvalidBackupError as error:
        raise _refused(f"The backup {path} cannot be restored: {error}.", "Use another backup.") from error
    except (msgspec.MsgspecError, zlib.error, struct.error, RecursionError) as error:
        raise _damaged(path) from error


def _checked(path: Path) -> tuple[Header, End]:
    frames = _frames(path)
    header = _HEADER.decode(next(frames, bytearray()))
    if header.format < 1:
        raise InvalidBackupError(f"its format is {header.format}")
    if header.format > FORMAT:
        raise _refused(f"{path} was written by a newer release.", "Upgrade ragforge-tui.")
    if header.schema_version > VERSION:
        raise GraphError(
            f"The backup {path} has schema version {header.schema_version}; this program supports {VERSION}.",
            kept="The graph was not changed.",
            todo="Upgrade ragforge-tui.",
            kind="graph_newer",
        )
    check_origin(header.schema_version, header.schema)
    content, end = ContentCheck(), None
    for record in map(_RECORD.decode, frames):
        if not _is_known(record) or end is not None:
            raise _damaged(path)
        match record:
            case Nodes(label=label, rows=rows):
                content.add_nodes(label, rows)
            case Edges(kind=kind, source=source, target=target, rows=edges):
                content.add_edges(kind, source, target, edges)
            case Texts(conversation=conversation, texts=texts):
                content.add_texts(conversation, len(texts))
            case End():
                end = record
    if end is None:
        raise _damaged(path)
    content.finish(end.nodes, end.edges, end.texts, end.lost)
    return header, end


def _is_known(record: Record) -> bool:
    """Return whether labels and relationships are names of the program's: they become part of statements."""
    match record:
        case Nodes(label=label):
            return label in ALL
        case Edges(kind=kind, source=source, target=target):
            return source in ALL and target in ALL and _RELATIONSHIP.fullmatch(kind) is not None
    return True


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a checked backup; blocks."""
    frames = _frames(path)
    next(frames)
    for frame in frames:
        yield _RECORD.decode(frame)


def _frames(path: Path) -> Iterator[bytearray]:
    """Yield the decompressed frames of a file whose checksum is right, the header first."""
    with _opened(path) as file:
        end = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
        file.seek(len(MAGIC))
        while file.tell() < end:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            data = _decompressed(file.read(length))
            if len(data) > _MANY_BYTES and _has_many_values(data):
                raise InvalidBackupError("one of its records has too many values")
            yield data
            del data  # before the next one is read


def _decompressed(packed: bytes) -> bytearray:
    """Decompress a frame piece by piece: in one call, zlib would take twice the memory of a large one.

    Raises:
        InvalidBackupError: It is cut off, or larger than any that this program writes.
    """
    data, stream = bytearray(), zlib.decompressobj()
    while not stream.eof and len(data) <= _MOST_BYTES:
        piece = stream.decompress(packed, _READ_BYTES)
        if not piece and not stream.eof:
            break
        data += piece
        packed = stream.unconsumed_tail
    if not stream.eof or len(data) > _MOST_BYTES:
        raise InvalidBackupError("one of its records is cut off or larger than 64 MiB")
    return data


_FIXED = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""Bytes after the first one, by type of a MessagePack value."""
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the length, for texts and bytes."""
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}


def _has_many_values(data: bytearray) -> bool:
    """Return whether MessagePack has more values than a record of large texts, without decoding them."""
    place = values = 0
    while place < len(data):
        values += 1
        if values > _MOST_VALUES:
            return True
        kind = data[place]
        place += 1
        if 0xA0 <= kind <= 0xBF:
            place += kind & 0x1F
        elif kind in _SIZED:
            place += _SIZED[kind] + int.from_bytes(data[place : place + _SIZED[kind]])
        elif kind in _EXTENSIONS:
            place += _EXTENSIONS[kind] + 1 + int.from_bytes(data[place : place + _EXTENSIONS[kind]])
        elif kind >= 0xDC and kind <= 0xDF:
            place += 2 if kind in (0xDC, 0xDE) else 4
        else:
            place += _FIXED.get(kind, 0)
    return False


def _verify(file: IO[bytes], path: Path) -> None:
    left = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0 and (data := file.read(min(_READ_BYTES, left))):
        digest.update(data)
        left -= len(data)
    if file.read() != digest.digest():
        raise _damaged(path)


def _damaged(path: Path) -> GraphError:
    return _refused(f"The backup {path} is cut off or was changed.", "Use another copy of it.")


def _refused(what: str, todo: str) -> GraphError:
    return GraphError(what, kept="The graph was not changed.", todo=todo, kind="backup")
