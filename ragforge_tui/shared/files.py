"""Reading of files that somebody else may have put there, atomic replacement, and locks between processes.

Used for everything the program keeps on disk, except files of the workspace: `tools/workspace.py` writes those through
folder descriptors, so that a link cannot lead out of it. The locks are flocks, because they end with the process,
however it ends, and because data files and folders can be locked themselves, without lock files next to them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader, FileIO
from pathlib import Path
from typing import IO, Literal, overload

STATE_BYTES = 16 * 1024 * 1024
"""Limit of a small file of the program's state."""
MAX_EXPORT_BYTES = 1024 * 1024 * 1024
"""Limit of a file to import."""


@overload
def open_regular(path: Path, mode: Literal["rb"] = "rb", *, follow: bool = True) -> BufferedReader: ...
@overload
def open_regular(path: Path, mode: Literal["rb+"], *, follow: bool = True) -> BufferedRandom: ...
def open_regular(
    path: Path, mode: Literal["rb", "rb+"] = "rb", *, follow: bool = True
) -> BufferedReader | BufferedRandom:
    """Open a regular file; unlike `open`, this never waits, as it would for the writer of a named pipe.

    Args:
        follow: Follow a link at the end of the path.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    flags = os.O_RDONLY if mode == "rb" else os.O_RDWR
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return BufferedReader(FileIO(descriptor, "rb")) if mode == "rb" else BufferedRandom(FileIO(descriptor, "rb+"))
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int, *, cut: bool = False, follow: bool = True) -> bytes:
    """Return the content of a regular file; see `open_regular`.

    Args:
        most: Limit of its size in bytes.
        cut: Return the beginning of a larger file instead of failing.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger.
    """
    with open_regular(path, follow=follow) as file:
        content = file.read(most + 1)
    if len(content) > most and not cut:
        raise OSError(errno.EFBIG, f"larger than {most} bytes", str(path))
    return content[:most]


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, all readable by their owner alone, whatever the umask.

    Raises:
        OSError: It cannot be created, or is no folder.
    """
    for parent in reversed([parent for parent in folder.parents if not parent.exists()]):
        parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def replacing(path: Path, *, mode: int = 0o600, keep_mode: bool = False, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` when the block ends without an error.

    A reader sees the old or the new content complete, also after a crash. Missing folders are created.

    Args:
        mode: Permissions of the new file, subject to the umask.
        keep_mode: Keep the permissions of a file that is replaced.
        sync: Wait until the content is on disk before replacing; without it a power failure may lose both contents.

    Raises:
        OSError: The file cannot be written; the old one stays.
    """
    make_private(path.parent)
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if keep_mode and path.exists():
                os.fchmod(descriptor, path.stat().st_mode & 0o777)
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def atomic_write(path: Path, data: bytes, *, mode: int = 0o600, keep_mode: bool = False, sync: bool = True) -> None:
    """Replace the content of a file; see `replacing`."""
    with replacing(path, mode=mode, keep_mode=keep_mode, sync=sync) as file:
        file.write(data)


def lock_open(file: IO[bytes] | int, path: Path, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file until it is closed; return False if another process holds it and nothing waits.

    Raises:
        OSError: ENOLCK with the path, for file systems without locks, which report this in many ways.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(path)) from error
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder, or on a file that is created if it is missing; waits for other holders.

    Raises:
        OSError: It cannot be opened.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        lock_open(descriptor, path)
        yield
    finally:
        os.close(descriptor)


class FileLock:
    """Lock on a file of its own, held until `release` or the end of the process; child programs do not inherit it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Acquire the lock, or change the kind held, without waiting; return False if other processes prevent it."""
        file = self._file or os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        taken = False
        try:
            taken = lock_open(file, self._path, shared=shared, wait=False)
        finally:
            if not taken and file is not self._file:
                file.close()
        if taken:
            self._file = file
        return taken

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
