"""How the sidebar was arranged: what a file may say, what fits, what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.tui.sidebar import sidebar
from ragforge_tui.tui.sidebar.heights import heights
from ragforge_tui.tui.sidebar.sidebar import Layout

PANES = ["trace", "memory", "files"]


def test_the_saved_layout_returns(tmp_path: Path) -> None:
    kept = Layout(open=False, width=60, active="files", shares={"trace": 7, "memory": 0})
    sidebar.save_layout(tmp_path / "new", kept)
    assert sidebar.load_layout(tmp_path / "new") == kept
    assert [path.name for path in (tmp_path / "new").iterdir()] == [sidebar.FILE_NAME], "nothing is left beside it"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"width": -4}', '{"shares": {"trace": 99}}', "\x00"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / sidebar.FILE_NAME).write_text(damage)
    assert sidebar.load_layout(tmp_path) == Layout()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sidebar.save_layout(tmp_path / "file", Layout())


@pytest.mark.parametrize(
    ("kept", "screen", "columns"),
    [
        (46, 120, 46),
        (46, 200, 46),
        (110, 120, 64),
        (5, 120, 24),
        (46, 80, 80),
        (70, 119, 119),
        (46, 60, 60),
    ],
)
def test_columns(kept: int, screen: int, columns: int) -> None:
    assert Layout(width=kept).columns(screen) == columns


def test_in_little_height_one_pane_is_open() -> None:
    assert Layout(active="memory").opened(PANES, 20) == ["memory"]
    assert Layout(active="gone").opened(PANES, 20) == ["trace"]
    assert Layout(active="files").opened(PANES, 50, alone=True) == ["files"]
    assert Layout(shares={"memory": 0}).opened(PANES, 35) == ["trace", "files"]


def test_a_pane_that_shrinks_to_nothing_is_folded_and_returns() -> None:
    kept = Layout()
    for _ in range(20):
        kept.grow("trace", -1)
    assert kept.share("trace") == 0
    kept.fold("trace")
    assert kept.share("trace") == sidebar.USUAL_SHARE
    kept.grow("trace", 50)
    assert kept.share("trace") == sidebar.LARGEST_SHARE


@pytest.mark.parametrize(
    ("needed", "weights", "rows", "given"),
    [
        ([3, 5, 2], [4, 4, 4], 30, [3, 5, 2]),
        ([60, 3, 2], [4, 4, 4], 30, [25, 3, 2]),
        ([60, 50, 2], [4, 4, 4], 30, [14, 14, 2]),
        ([60, 50, 2], [8, 4, 4], 32, [20, 10, 2]),
        ([60, 0, 9], [4, 4, 4], 9, [4, 0, 5]),
        ([5, 5, 5], [4, 4, 4], 0, [0, 0, 0]),
        ([], [], 9, []),
    ],
)
def test_a_pane_is_as_tall_as_what_it_holds(needed: list[int], weights: list[int], rows: int, given: list[int]) -> None:
    assert heights(needed, weights, rows) == given


@pytest.mark.parametrize(("screen", "columns"), [(80, 80), (120, 46), (160, 66), (200, 86), (220, 96), (400, 110)])
def test_unless_the_user_chose_a_width_it_grows_with_the_screen(screen: int, columns: int) -> None:
    assert Layout().columns(screen) == columns
