"""Property tests: few examples in `make test`, the same each time, and new ones where they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import property_tests
from tests.support.property_tests import FEW_EXAMPLES, PIN_IT, pytest_runtest_makereport


def drawn(profile: str, *, failing_from: int | None = None) -> list[int]:
    """Return the numbers that a property drew with a profile; it fails from one of them on."""
    numbers: list[int] = []

    @settings(settings.get_profile(profile))
    @given(st.integers())
    def numbers_are_small(number: int) -> None:
        numbers.append(number)
        assert failing_from is None or number < failing_from

    if failing_from is None:
        numbers_are_small()
    else:
        with pytest.raises(AssertionError):
            numbers_are_small()
    return numbers


@pytest.mark.parametrize("profile", ["short", "long"])
def test_examples_are_the_same_each_time(profile: str) -> None:
    assert drawn(profile) == drawn(profile)


def test_new_examples_are_drawn_if_asked_for_and_one_that_failed_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(tmp_path)
    assert drawn("random") != drawn("random")
    drawn("random", failing_from=1_000)
    assert drawn("random", failing_from=1_000)[0] == 1_000


class Item:
    """What the hooks look at."""

    def __init__(self, wanted: int) -> None:
        @settings(max_examples=wanted)
        @given(st.none())
        def some_property(_: None) -> None: ...

        self.obj = some_property


@pytest.mark.parametrize(
    ("profile", "wanted", "done"), [("short", 50, FEW_EXAMPLES), ("short", 6, 6), ("long", 50, 50)]
)
def test_a_property_with_an_own_number_is_held_to_the_profile(
    profile: str, wanted: int, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(property_tests, "PROFILE", profile)
    item: Any = Item(wanted)
    property_tests.pytest_collection_modifyitems([item])
    assert item.obj._hypothesis_internal_use_settings.max_examples == done


@pytest.mark.parametrize(("profile", "told"), [("random", True), ("short", False), ("long", False)])
def test_a_failed_example_that_was_drawn_at_random_is_to_be_pinned(
    profile: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(property_tests, "PROFILE", profile)
    report: Any = pytest.TestReport("t", ("t", 1, "t"), {}, "failed", None, "call")
    running: Any = pytest_runtest_makereport(Item(1), None)  # type: ignore[arg-type]
    next(running)
    with pytest.raises(StopIteration):
        running.send(report)
    assert (("Property test", PIN_IT) in report.sections) == told
