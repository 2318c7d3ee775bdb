"""Confinement of the file tools to one folder: resolving, checking and opening of paths.

Used by every file tool and by undo. A path is first resolved (symlinks, `..`), then checked, and then opened component
by component from the workspace's root without following any symlink. Swapping a folder for a symlink between check and
use thus causes an error instead of an escape.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.look_alikes import folded
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.sensitive import Guard, Reason, is_secret

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Largest file that the tools read into memory or store an earlier copy of."""


_IN_PLACE = frozenset(
    {errno.EMLINK, errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV, errno.ENOTSUP, errno.ENOSPC}
)
"""Errors of a replacement after which an existing file is written in place."""


class Place(NamedTuple):
    """Resolved path inside the workspace.

    Attributes:
        relative: Path below the root with forward slashes and without symlinks; "." for the root.
        reason: Why no permission for files in general covers it; empty for most files.
        note: For the model, where its path only looks like this one.
    """

    root: Path
    relative: str
    reason: Reason = ""
    note: str = ""

    @property
    def secret(self) -> bool:
        """Whether reading it needs its own approval."""
        return self.reason in ("own", "secret")

    @property
    def absolute(self) -> Path:
        return self.root / self.relative

    @property
    def shown(self) -> str:
        """The relative path in a form that can be displayed and stored."""
        return visible(storable(self.relative))

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.relative).parts


class Workspace:
    """Folder that paths are checked against.

    Args:
        own: Folders and files of the program.
    """

    def __init__(self, root: Path, own: Iterable[str | Path] = ()) -> None:
        self._given = Path(root).absolute()
        self.root = Path(os.path.realpath(root))
        self.guard = Guard(self.root, own)

    def locate(self, given: str) -> Place:
        """Resolve a path written by a model.

        Raises:
            ToolError: The path is invalid or points outside the workspace.
        """
        if "\0" in given:
            raise ToolError(f"{visible(given)!r} is not a path: it contains a NUL character.", kind="bad_path")
        # A leading "~" is the user's home; models never mean a folder of that name.
        expanded = os.path.expanduser(given.strip() or ".")  # noqa: PTH111 - Path would normalise before realpath
        try:
            resolved = Path(os.path.realpath(self.root / expanded))
            found = resolved if os.path.lexists(resolved) else self._look_alike(resolved)
        except (OSError, ValueError) as error:
            raise ToolError(f"{visible(given)!r} is not a usable path: {error}.", kind="bad_path") from error
        try:
            relative = found.relative_to(self.root).as_posix()
        except ValueError as error:
            raise ToolError(
                f"{visible(given)} is outside the workspace {self.root}; file tools only reach files inside it.",
                todo="Give a path relative to the workspace.",
                kind="outside_workspace",
            ) from error
        as_written = os.path.normpath(expanded).replace(os.sep, "/")
        reason = self.guard.of_file(str(found))
        if reason != "own" and is_secret(self._below_given(as_written)):
            reason = "secret"
        note = "" if found == resolved else f"The name of {visible(storable(relative))} only looks like the given one."
        return Place(self.root, relative, reason, note)

    def _look_alike(self, path: Path) -> Path:
        """Return the path that a missing one must mean: each missing part is replaced by the only name like it."""
        if not path.is_relative_to(self.root):
            return path
        found = self.root
        for part in path.relative_to(self.root).parts:
            alike = [part]
            if not os.path.lexists(found / part):
                with contextlib.suppress(OSError):
                    alike = [entry.name for entry in os.scandir(found) if folded(entry.name) == folded(part)]
            found = Path(os.path.realpath(found / (alike[0] if len(alike) == 1 else part)))
        return found

    def locate_again(self, place: Place, given: str) -> Place:
        """Resolve a path again right before it is used.

        Raises:
            ToolError: The path now points to another file than when it was checked.
        """
        again = self.locate(given)
        if again.relative != place.relative:
            raise ToolError(
                f"{visible(given)} now points to another file than when it was checked; nothing was done.",
                todo="List the folder again.",
                kind="changed",
            )
        return again

    def _below_given(self, path: str) -> str:
        """Return the part of a path below the workspace, so that a workspace in ~/.docker/x is not a secret itself."""
        for root in (self.root, self._given):
            with contextlib.suppress(ValueError):
                return PurePosixPath(path).relative_to(root.as_posix()).as_posix()
        return path


foreseen: ContextVar[Mapping[Path, bytes | None]] = ContextVar("foreseen", default={})  # noqa: B039 - never changed in place
"""Contents of files after calls that have not run: a later call of the same reply is prepared against them."""


def read_bytes(place: Place) -> bytes | None:
    """Return the content of a regular file, the foreseen one if there is one, None if it does not exist.

    Raises:
        ToolError: The file is not a regular file, is too large or cannot be read.
    """
    if place.absolute in foreseen.get():
        return foreseen.get()[place.absolute]
    with _reporting_errors(place):
        try:
            with folder_of(place, create=False) as folder:
                # Non-blocking: opening a named pipe would otherwise wait for a writer forever.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(_name(place), flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{place.shown} is not a regular file.", kind="not_regular")
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ToolError(
                f"{place.shown} is larger than {MAX_FILE_BYTES // 2**20} MiB.",
                todo="Use grep_files, or run_command with head, tail or sed.",
                kind="too_large",
            )
        return content


