"""Errors say what happened, what was kept and what to do."""

from __future__ import annotations

import errno

import pytest

from ragforge_tui.shared.errors import RagforgeError, storage_error


def test_a_sentence_has_all_three_parts() -> None:
    error = RagforgeError("It broke.", kept="The text is kept.", todo="Try again.")
    assert str(error) == "It broke. The text is kept. Try again."


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOLCK])
def test_trouble_with_the_disk_is_reported_with_the_file(number: int) -> None:
    info = storage_error(OSError(number, "reason", "/data/file"))
    assert info is not None
    assert info.kind == "storage"
    assert "/data/file" in info.what
    assert info.todo


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "reason"), ValueError("reason")])
def test_other_errors_are_left_to_others(error: Exception) -> None:
    assert storage_error(error) is None
