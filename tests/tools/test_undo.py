"""What is kept of earlier contents, and for how long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.snapshots import UndoStore
from tests.support.key_shapes import GITHUB_KEY

DAY = 86_400


def kept(store: UndoStore, content: bytes, *, days_ago: float) -> str:
    """Keep a content as if that long ago."""
    digest = store.keep(content)
    moment = time.time() - days_ago * DAY
    os.utime(store._path(digest), (moment, moment))
    return digest


def test_old_copies_are_dropped(tmp_path: Path) -> None:
    earlier = UndoStore(tmp_path)
    old, young = kept(earlier, b"old", days_ago=31), kept(earlier, b"young", days_ago=29)
    store = UndoStore(tmp_path)
    assert store.prune() == 1
    assert store.load(young) == b"young"
    with pytest.raises(ToolError):
        store.load(old)


def test_beyond_the_limit_the_oldest_go_but_none_of_the_last_day(tmp_path: Path) -> None:
    earlier = UndoStore(tmp_path)
    digests = [kept(earlier, bytes([n]) * 100, days_ago=days) for n, days in enumerate((5, 4, 3, 0.5, 0.1))]
    store = UndoStore(tmp_path)
    assert store.prune(size=350) == 2
    assert [store._path(digest).exists() for digest in digests] == [False, False, True, True, True]
    assert store.prune(size=0) == 1
    assert store.load(digests[3])


def test_copies_of_this_process_stay_at_any_age(tmp_path: Path) -> None:
    store = UndoStore(tmp_path)
    digest = kept(store, b"mine", days_ago=90)
    assert store.prune(size=0) == 0
    assert store.load(digest) == b"mine"


def test_saving_again_renews_the_age(tmp_path: Path) -> None:
    earlier = UndoStore(tmp_path)
    digest = kept(earlier, b"again", days_ago=90)
    earlier.keep(b"again")
    assert UndoStore(tmp_path).prune() == 0
    assert earlier.load(digest) == b"again"


def test_nothing_was_ever_kept(tmp_path: Path) -> None:
    assert UndoStore(tmp_path / "missing").prune() == 0


@pytest.mark.parametrize(("content", "secret"), [(f"KEY={GITHUB_KEY}".encode(), False), (b"by its name", True)])
def test_a_copy_with_a_secret_is_true_private_and_dropped_sooner(tmp_path: Path, content: bytes, secret: bool) -> None:
    digest = UndoStore(tmp_path).keep(content, secret=secret)
    plain = UndoStore(tmp_path).keep(b"no secret")
    store = UndoStore(tmp_path)
    assert store.load(digest) == content
    (copy,) = (tmp_path / "secrets").glob("??/*")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o077 == 0
    for path, days in ((copy, 6), (store._path(plain), 8)):
        os.utime(path, (time.time() - days * DAY,) * 2)
    assert store.prune() == 0
    os.utime(copy, (time.time() - 8 * DAY,) * 2)
    assert store.prune() == 1
    assert store.load(plain) == b"no secret"
    with pytest.raises(ToolError):
        store.load(digest)
