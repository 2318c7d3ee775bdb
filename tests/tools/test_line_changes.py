"""Lines followed from write to write: who wrote which, and what nobody is known to have written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.tools.line_changes import MOST_LINES, Write, line_changes, writers_of
from ragforge_tui.tools.workspace import Workspace


def write(before: str | None, after: str | None, path: str = "a.py", *, restores: bool = False) -> Write:
    """A recorded write; contents are lists of lines, given as words."""
    place = Workspace(Path("/w")).locate(path)
    (change,) = line_changes(place, content(before), content(after))
    return Write(change=change, restores=restores)


def content(words: str | None) -> bytes | None:
    return None if words is None else "".join(f"{word}\n" for word in words.split()).encode()


def writers(writes: list[Write], words: str, path: str = "a.py") -> list[int | None] | None:
    now = content(words)
    assert now is not None
    return writers_of(writes, path, now)


def test_lines_keep_their_writer() -> None:
    steps = [write(None, "a b c"), write("a b c", "a B c d"), write("a B c d", "x a B d")]
    assert writers(steps, "x a B d") == [2, 0, 1, 1]
    assert writers([write("a b", "a b c")], "a b c") == [None, None, 0], "what was there before is nobody's"
    assert writers([], "a b") == [None, None]
    assert writers(steps, "d") == [1], "most of the file was removed by hand"


def test_lines_written_by_others_in_between_belong_to_no_turn() -> None:
    steps = [write(None, "a b c"), write("mine a c", "mine a c d")]
    assert writers(steps, "mine a c d") == [None, 0, 0, 1]
    assert writers(steps, "mine a own c d") == [None, 0, None, 0, 1]
    assert writers(steps[1:], "mine a c d") == [None, None, None, 0], "without the first write, its lines are nobody's"


def test_an_undo_brings_back_the_writers_of_before() -> None:
    steps = [write(None, "a b"), write("a b", "a B x"), write("a B x", "a b", restores=True)]
    assert writers(steps, "a b") == [0, 0]
    steps.append(write("a b", "a B x", restores=True))
    assert writers(steps, "a B x") == [0, 1, 1]
    undone_elsewhere = [write("q", "q r"), write("q r", "q s", restores=True)]
    assert writers(undone_elsewhere, "q s") == [None, None], "a content that nobody recorded"


def test_a_checkout_brings_back_the_writers_of_before() -> None:
    old = "a b c d e f"
    steps = [write(None, old), write(old, "A B C D e f g h i"), write("A B C D e f g h i", "A B C D E F G")]
    assert writers(steps, old) == [0] * 6
    assert writers(steps, f"{old} own") == [0] * 6 + [None]


def test_white_space_alone_changes_no_writer() -> None:
    steps = [write(None, "if(x): return(1)")]
    assert writers_of(steps, "a.py", b"if (x) :\r\n\treturn(1)") == [0, 0]
    assert writers_of(steps, "a.py", b"if (x) :\n\n    return(2)\n") == [0, None, None]


def test_a_renamed_file_takes_its_lines_along() -> None:
    steps = [write(None, "a b c", "old.py"), write("a b c", "a b c d", "new.py"), write(None, "other", "old.py")]
    assert writers(steps, "a b c d", "new.py") == [0, 0, 0, 1]
    assert writers(steps[:1], "a b c own", "new.py") == [0, 0, 0, None]


def test_changes_that_are_not_recorded() -> None:
    workspace = Workspace(Path("/w"))
    place = workspace.locate("a.py")
    assert line_changes(place, b"a\n", b"a\n") == []
    assert line_changes(place, None, b"\0\1\2") == []
    assert line_changes(place, None, b"x\n" * (MOST_LINES + 1)) == []
    assert line_changes(workspace.locate(".env"), None, b"KEY=1\n") == []
    assert writers_of([], "a.py", b"\0\1\2") is None


@given(st.data())
def test_no_line_gets_a_wrong_writer(data: st.DataObject) -> None:
    """Any mix of writes, undos, checkouts and edits by hand, with lines that are all different."""
    lines: list[tuple[str, int | None]] = []
    past = [list(lines)]
    steps: list[Write] = []
    recorded = {""}
    certain, moved = True, False
    for count in range(data.draw(st.integers(1, 12))):
        before = " ".join(word for word, _ in lines)
        kind = data.draw(st.sampled_from(["turn", "turn", "hand", "checkout", "undo"]))
        if kind in ("checkout", "undo"):
            lines = list(data.draw(st.sampled_from(past)))
            certain = certain and " ".join(word for word, _ in lines) in recorded
            moved = kind == "checkout"
        else:
            start = data.draw(st.integers(0, len(lines)))
            end = data.draw(st.integers(start, min(start + 3, len(lines))))
            writer = len(steps) if kind == "turn" else None
            fresh = [(f"line{count}.{n}", writer) for n in range(data.draw(st.integers(0, 4)))]
            lines = [*lines[:start], *fresh, *lines[end:]]
        after = " ".join(word for word, _ in lines)
        past.append(list(lines))
        if kind in ("turn", "undo") and before != after:
            steps.append(write(before, after, restores=kind == "undo"))
            recorded |= {before, after}
            moved = False
        # An edit by hand on top of a checkout may be taken for one on top of what was there before.
        certain = certain and not (moved and kind == "hand")
        found = writers(steps, after)
        assert found is not None
        wrong = [
            (word, true, told) for (word, true), told in zip(lines, found, strict=True) if told not in (true, None)
        ]
        assert not wrong
        if certain:
            assert found == [true for _, true in lines]


def test_no_text_and_no_secret_is_in_the_record() -> None:
    secret = "token = 'ghp_" + "a1B2c3D4e5F6" * 3 + "'"
    words = [write(None, f"plain-words {secret.replace(' ', '')}")]
    assert "plain" not in words[0].change.hunks
    other = secret.replace("5F6'", "9Z0'").replace(" ", "")
    assert writers(words, f"plain-words {other}") == [0, 0], "the secret is not part of the key"


@pytest.mark.parametrize(
    "hunks", ["", "{}", '{"lines": "a b", "hunks": [[7, "", 0, 1]]}', '{"lines":"","hunks":[[0,"",0,9]]}']
)
def test_a_damaged_record_is_left_out(hunks: str) -> None:
    good = write(None, "a b")
    bad = Write(change=msgspec.structs.replace(write("a b", "a b c").change, hunks=hunks))
    assert writers([good, bad], "a b c") == [0, 0, None]
