"""Thoughts that come as text: parted from the answer, however the text is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm.base import ReasoningPart, TextPart, ThoughtEnded
from ragforge_tui.llm.written import TextReader


def split(pieces: list[str]) -> tuple[str, str]:
    """(thought, said) of an answer that comes in these pieces."""
    reader = TextReader({})
    thought, said = "", ""
    for part in [*(part for piece in pieces for part in reader.feed(piece)), *reader.rest()]:
        match part:
            case ReasoningPart(text=text):
                thought += text
            case TextPart(text=text):
                said += text
            case ThoughtEnded():
                thought, said = thought + said, ""
    return thought, said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nWell.\n</think>\n\nYes.", ("Well.", "Yes.")),
        ("\n<think>a < b </ think></think>Yes.", ("a < b </ think>", "Yes.")),
        ("<think></think>Yes.", ("", "Yes.")),
        ("<think>never closed", ("never closed", "")),
        ("<thin", ("", "<thin")),
        ("<thinking>a</thinking>Yes.", ("a", "Yes.")),
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
    reader = TextReader({})
    for piece in ("Hi", ", a", "re you?"):
        assert [part.text for part in reader.feed(piece) if isinstance(part, TextPart)] == [piece]
