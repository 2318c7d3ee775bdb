"""Output without the lines that say the same, cut at line ends."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.truncation import cut_to, fold_runs, marks_in


@pytest.mark.parametrize(
    "lines",
    [
        [f"tests/test_a.py::test_{name} PASSED [ {n:2}%]" for n, name in enumerate("abcdefgh")],
        [f"tests/test_{n}.py ........ [ {n}%]" for n in range(8)],
        [f"  ✓ adds {n} numbers (3 ms)" for n in range(8)],
        [f"Downloading {n}% |{'#' * n}" for n in range(8)],
        ["warning: unused"] * 8,
        [f"ok {n} - works" for n in range(8)],
    ],
)
def test_runs_that_say_the_same_are_folded(lines: list[str]) -> None:
    text = "\n".join(["first", *lines, "1 failed"])
    folded = fold_runs(text)
    assert folded.split("\n") == ["first", lines[0], "[… 6 lines left out …]", lines[-1], "1 failed"]
    assert marks_in(folded), "a model that copies it is told"


@pytest.mark.parametrize(
    "lines",
    [
        [f"value_{n} = {n}" for n in range(20)],
        [f"src/a{n}.py   120   {n}   90%" for n in range(20)],
        [""] * 20,
        ["tests/test_a.py ..F.. [ 1%]", "tests/test_b.py .F... [ 2%]"] * 5,
        ["same"] * 4,
    ],
)
def test_what_may_be_data_stays(lines: list[str]) -> None:
    assert fold_runs("\n".join(lines)) == "\n".join(lines)


def test_a_cut_is_made_at_line_ends_however_little_is_saved() -> None:
    text = "".join(f"line number {number}\n" for number in range(100))
    cut = cut_to(text, len(text) - 10)
    assert len(cut) < len(text) and set(cut.splitlines()) - set(text.splitlines()) == marks_in(cut)
    assert cut_to(text, len(text)) == text
