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
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.sensitive import Guard, Reason, is_secret

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Largest file that the tools read into memory or store an earlier copy of."""


class Place(NamedTuple):
    """Resolved path inside the workspace.

    Attributes:
        relative: Path below the root with forward slashes and without symlinks; "." for the root.
        reason: Why no permission for files in general covers it; empty for most files.
    """

    root: Path
    relative: str
    reason: Reason = ""

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
        except (OSError, ValueError) as error:
            raise ToolError(f"{visible(given)!r} is not a usable path: {error}.", kind="bad_path") from error
        try:
            relative = resolved.relative_to(self.root).as_posix()
        except ValueError as error:
            raise ToolError(
                f"{visible(given)} is outside the workspace {self.root}; file tools only reach files inside it.",
                todo="Give a path relative to the workspace.",
                kind="outside_workspace",
            ) from error
        as_written = os.path.normpath(expanded).replace(os.sep, "/")
        reason = self.guard.of_file(str(resolved))
        if reason != "own" and is_secret(self._below_given(as_written)):
            reason = "secret"
        return Place(self.root, relative, reason)

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


def write_bytes(place: Place, content: bytes, *, must_be_new: bool = False, mode: int | None = None) -> None:
    """Write a file atomically: a reader, even after a crash, sees either the old or the new content.

    Mode and owner of an existing file are preserved; missing folders are created.

    Args:
        mode: Mode of a new file, where it takes the place of another.

    Raises:
        ToolError: The file cannot be written, or it exists although it must be new.
    """
    with _reporting_errors(place), folder_of(place, create=True) as folder:
        name = _name(place)
        earlier = _status(folder, name)
        if earlier is not None and must_be_new:
            raise ToolError(
                f"{place.shown} already exists.", todo="Use edit_file or write_file to change it.", kind="exists"
            )
        if earlier is not None and not stat.S_ISREG(earlier.st_mode):
            raise ToolError(f"{place.shown} is not a regular file.", kind="not_regular")
        if earlier is not None and not os.access(name, os.W_OK, dir_fd=folder):
            raise ToolError(f"{place.shown} is read-only.", kind="read_only")
        temporary = f".ragforge-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if earlier is not None:
                    _keep_owner_and_mode(file.fileno(), earlier)
                elif mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            if must_be_new:
                _publish_new(folder, temporary, name)
            else:
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise


def file_mode(place: Place) -> int | None:
    """Return the mode of a file; None if there is none."""
    with _reporting_errors(place), folder_of(place, create=False) as folder:
        status = _status(folder, _name(place))
    return None if status is None else stat.S_IMODE(status.st_mode)


def remove_file(place: Place) -> None:
    """Remove a file.

    Raises:
        ToolError: The file cannot be removed.
    """
    with _reporting_errors(place), folder_of(place, create=False) as folder:
        os.unlink(_name(place), dir_fd=folder)


def _publish_new(folder: int, temporary: str, name: str) -> None:
    """Rename the finished file; fails if the name was taken meanwhile."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # A file system without hard links cannot rename exclusively; the name was free a moment ago.
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(temporary, dir_fd=folder)


def _keep_owner_and_mode(descriptor: int, earlier: os.stat_result) -> None:
    if (earlier.st_uid, earlier.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, earlier.st_uid, earlier.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(earlier.st_mode))


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
