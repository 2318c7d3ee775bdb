"""Replacements of edit_file: exact ones, ones that differ in white space, and the closest lines of a miss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.files.replacing import replace

CODE = "class A:\n    def f(self):\n        if self.x:\n            return 1\n        return 2\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return 1", "return 3", "            return 3\n"),
        # All lines are indented by four or eight less, or end in spaces.
        (
            "    if self.x:\n        return 1",
            "    if self.y:\n        return 3",
            "        if self.y:\n            return 3\n",
        ),
        ("if self.x:\n    return 1", "if self.y:\n    return 3", "        if self.y:\n            return 3\n"),
        ("        if self.x:  \n            return 1 ", "        pass", "        pass\n"),
    ],
)
def test_replacements(old: str, new: str, expected: str) -> None:
    assert expected in replace(CODE, old, new, "a.py").text


def test_the_lines_around_a_shifted_replacement_stay() -> None:
    replaced = replace(CODE, "if self.x:\n    return 1", "if self.y:\n    return 3", "a.py")
    assert replaced.text == CODE.replace("self.x", "self.y").replace("return 1", "return 3")
    assert "lines 3 to 4" in replaced.note


def test_line_ends_of_windows_stay() -> None:
    text = CODE.replace("\n", "\r\n")
    replaced = replace(text, "if self.x:\n    return 1", "if self.y:\n    return 3", "a.py")
    assert replaced.text == text.replace("self.x", "self.y").replace("return 1", "return 3")


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("  a\n  b\n\ta\n\tb\n", "a\nb"),  # two places
        ("  a\n    b\n", "a\nb"),  # no one shift
        ("a b\n", "a  b"),  # within a line
        ("a\n", "\n \n"),  # nothing but white space
    ],
)
def test_uncertain_white_space_is_refused(text: str, old: str) -> None:
    with pytest.raises(ToolError, match="does not occur"):
        replace(text, old, "x", "a.py")


def test_a_miss_shows_the_closest_lines() -> None:
    with pytest.raises(ToolError, match="closest lines") as missed:
        replace(CODE, "        if self.z:\n            return 1", "x", "a.py")
    assert "     3\t        if self.x:\n     4\t            return 1" in missed.value.info.what


def test_a_miss_without_likeness_shows_nothing() -> None:
    with pytest.raises(ToolError) as missed:
        replace(CODE, "import numpy as np", "x", "a.py")
    assert "closest" not in missed.value.info.what


@given(st.text("ab \n\t", max_size=40), st.text("ab \n\t", min_size=1, max_size=8))
def test_an_exact_unique_match_is_replaced_alone(text: str, old: str) -> None:
    if text.count(old) == 1 and text.find(old) == text.rfind(old):
        assert replace(text, old, "NEW", "a") == (text.replace(old, "NEW"), "")
