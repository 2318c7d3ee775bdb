"""Lines that writes changed, and the write that each line of a file comes from.

The file tools record each write as a `LineChange`: digests of both contents, a key for every line after it, and hunks
with the lines it replaced. A key is a short hash of a line without its white space and secrets, so a line that was only
indented or reformatted keeps its writer, as with ``git blame -w``, and no text is stored twice.

`writers_of` follows lines through the recorded writes in their order. Where the content before a write is not the one
after the last, the file was changed in between by other means: the contents are compared, and new lines have no
writer. Of edits that other agents stored as a diff only some lines are known: they are applied to the version before.
A content that the file had before, restored by an undo or a checkout, gets the writers of that time. Each write holds
all keys, so a write that is missing, because its conversation was purged, costs its own lines only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from ragforge_tui.shared.encoding import decode
from ragforge_tui.shared.found_sessions import FileEdit
from ragforge_tui.shared.records import LineChange
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.tools.diff import line_opcodes
from ragforge_tui.tools.sensitive import is_secret
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.workspace import Place

MOST_LINES = 10_000
"""Most lines of a file whose changes are recorded; a longer one is data rather than code."""
_KEY_DIGITS = 9
_UNKNOWN = "?"
"""Key of a line that no write has shown."""
_CANDIDATES = 20
"""Newest versions that a content of unknown origin is compared with."""


class _Hunk(msgspec.Struct, frozen=True, array_like=True):
    """Replacement of lines: keys of the removed ones from `old` on by `added` lines from `new` on, counted from 0."""

    old: int
    removed: str
    new: int
    added: int


class _Hunks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text form of `LineChange.hunks`, with the keys of all lines after the write.

    Of a `partial` one they are the keys of the hunks' own lines, one hunk after the other; `new` counts in them. One
    without hunks wrote the whole file, and what was there before is unknown.
    """

    lines: str
    hunks: list[_Hunk]
    partial: bool = False


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded write to a file.

    Attributes:
        restores: It is an undo or a redo, which writes no lines of its own.
    """

    change: LineChange
    restores: bool = False


def line_changes(place: Place, before: bytes | None, after: bytes | None) -> list[LineChange]:
    """Return the change of a file, line by line; none for files with secrets, binary or very long ones.

    Args:
        before: Earlier content; None for a missing file, as in `after`.
    """
    return [] if place.secret else _whole_change(place.shown, before, after)


def _whole_change(path: str, before: bytes | None, after: bytes | None) -> list[LineChange]:
    old, new = _keys(before), _keys(after)
    if before == after or old is None or new is None:
        return []
    hunks = [_Hunk(i, " ".join(old[i:j]), k, m - k) for tag, i, j, k, m in line_opcodes(old, new) if tag != "equal"]
    stored = msgspec.json.encode(_Hunks(" ".join(new), hunks)).decode()
    return [LineChange(path=path, before=digest_of(before), after=digest_of(after), hunks=stored)]


def edited_lines(path: str, edit: FileEdit) -> list[LineChange]:
    """Return the change of an edit that another agent stored; none for a file with secrets, or a binary one.

    Args:
        path: Path of the file in `LineChange.path`.
    """
    if is_secret(path):
        return []
    if edit.after is not None and edit.before is not None:
        return _whole_change(path, edit.before.encode(), edit.after.encode())
    keys = _keys(edit.after.encode()) or [] if edit.after is not None else []
    hunks: list[_Hunk] = []
    for part in edit.lines:
        old, new = ([_key(mask_secrets(line)) for line in side] for side in (part.old, part.new))
        hunks.append(_Hunk(max(part.start - 1, 0), " ".join(old), len(keys), len(new)))
        keys += new
    if not keys and not any(hunk.removed for hunk in hunks):
        return []
    stored = msgspec.json.encode(_Hunks(" ".join(keys), hunks, partial=True)).decode()
    digest = hashlib.sha256(stored.encode()).hexdigest()
    return [LineChange(path=path, before=f"{digest}-", after=digest, hunks=stored)]


def writers_of(writes: Sequence[Write], path: str, content: bytes) -> list[int | None] | None:
    """Return for each line of a file the index of the write that it comes from, None if it comes from none of them.

    Args:
        writes: In their order; those to earlier paths of the file too.
        path: Path of the file in `LineChange.path`.

    Returns:
        None for a binary or very long file.
    """
    keys = _keys(content)
    if keys is None:
        return None
    history = _History()
    for index, write in enumerate(writes):
        history.add(index, write)
    return history.version(path, digest_of(content), keys).writers


class _Version:
    """Content of a file at some time, with the write of each line."""

    def __init__(self, keys: list[str], writers: list[int | None]) -> None:
        self.keys = keys
        self.writers = writers

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.keys)

    def common(self, other: _Version) -> int:
        """Return the number of lines that two versions share, wherever they are."""
        return (self.counts & other.counts).total()

    def distance(self, other: _Version) -> int:
        """Return the number of lines that only one of two versions has."""
        return len(self.keys) + len(other.keys) - 2 * self.common(other)


class _History:
    """Versions that a file had, under all its paths."""

    def __init__(self) -> None:
        self._by_digest: dict[str, _Version] = {}
        self._last: dict[str, _Version] = {}
        self._versions: list[_Version] = []

    def add(self, index: int, write: Write) -> None:
        """Add the versions before and after a write; one that is not readable is left out."""
        change = write.change
        try:
            stored = msgspec.json.decode(change.hunks, type=_Hunks)
            if stored.partial:
                self._apply(index, change.path, stored)
                return
            keys = stored.lines.split()
            before_keys = _before(keys, stored.hunks)
        except (msgspec.MsgspecError, ValueError):
            return
        before = self.version(change.path, change.before, before_keys)
        self._put(change.path, change.before, before)
        if write.restores:
            after = self.version(change.path, change.after, keys)
        else:
            after = _Version(keys, _written(before.writers, stored.hunks, index))
        self._put(change.path, change.after, after)

    def _apply(self, index: int, path: str, stored: _Hunks) -> None:
        """Add the version that a partly known write makes of the last one: each hunk where its lines are found."""
        last = self._last.get(path) or _Version([], [])
        keys, writers, added = list(last.keys), list(last.writers), stored.lines.split()
        shift = 0
        for hunk in stored.hunks or [_Hunk(0, " ".join(keys), 0, len(added))]:
            old, new = hunk.removed.split(), added[hunk.new : hunk.new + hunk.added]
            at = _found(keys, old, hunk.old + shift)
            if at is None:  # lines of a part of the file that is not known yet
                at = hunk.old + shift
                known = max(at, len(keys)) - len(keys)
                keys[at:at] = [*[_UNKNOWN] * known, *old]
                writers[at:at] = [None] * (known + len(old))
            origins: list[int | None] = [index] * len(new)
            for tag, i, j, k, m in line_opcodes(old, new):
                if tag == "equal":
                    origins[k:m] = writers[at + i : at + j]
            keys[at : at + len(old)] = new
            writers[at : at + len(old)] = origins
            shift += len(new) - len(old)
        self._put(path, hashlib.sha256(" ".join(keys).encode()).hexdigest(), _Version(keys, writers))

    def version(self, path: str, digest: str, keys: list[str]) -> _Version:
        """Return the last version with this digest, else one whose lines come from the most similar version."""
        known = self._by_digest.get(digest)
        if known is not None and len(known.keys) == len(keys):
            return known
        found = _Version(keys, [None] * len(keys))
        similar = self._similar(path, found)
        if similar is not None:
            for tag, i, j, k, m in line_opcodes(similar.keys, keys):
                if tag == "equal":
                    found.writers[k:m] = similar.writers[i:j]
        return found

    def _similar(self, path: str, to: _Version) -> _Version | None:
        """Return the last version of this path, unless another one is much closer, as after a checkout."""
        candidates = self._versions[-_CANDIDATES:]
        if not candidates:
            return None
        last = self._last.get(path, candidates[-1])
        shared = to.common(last)
        better = [version for version in reversed(candidates) if to.common(version) > shared]
        closest = min(better, key=to.distance, default=last)
        return closest if 2 * to.distance(closest) < to.distance(last) else last

    def _put(self, path: str, digest: str, version: _Version) -> None:
        self._by_digest[digest] = version
        self._last[path] = version
        if not self._versions or self._versions[-1] is not version:
            self._versions.append(version)


def _found(keys: list[str], old: list[str], near: int) -> int | None:
    """Return the position of lines nearest to the given one; None without any."""
    starts = [at for at in range(len(keys) - len(old) + 1) if keys[at] == old[0]] if old else []
    places = [at for at in starts if keys[at : at + len(old)] == old]
    return min(places, key=lambda at: abs(at - near), default=None)


def _keys(content: bytes | None) -> list[str] | None:
    """Return the keys of the lines of a content; None for a binary or very long one."""
    if content is None:
        return []
    if content.count(b"\n") > MOST_LINES or (decoded := decode(content)) is None:
        return None
    text = decoded[0]
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if mask_secrets(text) != text:
        lines = [mask_secrets(line) for line in lines]
    return [_key(line) for line in lines]


def _key(line: str) -> str:
    return hashlib.sha256("".join(line.split()).encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGITS]


def _before(keys: list[str], hunks: list[_Hunk]) -> list[str]:
    """Return the keys of the lines before a write.

    Raises:
        ValueError: The hunks do not fit the lines.
    """
    before: list[str] = []
    done = 0
    for hunk in hunks:
        before += keys[done : hunk.new]
        if len(before) != hunk.old or hunk.added < 0:
            raise ValueError("a hunk is not where it says")
        before += hunk.removed.split()
        done = hunk.new + hunk.added
    if done > len(keys):
        raise ValueError("a hunk ends after the file")
    return before + keys[done:]


def _written(before: list[int | None], hunks: list[_Hunk], index: int) -> list[int | None]:
    """Return the writes of the lines after a write."""
    after: list[int | None] = []
    done = 0
    for hunk in hunks:
        after += [*before[done : hunk.old], *[index] * hunk.added]
        done = hunk.old + len(hunk.removed.split())
    return after + before[done:]
