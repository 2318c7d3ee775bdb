"""What turns did to files and what taking them back would do, worked out from digests alone."""

from __future__ import annotations

import json

import pytest

from ragforge_tui.tools.undo.changes import (
    FileChange,
    Restore,
    changes_of,
    first_contents,
    restores,
    turn_to_redo,
    turn_to_undo,
)


def change(turn: int, path: str, before: str, after: str, undone: int = 0) -> FileChange:
    return FileChange(turn_index=turn, path=path, before=before, after=after, undone=undone)


A1 = change(1, "a", "0", "1")
B2 = change(2, "b", "", "x")
A3 = change(3, "a", "1", "2")


def test_results_of_writes_and_of_undos_are_read() -> None:
    write = json.dumps({"text": "", "path": "a", "before": "0", "after": "1", "diff": "…"})
    assert changes_of(4, write) == [change(4, "a", "0", "1")]
    undo = json.dumps({"text": "", "undone": 4, "changes": [{"path": "a", "before": "1", "after": "0"}]})
    assert changes_of(5, undo) == [change(5, "a", "1", "0", 4)]
    for useless in ("", "[]", "{}", '{"path": 3}', json.dumps({"path": "a", "before": "1", "after": "1"})):
        assert changes_of(1, useless) == []


def test_the_first_content_known_is_against_the_last() -> None:
    assert first_contents([A1, B2, A3]) == {"a": ("0", "2"), "b": ("", "x")}


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [(3, [Restore(path="a", current="2", wanted="1")]), (2, ["a 1", "b "]), (1, ["a 0", "b "]), (4, [])],
)
def test_files_go_back_to_before_the_turn(turn: int, wanted: list[object]) -> None:
    found = restores([A1, B2, A3], turn, {"a": "2", "b": "x"})
    assert [one if isinstance(wanted[0], Restore) else f"{one.path} {one.wanted}" for one in found] == wanted
    assert not any(one.refused for one in found)


def test_changes_of_others_are_left_alone() -> None:
    since = restores([A1], 1, {"a": "other"})
    assert "since" in since[0].refused
    assert "since" in restores([A1], 1, {"a": None})[0].refused
    between = restores([A1, change(3, "a", "by hand", "2")], 1, {"a": "2"})
    assert "between" in between[0].refused
    only_later = restores([A1, change(3, "a", "by hand", "2")], 3, {"a": "2"})
    assert not only_later[0].refused and only_later[0].wanted == "by hand"
    assert restores([A1], 1, {"a": "0"}) == [], "it is already as it was"


def test_undo_walks_back_and_redo_walks_forward() -> None:
    done = [A1, B2, A3]
    assert (turn_to_undo(done), turn_to_redo(done)) == (3, 0)
    done.append(change(4, "a", "2", "1", 3))
    assert (turn_to_undo(done), turn_to_redo(done)) == (2, 4)
    done.append(change(5, "b", "x", "", 2))
    assert (turn_to_undo(done), turn_to_redo(done)) == (1, 5)
    done.append(change(6, "b", "", "x", 5))
    assert (turn_to_undo(done), turn_to_redo(done)) == (2, 4)
    done.append(change(7, "a", "1", "2", 4))
    assert (turn_to_undo(done), turn_to_redo(done)) == (3, 0)
    done += [change(8, "a", "2", "0", 1), change(9, "c", "", "new")]
    assert (turn_to_undo(done), turn_to_redo(done)) == (9, 0)
    assert turn_to_undo([]) == turn_to_redo([]) == 0
