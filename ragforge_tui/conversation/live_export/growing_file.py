"""Files that grow with a conversation: final parts are copied, new ones written, and a rename publishes the result.

Used by the export writer. A file is a sequence of regions, each with a part that will not change any more; the
offsets of those parts are remembered, so that a write costs the new text and a copy of bytes, not the conversation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import replacing

_CHUNK = 16 * 1024 * 1024
_STALE_SECONDS = 3600


class Region(msgspec.Struct, kw_only=True):
    """Region of a file to write.

    Attributes:
        fresh: Bytes to write.
        keep: Whether the final part already in the file stays, before `fresh`.
        final: How many bytes of `fresh` will not change.
    """

    fresh: bytes
    keep: bool = False
    final: int = 0


class _Span(msgspec.Struct, frozen=True):
    start: int
    end: int


class GrowingFile:
    """File written by one process at a time; changes made by anything else are detected."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spans: list[_Span] = []
        self._stamp: tuple[int, int, int] | None = None

    def known(self) -> bool:
        """Return whether the file is unchanged since the last write, so that parts of it can be reused."""
        return self._stamp is not None and self._stamp == _stamp(self.path)

    def write(self, regions: Sequence[Region]) -> None:
        """Replace the file; a reader sees the old or the new one complete, also after a crash.

        Raises:
            OSError: It could not be written; the old file stays.
        """
        with replacing(self.path, sync=False) as file:
            spans = self._write_regions(file.fileno(), regions)
        self._spans, self._stamp = spans, _stamp(self.path)

    def _write_regions(self, target: int, regions: Sequence[Region]) -> list[_Span]:
        spans: list[_Span] = []
        position = 0
        with contextlib.ExitStack() as stack:
            source = -1
            if any(region.keep for region in regions):
                source = stack.enter_context(self.path.open("rb")).fileno()
            for number, region in enumerate(regions):
                start = position
                if region.keep:
                    position += _copy(source, target, self._spans[number])
                _write(target, region.fresh)
                spans.append(_Span(start, position + region.final))
                position += len(region.fresh)
        return spans

    def remove(self) -> None:
        """Delete the file and partial copies left by a crash.

        Raises:
            OSError: It cannot be deleted.
        """
        self._stamp = None
        self.path.unlink(missing_ok=True)
        for partial in self.path.parent.glob(f".{self.path.name}.*.partial"):
            partial.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Delete partial files of processes that were killed more than an hour ago."""
        with contextlib.suppress(OSError):
            for partial in self.path.parent.glob(f".{self.path.name}.*.partial"):
                if time.time() - partial.stat().st_mtime > _STALE_SECONDS:
                    partial.unlink(missing_ok=True)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _copy(source: int, target: int, span: _Span) -> int:
    position = span.start
    while position < span.end:
        copied = _copy_some(source, target, position, min(_CHUNK, span.end - position))
        if not copied:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        position += copied
    return span.end - span.start


def _copy_some(source: int, target: int, position: int, count: int) -> int:
    if sys.platform == "linux":
        # The kernel copies, on some file systems by sharing the blocks; not every file system supports it.
        with contextlib.suppress(OSError):
            return os.copy_file_range(source, target, count, position)
    piece = os.pread(source, count, position)
    _write(target, piece)
    return len(piece)


def _write(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]
