"""Files with the texts of conversations, for a graph that keeps its contents outside.

Each conversation has a folder with one file of records, one JSON object per line with the owner, the kind, the length
and the SHA-256 of its text. Files only grow: records are appended under a lock and are on disk before the graph refers
to them, so that an acknowledged text survives a kill and a power failure. A line that a crash cut off is ended by the
next writer and never read, because nothing refers to it. The graph keeps a `Reference` for each text, and what cannot
be read becomes a `LostText`, never an empty string.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import platform
import re
import shutil
import stat
import time
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from ragforge_tui.shared.files import (
    STATE_BYTES,
    FileLock,
    atomic_write,
    locked,
    make_private,
    open_regular,
    read_regular,
    replacing,
)
from ragforge_tui.shared.json_text import decode_json

log = logging.getLogger(__name__)

FILE = "texts.jsonl"
_FOLDER_FILE = "folder.json"
_IN_USE = "in-use"
_NAME = re.compile(r"[0-9A-Za-z-]{1,64}")
_BATCH_BYTES = 32 * 1024 * 1024
_MAX_LINE_BYTES = 128 * 1024 * 1024
_KNOWN_FILES = 64
_KNOWN_TEXTS = 2_000
"""Texts remembered per file, so that a write that is repeated refers to the record it has."""
_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05
JSON_FIELDS = frozenset({"arguments", "result"})
"""Fields whose text is a JSON object, and whose placeholder is one too."""

Loss = Literal["missing", "changed", "elsewhere", "unreadable"]


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """The place of a text, as the graph stores it.

    Attributes:
        folder: Id of the folder it was written to, which differs between machines.
        offset: Of its line in the file; found by its digest if the file was rewritten.
        length: Of the line, with its end.
        size: Of the text in UTF-8.
    """

    folder: str
    conversation: str
    offset: int
    length: int
    sha256: str
    size: int

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    @staticmethod
    def is_valid(encoded: Any) -> bool:
        """Return whether a property of a node is a reference; another program may have written it."""
        return isinstance(encoded, str) and Reference.decode(encoded) != _NOTHING

    @staticmethod
    def decode(encoded: str) -> Reference:
        """Return a reference; one to nothing for a value that another program wrote."""
        try:
            return decode_json(encoded, Reference)
        except msgspec.DecodeError:
            return _NOTHING


_NOTHING = Reference("", "", 0, 0, "", 0)


class Text(msgspec.Struct, frozen=True):
    """A text to store, with the uuid of its node and the name of the property that it replaces."""

    owner: str
    kind: str
    data: str


class LostText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that cannot be read, and why."""

    loss: Loss
    file: str
    size: int
    place: str = ""
    """Machine and folder that hold it, if known to be others."""

    @property
    def reason(self) -> str:
        match self.loss:
            case "missing":
                return f"the file {self.file} is missing"
            case "changed":
                return f"its record in {self.file} was changed or cut off"
            case "elsewhere":
                return f"it is in a file on {self.place}"
            case "unreadable":
                return f"the file {self.file} cannot be read"

    def placeholder(self, field: str) -> str:
        """Return the replacement that readers see: a JSON object if the property is one."""
        todo = (
            "Open the conversation there, or run `ragforge-chat graph contents --to graph` there."
            if self.loss == "elsewhere"
            else "Restore that file from a backup; `ragforge-chat doctor` lists all lost texts."
        )
        note = f"[Text not available ({self.size} bytes): {self.reason}. {todo}]"
        return msgspec.json.encode({"text": note}).decode() if field in JSON_FIELDS else note


class _Record(msgspec.Struct):
    id: str
    kind: str
    length: int
    sha256: str
    data: str


