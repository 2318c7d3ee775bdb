"""The index of an open conversation: what it ranks first, and that growing it is the same as building it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragforge_tui.memory.retrieval import ConversationIndex, terms
from ragforge_tui.shared.records import EXTRACTIVE, Summary, now

BEGAN = datetime(2024, 5, 6, 9, tzinfo=UTC)
WORDS = ("lantern", "harbour", "soup", "compiler", "violin", "orchard", "the", "and")


def built(texts: list[str], gap: timedelta = timedelta(minutes=2)) -> ConversationIndex:
    index = ConversationIndex()
    for turn, text in enumerate(texts, 1):
        index.put(turn, text=text, timestamp=BEGAN + turn * gap)
    return index


def best(index: ConversationIndex, query: str, **options: object) -> list[int]:
    return [one.turn_index for one in index.rank(query, **options)]  # type: ignore[arg-type]  # passed on


def test_own_words_come_first_and_inflections_count() -> None:
    index = built(["the harbours were closed", "soup for lunch", "a violin", "an orchard", "apples", "pears"])
    assert best(index, "which harbour closes?")[0] == 1


def test_a_turn_is_found_by_what_is_next_to_it() -> None:
    filler = [f"small talk number {n} about weather" for n in range(8)]
    index = built([*filler, "do you remember the violin teacher?", "Her name was Ida.", "I see.", *filler])
    assert set(best(index, "violin teacher")[:3]) >= {9, 10}


def test_facts_make_a_turn_found_by_words_it_does_not_have() -> None:
    index = built([f"talk {n}" for n in range(12)])
    index.set_facts({7: ["They chose PostgreSQL for storage"], 99: ["no such turn"]})
    assert best(index, "postgresql storage")[0] == 7
    assert index.facts(7) == ("They chose PostgreSQL for storage",)


def test_dates_are_words() -> None:
    index = built(["we met", "we met", "we met"], gap=timedelta(days=40))
    months = [(BEGAN + turn * timedelta(days=40)).strftime("%B") for turn in (1, 2, 3)]
    for turn, month in enumerate(months, 1):
        assert best(index, f"what happened in {month}?")[0] == turn


def test_of_equals_the_later_comes_first() -> None:
    assert best(built(["same words here"] * 4), "unrelated question") == [4, 3, 2, 1]


def test_words_of_the_context_weigh_less_than_the_questions_own() -> None:
    index = built(["violin", "talk", "talk", "talk", "orchard", *["talk"] * 9])
    assert best(index, "violin", context="orchard")[0] == 1
    assert best(index, "orchard", context="violin")[0] == 5
    assert best(index, "and?", context="violin")[0] == 1


def test_excluded_turns_are_not_ranked() -> None:
    index = built(["violin"] * 6)
    assert 2 not in best(index, "violin", exclude=[2, 500, -1])
    assert best(index, "violin", exclude=range(1, 7)) == []
    assert len(best(index, "violin", limit=2)) == 2


def half_about_keys() -> ConversationIndex:
    """Every second turn has what a question for the deploy key asks for, but none from 300 to 340."""
    talk = [f"small talk number {n}" if n % 2 or 300 <= n <= 340 else f"deploy key {n} is kept" for n in range(1, 601)]
    return built(talk)


def test_a_few_vectors_among_many_turns_do_not_outweigh_words() -> None:
    index = half_about_keys()
    question = np.array([1, 0], np.float32)
    for turn in range(315, 325):
        cosine = 0.5 + turn / 100_000
        index.set_embedding(turn, np.array([cosine, (1 - cosine**2) ** 0.5], np.float32))
    first = best(index, "Where is the deploy key kept?", vector=question)[0]
    assert "deploy key" in index.turn_text(first)
    # A turn that is really alike is found among those that have vectors.
    index.set_embedding(320, question)
    ranked = best(index, "What of it?", vector=question)
    assert ranked[0] == 320


def test_facts_of_a_few_turns_do_not_outweigh_words() -> None:
    index = half_about_keys()
    index.set_facts({turn: ["The user has a key" + " of the old house" * (turn % 3)] for turn in range(315, 325)})
    noted = Summary(
        uuid="s",
        conversation_id="c",
        level=1,
        conversation_summary="Talk.",
        start_turn_index=315,
        end_turn_index=324,
        turn_count=10,
        made_by="openai/writer",
        created_at=now(),
    )
    index.set_summaries([noted], {})
    first = best(index, "Where is the deploy key kept?")[0]
    assert "deploy key" in index.turn_text(first)


def test_vectors_find_what_words_do_not() -> None:
    index = built([f"talk {n}" for n in range(10)])
    near, far = np.eye(2, dtype=np.float32)
    for turn in range(1, 11):
        index.set_embedding(turn, near if turn == 4 else far)
    assert best(index, "automobile", vector=near)[0] == 4


def test_unknown_vectors_neither_help_nor_harm() -> None:
    index = built(["alpha"] * 4)
    one = np.array([1, 0], np.float32)
    index.set_embedding(2, one)
    assert index.without_vector() == [1, 3, 4]
    assert index.vector(1) is None
    assert sorted(best(index, "question", vector=one)) == [1, 2, 3, 4]


def test_sittings_part_at_an_hour_of_silence() -> None:
    index = ConversationIndex()
    for turn, minutes in enumerate((0, 10, 69, 140, 141), 1):
        index.put(turn, text="x", timestamp=BEGAN + timedelta(minutes=minutes))
    assert [index.sitting(turn) for turn in range(1, 7)] == [1, 1, 1, 2, 2, 0]
    assert index.sitting_turns(2) == [4, 5]
    index.put(3, text="x", timestamp=BEGAN + timedelta(minutes=69), ended=BEGAN + timedelta(minutes=100))
    assert index.sitting(4) == 1


def test_summaries_lift_the_turns_they_cover() -> None:
    index = built([f"talk {n}" for n in range(10)])
    summary = Summary(
        uuid="s",
        conversation_id="c",
        level=1,
        conversation_summary="They compared lighthouses.",
        start_turn_index=3,
        end_turn_index=5,
        turn_count=3,
        created_at=now(),
    )
    index.set_summaries([summary], {})
    assert set(best(index, "the lighthouses")[:3]) == {3, 4, 5}
    # The same summary with another text.
    index.set_summaries([msgspec.structs.replace(summary, conversation_summary="They compared trams.")], {})
    assert set(best(index, "the trams")[:3]) == {3, 4, 5}
    assert best(index, "the lighthouses") == best(index, "nothing of the kind")


def test_a_question_without_a_vector_does_not_stem_the_summaries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    index = built([f"talk {n}" for n in range(10)])
    index.set_summaries([summary(3, 5, EXTRACTIVE), summary(6, 9, EXTRACTIVE)], {})
    ranked = index.rank("they talked")
    stemmed: list[str] = []
    monkeypatch.setattr(terms, "terms", lambda text, language: stemmed.append(text))
    assert index.rank("they talked") == ranked
    assert stemmed == []


def summary(start: int, end: int, made_by: str) -> Summary:
    return Summary(
        uuid=f"{start}",
        conversation_id="c",
        level=1,
        conversation_summary="They talked.",
        start_turn_index=start,
        end_turn_index=end,
        turn_count=end - start + 1,
        made_by=made_by,
        created_at=now(),
    )


def test_findings_are_searched_as_a_separate_view() -> None:
    index = built([f"talk {n}" for n in range(10)])
    index.set_facts({4: ["They compared lighthouses"], 8: ["They compared lighthouses"]})
    index.set_summaries([summary(3, 5, "openai/some-model"), summary(6, 9, EXTRACTIVE)], {})
    ranked = {one.turn_index: one.score for one in index.rank("the lighthouses", weights={"facts": 1.0})}
    assert max(ranked, key=ranked.__getitem__) == 4
    # Turns nobody noted anything of, and those with extracted facts, are neither lifted nor lowered by it.
    assert ranked[3] < ranked[1] == ranked[8] == pytest.approx(0.0, abs=1e-5)
    index.set_summaries([summary(3, 5, EXTRACTIVE)], {})
    assert {one.score for one in index.rank("the lighthouses", weights={"facts": 1.0})} == {0.0}


def test_a_replaced_turn_is_found_by_its_new_words_only() -> None:
    index = built(["violin", "soup", "orchard"] * 3)
    index.put(1, text="compiler", timestamp=BEGAN)
    assert index.turn_text(1) == "compiler"
    assert best(index, "compiler")[0] == 1
    assert best(index, "violin")[0] in (4, 7)


def test_french_words_match_in_their_own_forms() -> None:
    texts = ["Nous avons parlé de la météo et du jardin, il faisait beau." for _ in range(6)]
    texts[2] = "Les décisions que nous avons prises sur les bases de données sont dans le dossier."
    assert best(built(texts), "quelle décision avions-nous prise ?")[0] == 3


def test_many_turns_and_a_far_one() -> None:
    index = built([f"talk {n}" for n in range(200)])
    one = np.array([1, 0], np.float32)
    index.set_embedding(3, one)
    index.put(5_000, text="a violin", timestamp=BEGAN + timedelta(days=90), embedding=one)
    assert best(index, "violin", vector=one)[0] == 5_000
    assert len(best(index, "talk", vector=one)) == index.turns == 201
    assert index.last == 5_000


@pytest.mark.parametrize("query", ["", "???", "the and of", "\ud800", "x" * 10_000])
def test_any_question_is_answered(query: str) -> None:
    assert len(best(built(["violin", "soup"]), query)) == 2


turns = st.lists(
    st.tuples(st.integers(1, 12), st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 4)), max_size=20
)


@given(turns, st.lists(st.sampled_from(WORDS), max_size=3))
@example([(1, [], 4), (2, [], 4), (3, [], 4)], [])
def test_an_index_grown_in_any_order_equals_one_built_at_once(
    puts: list[tuple[int, list[str], int]], asked: list[str]
) -> None:
    """Turns come in any order and again; what counts is what was put last."""
    random = np.random.default_rng(1)
    vectors = [v / np.linalg.norm(v) for v in random.standard_normal((5, 4)).astype(np.float32)]
    query, question = " ".join(asked), vectors[0]
    grown = ConversationIndex()
    last: dict[int, tuple[list[str], int]] = {}
    for turn, words, vector in puts:
        put(grown, turn, words, vectors[vector])
        grown.rank(query, question)
        last[turn] = (words, vector)
    whole = ConversationIndex()
    for turn in sorted(last):
        put(whole, turn, last[turn][0], vectors[last[turn][1]])
    left, right = grown.rank(query, question), whole.rank(query, question)
    assert {one.turn_index for one in left} == set(last)
    scores = {one.turn_index: one.score for one in right}
    for one in left:
        assert one.score == pytest.approx(scores[one.turn_index], abs=1e-3)


def put(index: ConversationIndex, turn: int, words: list[str], vector: np.ndarray) -> None:
    index.put(turn, text=" ".join(words), timestamp=BEGAN + timedelta(minutes=40 * turn), embedding=vector)
