"""Packing: the budget is never exceeded, nothing is said twice, the best comes first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.retrieval import Candidate, render_turns
from ragforge_tui.memory.retrieval.packing import CUT_MARK, drop_to_fit, pack

BEGAN = datetime(2024, 5, 6, 9, tzinfo=UTC)


def candidate(turn: int, text: str, *, score: float = 0.0, conversation: str = "", sitting: int = 0) -> Candidate:
    return Candidate(
        conversation_id=conversation or "own",
        title=f"title of {conversation}",
        turn_index=turn,
        date=BEGAN + timedelta(days=sitting),
        text=text,
        score=score,
        own=not conversation,
    )


texts = st.text(
    alphabet=st.one_of(st.sampled_from("abc \n.,[]#>"), st.characters(codec="utf-8")), max_size=400
) | st.text(alphabet="ab 字é🙂", min_size=300, max_size=3_000)
candidates = st.lists(
    st.builds(
        candidate,
        st.integers(1, 30),
        texts,
        score=st.floats(-3, 3),
        conversation=st.sampled_from(("", "", "b", "c")),
        sitting=st.integers(0, 3),
    ),
    max_size=15,
    unique_by=lambda c: (c.conversation_id, c.turn_index),
)


@given(candidates, st.integers(0, 700))
def test_never_more_tokens_than_allowed_and_nothing_twice(ranked: list[Candidate], budget: int) -> None:
    turns, text, tokens = drop_to_fit(pack(ranked, budget), budget)
    assert count_tokens(text) == tokens <= budget
    assert text == render_turns(turns)
    keys = [(turn.conversation_id, turn.turn_index) for turn in turns]
    assert len(keys) == len(set(keys))
    said = [" ".join(turn.text.split()) for turn in turns if not turn.cut]
    assert len(said) == len(set(said))


@given(candidates, st.integers(100, 700))
def test_the_best_comes_first(ranked: list[Candidate], budget: int) -> None:
    order = [(one.conversation_id, one.turn_index) for one in ranked]
    packed = [order.index((turn.conversation_id, turn.turn_index)) for turn in pack(ranked, budget)]
    assert packed == sorted(packed)


@given(candidates, st.integers(100, 700), st.integers(0, 300))
def test_others_keep_to_their_share(ranked: list[Candidate], budget: int, share: int) -> None:
    turns = pack(ranked, budget, others_tokens=share)
    assert sum(count_tokens(turn.text) for turn in turns if not turn.own) <= share


def test_a_heading_for_each_conversation_and_day() -> None:
    ranked = [
        candidate(5, "five", sitting=1),
        candidate(2, "two"),
        candidate(1, "one"),
        candidate(9, "nine", conversation="b", sitting=9),
    ]
    assert render_turns(pack(ranked, 500)) == (
        "# 7 May 2024\n[t5] five\n\n"
        "# 6 May 2024\n[t2] two\n\n[t1] one\n\n"
        "# 15 May 2024, in conversation b “title of b”\n[t9] nine"
    )


def test_long_items_are_cut_to_head_and_tail() -> None:
    text = " ".join(f"word{n}" for n in range(2_000))
    [turn] = pack([candidate(1, text)], 400)
    head, tail = turn.text.split(CUT_MARK)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert turn.cut == len(text) - len(head) - len(tail)
    assert 120 <= count_tokens(turn.text) <= 160
    assert pack([candidate(1, text)], 50) == []


def test_a_long_turn_leaves_room_for_others() -> None:
    long = " ".join(f"word{n}" for n in range(2_000))
    turns = pack([candidate(1, long, score=2), candidate(2, "short", score=1)], 400)
    assert [turn.turn_index for turn in turns] == [1, 2]


def test_duplicates_are_left_out() -> None:
    ranked = [candidate(1, "same  words"), candidate(2, "same words"), candidate(3, "alike"), candidate(4, "")]
    ranked[0].vector = ranked[2].vector = np.array([0.6, 0.8], np.float32)
    assert [turn.turn_index for turn in pack(ranked, 500)] == [1]
