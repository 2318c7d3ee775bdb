"""Journals on disk: one folder per graph, and which graph answered at which address.

A journal belongs to a graph by the identity the graph keeps in its version node; an address may be taken by another
graph. Until a graph was reached from this machine its identity is unknown: its journal is named after the address, and
gets the identity when that address first answers.

    <state>/journal/<identity>/          graph.json, *.jsonl, *.rejected
    <state>/journal/at-<digest>/         the same, of an address nothing has answered at yet
    <state>/journal/addresses/*.json     the identity that answered last, by address
    <state>/journal/*.jsonl              of releases that did not tell graphs apart
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ragforge_tui.graph.journal_records import Line, whole_lines

UNKNOWN = "unknown"
"""Key of what an earlier release journalled without saying for which graph."""
_ADDRESSES = "addresses"
_NOTE = "graph.json"
SHORT_IDENTITY = 8


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
        key: The identity, the folder's name while that is unknown, or `UNKNOWN`.
        records: How many wait.
        refused: How many the graph refused for good.
        since: When the oldest of them was written.
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
        if self.key == UNKNOWN:
            return "an unknown graph (written by an earlier release)"
        short = self.identity[:SHORT_IDENTITY] or "not reached yet"
        return f"{self.address or 'graph'} ({short})"

    def amount(self) -> str:
        """Return how many records wait, as the beginning or middle of a sentence."""
        return "1 record waits" if self.records == 1 else f"{self.records} records wait"


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
        """Note that a graph answered at an address, and give it what was journalled for the address until now.

        Raises:
            OSError: It cannot be written.
        """
        if self.remembered(address) != identity:
            _write(self._address_file(address), GraphNote(identity=identity, address=address))
        unbound = self.root / _folder_name("", address)
        if unbound.is_dir() and not self._note(unbound).identity:
            _write(unbound / _NOTE, GraphNote(identity=identity, address=address))
        own = self.root / identity
        if own.is_dir() and self._note(own).address != address:
            _write(own / _NOTE, GraphNote(identity=identity, address=address))

    def make(self, identity: str, address: str) -> Path:
        """Return the folder to journal in, made when it is missing.

        Raises:
            OSError: It cannot be made.
        """
        folder = self.root / _folder_name(identity, address)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / _NOTE).exists():
            # Another process may have reached the graph since this one began.
            _write(folder / _NOTE, GraphNote(identity=identity or self.remembered(address), address=address))
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
        for folder in (self.root, *self._all()):
            note = GraphNote() if folder == self.root else self._note(folder)
            key = UNKNOWN if folder == self.root else note.identity or folder.name
            info = found.setdefault(key, JournalInfo(key=key, identity=note.identity))
            info.address = note.address or info.address
            for path in (*folder.glob("*.jsonl"), *folder.glob("*.rejected")):
                _count(info, path)
        kept = [info for info in found.values() if info.records or info.refused]
        return sorted(kept, key=lambda info: (info.since or datetime.now(UTC), info.key))

    def files(self, key: str) -> list[Path]:
        """Return the files of the journal with this key, those of refused records last."""
        known = [folder for folder in self._all() if key in (self._note(folder).identity, folder.name)]
        folders = [self.root] if key == UNKNOWN else known
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
                found.append((path.stat().st_mtime_ns, path))
            except FileNotFoundError:
                continue
    return [path for _, path in sorted(found)]


def _folder_name(identity: str, address: str) -> str:
    return identity or f"at-{_digest(address)}"


def _digest(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()[:32]


def _read(path: Path) -> GraphNote:
    try:
        return msgspec.json.decode(path.read_bytes(), type=GraphNote)
    except (OSError, msgspec.MsgspecError):
        return GraphNote()


def _write(path: Path, note: GraphNote) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _count(info: JournalInfo, path: Path) -> None:
    try:
        with path.open("rb") as file:
            begun = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            lines = 0
            for raw in whole_lines(file):
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
        return msgspec.json.decode(raw, type=Line).at
    except msgspec.MsgspecError:
        return None
