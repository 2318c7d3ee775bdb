"""Thoughts that come as text: parted from the answer, however the text is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm.assemble import ThoughtSplitter
from ragforge_tui.llm.base import ReasoningPart, TextPart


def split(pieces: list[str]) -> tuple[str, str]:
    """(thought, said) of an answer that comes in these pieces."""
    splitter = ThoughtSplitter()
    parts = [part for piece in pieces for part in splitter.feed(piece)]
    parts += splitter.rest()
    thought = "".join(part.text for part in parts if isinstance(part, ReasoningPart))
    return thought, "".join(part.text for part in parts if isinstance(part, TextPart))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nWell.\n</think>\n\nYes.", ("Well.", "Yes.")),
        ("\n<think>a < b </ think></think>Yes.", ("a < b </ think>", "Yes.")),
        ("<think></think>Yes.", ("", "Yes.")),
        ("<think>never closed", ("never closed", "")),
        ("<thin", ("", "<thin")),
        ("<thinking>no</thinking>", ("", "<thinking>no</thinking>")),
        ("Say <think>this</think>.", ("", "Say <think>this</think>.")),
        ("  plain", ("", "  plain")),
        ("", ("", "")),
    ],
)
def test_only_a_thought_at_the_beginning_is_one(text: str, expected: tuple[str, str]) -> None:
    assert split([text]) == expected
    thought, said = split(list(text))
    assert (thought.strip(), said) == (expected[0].strip(), expected[1])


@given(st.text(alphabet="<>/think ab\n", max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_cuts_change_nothing_that_is_seen(text: str, places: list[int]) -> None:
    cuts = sorted({0, len(text), *(place for place in places if place < len(text))})
    thought, said = split([text[a:b] for a, b in pairwise(cuts)])
    whole_thought, whole_said = split([text])
    assert (thought.strip(), said) == (whole_thought.strip(), whole_said)


def test_plain_text_is_not_held_back() -> None:
    splitter = ThoughtSplitter()
    assert [part.text for part in splitter.feed("Hi")] == ["Hi"]
    assert [part.text for part in splitter.feed("<think>")] == ["<think>"]
