"""The file of a backup: a magic line, a header, compressed records, an end record, and the SHA-256 of all of it.

Nothing in it belongs to one backend: nodes and relationships have their properties, and nodes are named by their keys.
It is written under another name and renamed when it is on disk, and read completely before anything is done with it, so
that a part of a backup is never taken for one.
"""

from __future__ import annotations

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

from ragforge_tui.graph.backup.labels import ALL
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.files import make_private, open_regular

MAGIC = b"ragforge-chat backup\n"
FORMAT = 1
_LENGTH = struct.Struct(">I")
_DIGEST_BYTES = hashlib.sha256().digest_size
_LEVEL = 3
_READ_BYTES = 1024 * 1024
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
    partial = path.with_name(f"{path.name}.part")
    try:
        make_private(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
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
        with open_regular(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def check(path: Path) -> tuple[Header, End]:
    """Read a whole backup, and return its header and its end; blocks.

    Raises:
        GraphError: It is no backup, was made by a newer release, or is cut off or changed.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise _refused(f"{path} is not a backup of ragforge-chat.", "Choose a file that `graph backup` wrote.")
            _verify(file, path)
        header: Header | None = None
        end: End | None = None
        for found in _frames(path):
            if header is None:
                header = _HEADER.decode(found)
                if header.format > FORMAT:
                    raise _refused(f"{path} was written by a newer release.", "Upgrade ragforge-tui.")
            else:
                record = _RECORD.decode(found)
                if not _is_known(record):
                    raise _damaged(path)
                end = record if isinstance(record, End) else None
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror or error}.", "Check the name.") from error
    except (msgspec.MsgspecError, zlib.error, struct.error) as error:
        raise _damaged(path) from error
    if header is None or end is None:
        raise _damaged(path)
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


def _frames(path: Path) -> Iterator[bytes]:
    """Yield the decompressed frames of a file whose checksum is right, the header first."""
    with open_regular(path) as file:
        end = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
        file.seek(len(MAGIC))
        while file.tell() < end:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            yield zlib.decompress(file.read(length))


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
