"""The record of used features, and the tips that follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.features import FILE_NAME, Features
from ragforge_tui.tui.welcome.tips import SHOWN, TIPS, chosen_tips, sign_of


def test_used_features_are_remembered_across_terminals(tmp_path: Path) -> None:
    one, other = Features(tmp_path), Features(tmp_path)
    one.add("tree")
    other.add("@")
    other.count_start()
    assert one.starts == other.starts == 0
    again = Features(tmp_path)
    assert (again.used, again.starts) == ({"tree", "@"}, 1)


@pytest.mark.parametrize("damage", ["", "[]", '{"used": 3}', "\x00"])
def test_a_damaged_record_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE_NAME).write_text(damage)
    features = Features(tmp_path)
    assert (features.used, features.starts) == (frozenset(), 0)
    features.add("tree")
    assert Features(tmp_path).used == {"tree"}


def test_a_record_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    features = Features(tmp_path / "file" / "below")
    features.add("tree")
    assert features.used == {"tree"}


def test_tips_are_about_what_was_never_used() -> None:
    first = chosen_tips([], 0)
    assert [tip.feature for tip in first] == ["tree", "@", "branch", "mode"]
    assert [tip.feature for tip in chosen_tips(["@", "mode"], 0)][:2] == ["tree", "branch"]
    assert chosen_tips([tip.feature for tip in TIPS], 0) == []
    assert [tip.feature for tip in chosen_tips([tip.feature for tip in TIPS[2:]], 7)] == ["tree", "@"]


def test_every_start_has_other_tips_and_each_has_its_turn() -> None:
    starts = [chosen_tips([], number) for number in range(len(TIPS))]
    assert all(len(tips) == SHOWN for tips in starts)
    assert starts[0] != starts[1]
    assert {tip.feature for tips in starts for tip in tips} == {tip.feature for tip in TIPS}


def test_each_tip_is_about_something_that_exists() -> None:
    registry = Registry(all_commands())
    assert all(tip.sign or registry.get(tip.feature) for tip in TIPS)


def test_a_tip_shows_the_users_own_key() -> None:
    registry = Registry(all_commands())
    tips = {tip.feature: tip for tip in TIPS}
    shown = ("@", "tree", "mode", "search", "undo", "branch")
    assert sign_of(tips["branch"], registry, {"stop": "f8"}) == "F8 F8"
    assert [sign_of(tips[name], registry, {"tree": "f9"}) for name in shown] == [
        "@name",
        "F9",
        "Shift+Tab",
        "Ctrl+T",
        "/undo",
        "Esc Esc",
    ]
