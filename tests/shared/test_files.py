"""Atomic replacement of files, and locks between processes."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from ragforge_tui.shared.files import FileLock, atomic_write, locked, replacing


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
