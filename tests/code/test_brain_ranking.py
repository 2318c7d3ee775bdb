"""Order of code, turns, summaries and topics in one list."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragforge_tui.code import brain
from ragforge_tui.code.brain import HitCandidate, asks_for_past, subject_words
from ragforge_tui.memory.retrieval.question import Question
from ragforge_tui.memory.retrieval.ranking import fused_rankings, wordings
from ragforge_tui.shared.code_records import BrainHit, HitKind


def candidate(kind: HitKind, text: str, cosine: float | None = None, *, named: bool = False) -> HitCandidate:
    """Return a hit whose title is its text."""
    hit = BrainHit(kind=kind, title=text)
    return HitCandidate(text=text, searched=text, cosine=cosine, matched=1.0 if named else -1.0, hit=hit)


def merged(query: str, code: Sequence[HitCandidate], said: Sequence[HitCandidate]) -> list[BrainHit]:
    return brain.merged(Question(query, "", {}, ()), code, said)


@pytest.mark.parametrize(
    "question",
    [
        "where did we discuss leases",
        "what have you said about retries",
        "Which conversation was about the port?",
        "why was the cache rejected last week",
        "what was our decision on leases",
        "qu'avons-nous décidé pour le cache ?",
        "Wann haben wir über Leases gesprochen?",
        "что мы решили про порт",
    ],
)
def test_questions_about_the_past(question: str) -> None:
    assert asks_for_past(question)


@pytest.mark.parametrize(
    "question",
    [
        "where is the port validated",
        "which function decides whether a turn is kept",
        "Session.open",
        "wo wird der Port geprüft",
        "conversation title",
        "où est validé le port ?",
    ],
)
def test_questions_about_code(question: str) -> None:
    assert not asks_for_past(question)


def test_the_kind_that_is_asked_for_comes_first() -> None:
    code = [candidate("code", "lease timeout", 0.5)]
    said = [candidate("turn", "lease timeout", 0.5)]
    assert [hit.kind for hit in merged("where is the lease timeout", code, said)] == ["code", "turn"]
    assert [hit.kind for hit in merged("where did we discuss the lease timeout", code, said)] == ["turn", "code"]


def test_a_turn_with_all_words_comes_before_code_with_none() -> None:
    code = [candidate("code", "send request", 0.1)]
    said = [candidate("turn", "Marta prefers forty characters", 0.4)]
    assert merged("Marta forty characters", code, said)[0].kind == "turn"


def test_code_keeps_the_order_of_its_search() -> None:
    code = [candidate("code", name) for name in ("unrelated", "lease", "other")]
    hits = merged("lease", code, [])
    assert [hit.title for hit in hits] == ["unrelated", "lease", "other"]
    assert hits[0].score == hits[1].score > hits[2].score


def test_a_weak_first_hit_does_not_hold_back_the_exact_name() -> None:
    code = [candidate("code", "unrelated"), candidate("code", "x", named=True)]
    said = [candidate("turn", "something near", 0.3)]
    assert [hit.title for hit in merged("x", code, said)][:2] == ["unrelated", "x"]


def test_a_turn_comes_before_a_summary_and_a_topic_with_the_same_words() -> None:
    said = [candidate(kind, "leases are kept") for kind in ("topic", "summary", "turn")]
    assert [hit.kind for hit in merged("leases", [], said)] == ["turn", "summary", "topic"]


def test_words_that_only_refer_to_the_past_are_no_subject() -> None:
    assert subject_words("where did we discuss the lease timeout") == ["leas", "timeout"]
    assert subject_words("what did we decide") != []


def test_what_several_wordings_find_leads_and_each_hit_is_told_once() -> None:
    first, second, third = ["a", "b", "c"], ["d", "b"], ["a", "e"]
    fused = fused_rankings([first, second, third], str)
    assert fused[:2] == ["a", "b"]
    assert sorted(fused) == ["a", "b", "c", "d", "e"]
    assert fused_rankings([first], str) == first
    assert wordings("retry", ["Retry  ", "retry", " back  off ", "", "again", "more", "most"]) == [
        "retry",
        "Retry",
        "back off",
        "again",
    ]