class ContentFiles:
    """The contents folder of one graph on this machine.

    Args:
        root: Folder of the graph; created with the first text.
        writes: Whether new texts are stored here. Texts that are here are read either way.

    Attributes:
        places: Machine and path of each folder that the graph knows, by the folder's id.
    """

    def __init__(self, root: Path, *, writes: bool = False, identity: str = "") -> None:
        self.root = root
        self._identity = identity
        self.writes = writes
        self.places: dict[str, str] = {}
        self._folder = ""
        self._in_use: FileLock | None = None
        self._known: OrderedDict[Path, _KnownTexts] = OrderedDict()

    def of_graph(self, identity: str) -> ContentFiles:
        """Return the contents folder of a graph next to the others on this machine."""
        self.close()
        base = self.root.parent if self._identity else self.root
        return ContentFiles(base / identity, writes=self.writes, identity=identity)

    @property
    def folder_id(self) -> str:
        """Return the id of the folder on this machine; empty if there is none yet."""
        if not self._folder:
            with suppress(OSError, msgspec.MsgspecError):
                self._folder = str(decode_json(read_regular(self.root / _FOLDER_FILE, STATE_BYTES), dict)["id"])
        return self._folder

    @property
    def place(self) -> str:
        """Return this machine and folder, as other machines show them."""
        return f"{platform.node()}: {self.root}"

    async def prepare(self) -> str:
        """Create the folder if it is missing, and return its id.

        Raises:
            OSError: It cannot be written.
        """
        return await asyncio.to_thread(self._prepare)

    def _prepare(self) -> str:
        make_private(self.root)
        if not self.folder_id:
            with locked(self.root):
                if not self.folder_id:
                    made = {"id": uuid.uuid4().hex[:12], "host": platform.node(), "graph": self.root.name}
                    atomic_write(self.root / _FOLDER_FILE, msgspec.json.encode(made))
                    for folder in (self.root, *self.root.parents[:2]):
                        _sync_folder(folder)
        return self.folder_id

    async def append(self, conversation_id: str, texts: Sequence[Text]) -> list[Reference]:
        """Store texts, on disk when this returns, and return their references in order.

        Raises:
            OSError: They could not be written.
        """
        return await asyncio.to_thread(self._append, conversation_id, texts) if texts else []

    def _append(self, conversation_id: str, texts: Sequence[Text]) -> list[Reference]:
        folder = self._prepare()
        self._hold()
        path = self._path(conversation_id)
        fresh = not path.exists()
        path.parent.mkdir(exist_ok=True, mode=0o700)
        with _appending(path) as file:
            known = self._known_texts(path, os.fstat(file.fileno()))
            end = _end_last_line(file)
            found: list[Reference] = []
            lines: list[bytes] = []
            added: dict[str, Reference] = {}
            for text in texts:
                data = text.data.encode()
                digest = hashlib.sha256(data).hexdigest()
                reference = added.get(digest) or known.get(digest, file)
                if reference is None:
                    record = _Record(id=text.owner, kind=text.kind, length=len(data), sha256=digest, data=text.data)
                    line = msgspec.json.encode(record) + b"\n"
                    reference = Reference(folder, conversation_id, end, len(line), digest, len(data))
                    end += len(line)
                    lines.append(line)
                    added[digest] = reference
                found.append(reference)
            if lines:
                _write_all(file, lines)
            known.add(added)
        if fresh:
            _sync_folder(path.parent)
            _sync_folder(self.root)
        return found

    async def read(self, references: Collection[str]) -> dict[str, str | LostText]:
        """Return the texts by reference; each is verified by its digest, and a lost one has a reason."""
        return await asyncio.to_thread(self._read, references) if references else {}

    async def fill(self, rows: Iterable[dict[str, Any]], fields: Iterable[str]) -> None:
        """Put the texts of files into rows: `row[field]`, where ``row[f"{field}_file"]`` is a reference."""
        places = [(row, field) for row in rows for field in fields if isinstance(row.get(f"{field}_file"), str)]
        texts = await self.read({row[f"{field}_file"] for row, field in places})
        for row, field in places:
            text = texts[row[f"{field}_file"]]
            row[field] = text.placeholder(field) if isinstance(text, LostText) else text

    async def lost(self, references: Collection[str]) -> dict[str, LostText]:
        """Return those of the texts that cannot be read."""
        found: dict[str, LostText] = {}
        for batch in _batches(references):
            texts = await self.read(batch)
            found |= {reference: text for reference, text in texts.items() if isinstance(text, LostText)}
        return found

    async def named(self, wanted: Collection[str], *, but: str) -> set[str]:
        """Return which of the strings occur in texts of other conversations than one."""

        def search(folder: str) -> set[str]:
            try:
                with open_regular(self.root / folder / FILE) as file:
                    return {part for _, _, record in _records(file) for part in wanted if part in record.data}
            except OSError:
                return set()

        others = [name for name in await self.folders() if name != self.folder_of(but)] if wanted else []
        return {part for name in others for part in await asyncio.to_thread(search, name)}

    async def holding(self, conversation_id: str, wanted: Collection[str]) -> set[str]:
        """Return the digests of a conversation's texts that contain one of the strings, which are lower case."""

        def search() -> set[str]:
            path = self._path(conversation_id)
            try:
                with open_regular(path) as file:
                    records = (record for _, _, record in _records(file))
                    return {record.sha256 for record in records if any(part in record.data.lower() for part in wanted)}
            except OSError:
                return set()

        return await asyncio.to_thread(search)

    async def rewrite(self, conversation_id: str, needed: Collection[str]) -> dict[str, Reference]:
        """Rewrite a conversation's file without the texts whose digest is not needed, and return the new references.

        No other process may use the folder. Old references still find their texts, but have to search for them.

        Returns:
            References by digest; empty if all of the file's texts are needed; it then stays unchanged.

        Raises:
            OSError: It cannot be written; the file is as it was.
        """
        return await asyncio.to_thread(self._rewrite, conversation_id, frozenset(needed))

    def _rewrite(self, conversation_id: str, needed: frozenset[str]) -> dict[str, Reference]:
        path = self._path(conversation_id)
        kept: dict[str, tuple[int, int]] = {}
        with open_regular(path) as file:
            for offset, length, record in _records(file):
                if record.sha256 in needed:
                    kept.setdefault(record.sha256, (offset, length))
            if sum(length for _, length in kept.values()) == os.fstat(file.fileno()).st_size:
                return {}
            found: dict[str, Reference] = {}
            with replacing(path) as new:
                for digest, (offset, length) in kept.items():
                    line = os.pread(file.fileno(), length, offset)
                    size = decode_json(line, _Record).length
                    found[digest] = Reference(self.folder_id, conversation_id, new.tell(), length, digest, size)
                    new.write(line)
        _sync_folder(path.parent)
        return found

    async def remove(self, conversation_id: str) -> None:
        """Remove the texts of a conversation.

        Raises:
            OSError: They cannot be removed, or not all of them.
        """
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.rmtree, self._path(conversation_id).parent)

    async def folders(self) -> list[str]:
        """Return the names of the conversations' folders."""

        def found() -> list[str]:
            try:
                return sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())
            except FileNotFoundError:
                return []

        return await asyncio.to_thread(found)

    async def size(self) -> int:
        """Return the bytes that the files take."""

        def measured() -> int:
            return sum(path.stat().st_size for path in self.root.glob(f"*/{FILE}"))

        return await asyncio.to_thread(measured)

    def try_alone(self) -> bool:
        """Lock the folder against all other processes; False if one reads or writes here."""
        if not self.root.is_dir():
            return True
        self._in_use = self._in_use or FileLock(self.root / _IN_USE)
        return self._in_use.try_acquire()

    def close(self) -> None:
        """Release the folder, so that another process may remove files that nothing refers to."""
        if self._in_use is not None:
            self._in_use.release()
            self._in_use = None

    def folder_of(self, conversation_id: str) -> str:
        """Return the name of a conversation's folder; ids that are no safe file names are hashed."""
        return (
            conversation_id
            if _NAME.fullmatch(conversation_id)
            else hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()
        )

    def _path(self, conversation_id: str) -> Path:
        return self.root / self.folder_of(conversation_id) / FILE

    def _hold(self) -> None:
        """Take part in the use of the folder, so that no file is removed that this process may refer to.

        Raises:
            OSError: Another process removes files at the moment.
        """
        if self._in_use is not None:
            return
        lock = FileLock(self.root / _IN_USE)
        end = time.monotonic() + _WAIT_SECONDS
        while not lock.try_acquire(shared=True):
            if time.monotonic() > end:
                raise BlockingIOError(f"{self.root} is locked by another process")
            time.sleep(_POLL_SECONDS)
        self._in_use = lock

    def _known_texts(self, path: Path, status: os.stat_result) -> _KnownTexts:
        known = self._known.pop(path, None)
        if known is None or known.file != (status.st_dev, status.st_ino):
            known = _KnownTexts((status.st_dev, status.st_ino))
        self._known[path] = known
        while len(self._known) > _KNOWN_FILES:
            self._known.popitem(last=False)
        return known

    def _read(self, references: Collection[str]) -> dict[str, str | LostText]:
        with suppress(OSError):
            if self.root.is_dir():
                self._hold()
        by_conversation: dict[str, list[tuple[str, Reference]]] = {}
        for encoded in references:
            reference = Reference.decode(encoded)
            by_conversation.setdefault(reference.conversation, []).append((encoded, reference))
        found: dict[str, str | LostText] = {}
        for conversation_id, wanted in by_conversation.items():
            self._read_file(self._path(conversation_id), wanted, found)
        return found

    def _read_file(self, path: Path, wanted: Sequence[tuple[str, Reference]], found: dict[str, str | LostText]) -> None:
        try:
            with open_regular(path) as file:
                others: dict[str, str] | None = None
                for encoded, reference in wanted:
                    text = _text_at(file, reference)
                    if text is None:
                        if others is None:
                            digests = {each.sha256 for _, each in wanted}
                            others = {r.sha256: r.data for _, _, r in _records(file) if r.sha256 in digests}
                        text = others.get(reference.sha256)
                    found[encoded] = self._lost(path, reference, "changed") if text is None else text
        except FileNotFoundError:
            found.update((encoded, self._lost(path, reference, "missing")) for encoded, reference in wanted)
        except OSError as error:
            log.warning("contents: %s cannot be read: %s", path, error)
            found.update((encoded, self._lost(path, reference, "unreadable")) for encoded, reference in wanted)

    def _lost(self, path: Path, reference: Reference, loss: Loss) -> LostText:
        if reference.folder != self.folder_id:
            place = self.places.get(reference.folder, "another machine")
            if place != self.place:
                return LostText(loss="elsewhere", file=str(path), size=reference.size, place=place)
        return LostText(loss=loss, file=str(path), size=reference.size)


