"""Reading of files that need not be files, atomic replacement, and locks between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import threading
from pathlib import Path

import pytest

from ragforge_tui.shared.errors import storage_error
from ragforge_tui.shared.files import (
    FileLock,
    atomic_write,
    locked,
    make_private,
    open_regular,
    read_regular,
    replacing,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    atomic_write(path, b"one")
    assert path.read_bytes() == b"one" and mode(path) == 0o600 and mode(path.parent) == 0o700


def test_permissions_of_a_replaced_file_stay_on_request(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o664)
    atomic_write(path, b"one", keep_mode=True)
    assert mode(path) == 0o664
    atomic_write(path, b"two")
    assert mode(path) == 0o600


def test_an_error_leaves_the_old_content_and_no_new_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="stop"), replacing(path) as file:
        file.write(b"new")
        raise ValueError("stop")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "file.lock"])
def test_a_second_holder_waits(tmp_path: Path, name: str) -> None:
    """Of a folder, and of a file that is created."""
    order: list[str] = []
    entered = threading.Event()

    def second() -> None:
        entered.set()
        with locked(tmp_path / name):
            order.append("second")

    with locked(tmp_path / name):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert entered.wait(60)
        waiting.join(0.1)
        order.append("first")
    waiting.join(60)
    assert order == ["first", "second"]


def test_a_lock_is_shared_or_exclusive(tmp_path: Path) -> None:
    one, two = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.try_acquire(shared=True) and two.try_acquire(shared=True)
    assert not one.try_acquire()
    two.release()
    assert one.try_acquire() and not two.try_acquire(shared=True)
    one.release()
    one.release()
    assert two.try_acquire()
    two.release()


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """Each of these would wait for ever, or have no end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    endless = tmp_path / "endless"
    endless.symlink_to("/dev/zero")
    to_pipe = tmp_path / "to pipe"
    to_pipe.symlink_to(pipe)
    for path in (pipe, endless, to_pipe):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 10)
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path, "rb+")
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "missing", 10)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 5 bytes"):
        read_regular(path, 5)
    assert read_regular(path, 5, cut=True) == bytes(5)
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"


def test_a_link_is_followed_unless_it_must_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert read_regular(link, 10) == b"one"
    with pytest.raises(OSError, match="symbolic"):
        read_regular(link, 10, follow=False)


def test_private_folders_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "state" / "journal")
        make_private(tmp_path / "state" / "journal")
        atomic_write(tmp_path / "exports" / "one" / "file", b"")
    finally:
        os.umask(before)
    for made in ("state", "state/journal", "exports", "exports/one"):
        assert mode(tmp_path / made) == 0o700
    assert mode(tmp_path / "exports/one/file") == 0o600
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_named_with_the_file(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "users.lock"
    with pytest.raises(OSError, match=re.escape(str(path))) as alone:
        FileLock(path).try_acquire(shared=True)
    with pytest.raises(OSError, match=re.escape(str(path))) as waiting, locked(path):
        pass
    for raised in (alone, waiting):
        info = storage_error(raised.value)
        assert info is not None
        assert "no file locks" in info.what
        assert "RAGFORGE_HOME" in info.todo
