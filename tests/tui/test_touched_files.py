"""The files of the sidebar, without a screen."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.shared.records import AccessedFile, FileAccess, ToolCall
from ragforge_tui.shared.requests.work import FileDiff
from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tui.drawing.lines import short_path
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.prompt.completion import mention
from ragforge_tui.tui.sidebar.files_pane import FileRows, TouchedFiles, telling_ends
from tests.support.fake_engine import CLOCK
from tests.tui.transcript.samples import DARK


def call(*files: tuple[str, str], success: bool = True) -> ToolCall:
    return ToolCall(
        uuid="c",
        message_id="m",
        tool_name="tool",
        arguments="{}",
        timestamp=CLOCK,
        success=success,
        files=[FileAccess(path=path, access=access) for path, access in files],  # type: ignore[arg-type]
    )


def texts(files: TouchedFiles) -> list[str]:
    return [f"{line.file.path}×{line.file.count}" if line.file else line.heading for line in files.lines()]


def test_groups_newest_first() -> None:
    files = TouchedFiles()
    files.load([AccessedFile(path="a", group="read", tool="read_file", turn_index=1, timestamp=CLOCK, count=3)])
    assert files.note(2, call(("b", "read"), ("c", "write"), ("d", "search"), ("e", "list")))
    assert texts(files) == ["Modified", "c×1", "Read", "b×1", "a×3", "1 found in searches"]
    files.found_shown = True
    assert texts(files)[-2:] == ["1 found in searches", "d×1"]


def test_files_of_calls_that_end_while_the_list_is_fetched_stay() -> None:
    files = TouchedFiles()
    files.note(1, call(("gone", "read")))
    files.fetching()
    files.note(2, call(("a", "read"), ("b", "write")))
    files.load([AccessedFile(path="a", group="read", tool="read_file", turn_index=2, timestamp=CLOCK)])
    assert texts(files) == ["Modified", "b×1", "Read", "a×1"]


@pytest.mark.parametrize("palette", [DARK, msgspec.structs.replace(DARK, plain=True)])
def test_changed_lines_are_counted_if_there_are_any(palette: Palette) -> None:
    files = TouchedFiles()
    for path in ("text.py", "empty.py"):
        files.note(2, call((path, "write")))
    diff = "--- a\n+++ b\n"
    files.load_diffs([FileDiff(path="text.py", diff=diff, added=3), FileDiff(path="empty.py", diff=diff)])
    rows = FileRows(files, empty="")
    drawn = ["".join(text for text, _ in rows.draw(line, 60, palette)) for line in files.lines() if line.file]
    text, empty = sorted(drawn, key=lambda row: "empty" in row)
    assert text.endswith("3 added, 0 removed, turn 2" if palette.plain else "+3 −0   t2")
    assert empty.split() == ["empty.py", *(["turn", "2"] if palette.plain else ["t2"])]


def test_a_file_moves_to_the_group_that_shows_most() -> None:
    files = TouchedFiles()
    for access in ("search", "read", "write", "read"):
        files.note(1, call(("a", access)))
    assert texts(files) == ["Modified", "a×4"]
    assert files.modified == ["a"]


def test_a_call_that_failed_touched_nothing() -> None:
    files = TouchedFiles()
    assert not files.note(1, call(("a", "write"), success=False))
    assert not files.note(1, call(("folder", "list")))
    assert texts(files) == []


@pytest.mark.parametrize(
    ("width", "shown"),
    [(40, "src/deep/folder/name.py"), (20, "…/folder/name.py"), (9, "…/name.py"), (5, "name…"), (0, "")],
)
def test_short_paths(width: int, shown: str) -> None:
    assert short_path("src/deep/folder/name.py", width) == shown


def test_a_cut_path_keeps_the_part_that_differs() -> None:
    paths = [f"src/humanize/locale/{name}/LC_MESSAGES/humanize.po" for name in ("de_DE", "fr_FR")] + ["src/a.py"]
    ends = telling_ends(paths)
    assert ends[paths[0]] == "de_DE/LC_MESSAGES/humanize.po" and ends["src/a.py"] == "a.py"
    assert [short_path(path, 24, ends[path]) for path in paths] == [
        "…/de_DE/…/humanize.po",
        "…/fr_FR/…/humanize.po",
        "src/a.py",
    ]
    assert short_path(paths[0], 34, ends[paths[0]]) == "…/de_DE/LC_MESSAGES/humanize.po"


@pytest.mark.parametrize(
    ("path", "named"), [("a/b.py", "@a/b.py"), ("a b.py", '@"a b.py"'), ('a "b".py', "@'a \"b\".py'")]
)
def test_mentions(path: str, named: str) -> None:
    assert mention(path) == named


def test_a_removed_file_and_one_that_is_as_before_show_it() -> None:
    files = TouchedFiles()
    gone = AccessedFile(path="gone.py", group="modified", tool="t", turn_index=1, timestamp=CLOCK, removed=True)
    files.load([gone])
    files.note(2, call(("back.py", "write"), ("changed.py", "write")))
    assert not files.restored("back.py"), "the diffs are not known yet"
    files.load_diffs([FileDiff(path="changed.py", diff=unified_diff("x\n", "y\n", "changed.py"))])
    assert sorted(texts(files)[1:3]) == ["back.py×1", "changed.py×1"]
    assert texts(files)[3:] == ["Removed", "gone.py×1"]
    assert (files.restored("back.py"), files.restored("changed.py")) == (True, False)
    files.note(3, call(("back.py", "write")))
    assert not files.restored("back.py")


def test_a_file_whose_diff_begins_with_nothing_was_created() -> None:
    files = TouchedFiles()
    files.note(1, call(("new.py", "write"), ("old.py", "write")))
    files.load_diffs(
        [
            FileDiff(path="new.py", diff=unified_diff(None, "x\n", "new.py")),
            FileDiff(path="old.py", diff=unified_diff("x\n", "y\n", "old.py")),
        ]
    )
    assert texts(files) == ["Created", "new.py×1", "Modified", "old.py×1"]