class _KnownTexts:
    """References of texts that this process wrote to one file lately, by digest."""

    def __init__(self, file: tuple[int, int]) -> None:
        self.file = file
        self._references: OrderedDict[str, Reference] = OrderedDict()

    def get(self, digest: str, file: IO[bytes]) -> Reference | None:
        """Return the reference of a text, if its record is there: a new file may have the inode of a removed one."""
        reference = self._references.get(digest)
        return reference if reference and _text_at(file, reference) is not None else None

    def add(self, references: dict[str, Reference]) -> None:
        self._references.update(references)
        while len(self._references) > _KNOWN_TEXTS:
            self._references.popitem(last=False)


@contextmanager
def _appending(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to append to it, alone among all processes."""
    while True:
        with _opened(path) as file, locked(path):
            # Another process may have removed the file before the lock was taken.
            if os.fstat(file.fileno()).st_nlink:
                yield file
                return


def _opened(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _end_last_line(file: IO[bytes]) -> int:
    """End a line that a crash cut off, and return the size of the file."""
    size = file.seek(0, os.SEEK_END)
    if not size or os.pread(file.fileno(), 1, size - 1) == b"\n":
        return size
    log.warning("contents: %s ends within a record, which no text refers to", file.name)
    file.write(b"\n")
    return size + 1


def _write_all(file: IO[bytes], lines: list[bytes]) -> None:
    """Append lines and wait until they are on disk.

    Raises:
        OSError: They cannot be written; the file is as it was.
    """
    start = os.fstat(file.fileno()).st_size
    data = memoryview(b"".join(lines))
    try:
        while data:
            data = data[os.write(file.fileno(), data) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), start)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _batches(references: Iterable[str]) -> Iterator[list[str]]:
    """Yield references to texts that fit into memory together."""
    batch: list[str] = []
    size = 0
    for reference in references:
        batch.append(reference)
        size += Reference.decode(reference).size
        if size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text_at(file: IO[bytes], reference: Reference) -> str | None:
    """Return the text at the position of the reference, None if it is not there or was changed."""
    if not 0 < reference.length <= _MAX_LINE_BYTES:
        return None
    record = _record(os.pread(file.fileno(), reference.length - 1, reference.offset))
    return record.data if record is not None and record.sha256 == reference.sha256 else None


def _records(file: IO[bytes]) -> Iterator[tuple[int, int, _Record]]:
    """Yield offset, length and content of the records that are whole and unchanged, up to a line beyond the limit."""
    file.seek(0)
    offset = 0
    while 0 < len(line := file.readline(_MAX_LINE_BYTES + 1)) <= _MAX_LINE_BYTES:
        record = _record(line)
        if record is not None:
            yield offset, len(line), record
        offset += len(line)


def _record(line: bytes) -> _Record | None:
    try:
        record = decode_json(line, _Record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    data = record.data.encode()
    whole = len(data) == record.length and hashlib.sha256(data).hexdigest() == record.sha256
    return record if whole else None