def write_bytes(place: Place, content: bytes, *, must_be_new: bool = False, mode: int = 0o666) -> None:
    """Write a file; missing folders are created. Mode, owner, attributes and other names of an existing file stay.

    It is replaced atomically: a reader, even after a crash, sees either the old or the new content. Where that would
    cut hard links or lose attributes, or is impossible, as for a mount, the file is written in place.

    Args:
        mode: Mode of a new file, less what the umask takes away.

    Raises:
        ToolError: The file cannot be written, or it exists although it must be new.
    """
    with _reporting_errors(place), folder_of(place, create=True) as folder:
        name = _name(place)
        earlier = _status(folder, name)
        if earlier is not None and must_be_new:
            raise FileExistsError(name)
        if earlier is not None and not stat.S_ISREG(earlier.st_mode):
            raise ToolError(f"{place.shown} is not a regular file.", kind="not_regular")
        if earlier is not None and not os.access(name, os.W_OK, dir_fd=folder):
            raise ToolError(f"{place.shown} is read-only.", kind="read_only")
        try:
            if earlier is not None and earlier.st_nlink > 1:
                raise OSError(errno.EMLINK, "another name would keep the old content")
            _write_anew(folder, name, content, earlier, mode)
        except OSError as error:
            if earlier is None or error.errno not in _IN_PLACE:
                raise
            _write_in_place(folder, name, content)


def _write_anew(folder: int, name: str, content: bytes, earlier: os.stat_result | None, mode: int) -> None:
    temporary = f".ragforge-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if earlier is not None:
                _keep_attributes(file.fileno(), folder, name, earlier)
            os.fsync(file.fileno())
        if earlier is None:
            _rename_new(folder, temporary, folder, name)
        else:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _write_in_place(folder: int, name: str, content: bytes) -> None:
    """Write into the existing file; if that fails half-way, as on a full disk, its old content is written back."""
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        before = file.read()
        try:
            _fill(file, content)
        except OSError:
            with contextlib.suppress(OSError):
                _fill(file, before)
            raise


def _fill(file: FileIO, content: bytes) -> None:
    file.seek(0)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()
    os.fsync(file.fileno())


def move_file(source: Place, target: Place) -> None:
    """Move a file to a new path, with all that belongs to it; missing folders are created.

    Raises:
        ToolError: It cannot be moved, or the path is taken.
    """
    with _reporting_errors(target), folder_of(source, create=False) as old, folder_of(target, create=True) as new:
        try:
            _rename_new(old, _name(source), new, _name(target))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            status = os.stat(_name(source), dir_fd=old, follow_symlinks=False)
            write_bytes(target, read_bytes(source) or b"", must_be_new=True, mode=stat.S_IMODE(status.st_mode))
            remove_file(source)


def runs(place: Place) -> bool:
    """Return whether a file may be run as a program."""
    with _reporting_errors(place), folder_of(place, create=False) as folder:
        status = _status(folder, _name(place))
    return status is not None and bool(status.st_mode & stat.S_IXUSR)


def remove_file(place: Place) -> None:
    """Remove a file.

    Raises:
        ToolError: The file cannot be removed.
    """
    with _reporting_errors(place), folder_of(place, create=False) as folder:
        os.unlink(_name(place), dir_fd=folder)


def _rename_new(folder: int, name: str, new_folder: int, new_name: str) -> None:
    """Rename a file; fails if the new name is taken."""
    try:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        # A file system without hard links cannot rename exclusively; the name was free a moment ago.
        os.replace(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)
    else:
        os.unlink(name, dir_fd=folder)


def _keep_attributes(descriptor: int, folder: int, name: str, earlier: os.stat_result) -> None:
    """Give a new file owner, mode and extended attributes, among them access lists, of the one that it replaces."""
    if (earlier.st_uid, earlier.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, earlier.st_uid, earlier.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(earlier.st_mode))
    if sys.platform != "linux":
        return
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        values = _attributes(source)
        for attribute in values.items() - _attributes(descriptor).items():
            os.setxattr(descriptor, *attribute)
    finally:
        os.close(source)


def _attributes(descriptor: int) -> dict[str, bytes]:
    try:
        return {attribute: os.getxattr(descriptor, attribute) for attribute in os.listxattr(descriptor)}
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return {}


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _name(place: Place) -> str:
    if not place.parts:
        raise ToolError("The workspace itself is a folder.", todo="Use glob_files to list it.", kind="is_directory")
    return place.parts[-1]


@contextlib.contextmanager
def folder_of(place: Place, *, create: bool) -> Iterator[int]:
    """Open the folder of a place component by component, without following symlinks below the root."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    current = os.open(place.root, flags)
    try:
        for part in place.parts[:-1]:
            try:
                below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=current)
            except FileNotFoundError:
                if not create:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
                below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


@contextlib.contextmanager
def _reporting_errors(place: Place) -> Iterator[None]:
    """Convert errors of the system into messages for the model."""
    try:
        yield
    except FileExistsError as error:
        raise ToolError(
            f"{place.shown} already exists.", todo="Use edit_file or write_file to change it.", kind="exists"
        ) from error
    except IsADirectoryError as error:
        raise ToolError(
            f"{place.shown} is a folder.", todo="Use glob_files to list it.", kind="is_directory"
        ) from error
    except NotADirectoryError as error:
        raise ToolError(
            f"{place.shown} cannot be reached: part of its path is not a folder, or was replaced by a symlink.",
            kind="bad_path",
        ) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(
                f"{place.shown} was replaced by a symlink, which is not followed.", kind="outside_workspace"
            ) from error
        raise ToolError(f"{place.shown}: {error.strerror or error}.", kind="os_error") from error
