"""Languages, terms, keys of turns and what a question refers to: pure text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.graph.store.search import Matcher
from ragforge_tui.memory.language import DAYS, MONTHS, STEMMERS, STOP_WORDS, date_words, language_of
from ragforge_tui.memory.retrieval import lex_key, scoring, terms, turn_text
from ragforge_tui.memory.retrieval.keys import (
    MAX_TEXT_CHARS,
    MAX_WORD_CHARS,
    RESULT_EDGE_CHARS,
    RESULTS_MARK,
    keys_of,
    said_text,
    shown,
)
from ragforge_tui.memory.retrieval.question import context_of, user_message_in
from ragforge_tui.shared.records import FileAccess, ToolResult, Turn
from tests.support.records import call_of, message

NOON = datetime(2023, 5, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What did we decide about the storage, and who was there?", "en"),
        ("Qu'est-ce que nous avons décidé pour le stockage et qui était là ?", "fr"),
        ("Was haben wir über den Speicher entschieden, und wer war dabei?", "de"),
        ("¿Qué decidimos sobre el almacenamiento y quién estaba en la reunión?", "es"),
        ("Что мы решили о хранении и кто там был?", "ru"),
        ("def f(x): return x", ""),
        ("", ""),
        ("日本語の文章です", ""),
    ],
)
def test_language_by_its_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_every_language_has_all_it_needs() -> None:
    assert set(STOP_WORDS) == set(STEMMERS) == set(MONTHS) == set(DAYS)
    assert all(len(names) == 12 for names in MONTHS.values())
    assert all(len(names) == 7 for names in DAYS.values())


def test_terms_are_stems_without_small_words() -> None:
    assert terms.terms("The dogs were running in src/getUserName.py", "en") == [
        "dog",
        "run",
        "src",
        "getusernam",
        "user",
        "name",
        "py",
    ]
    assert terms.terms("May we meet in May?", "en") == ["may", "meet", "may"]
    assert terms.terms("x" * 100, "en") == []


def test_dates_in_words() -> None:
    assert date_words(NOON, "en") == "8 May 2023 Monday"
    assert date_words(NOON, "fr") == "8 mai 2023 lundi"
    assert date_words(NOON, "tlh") == "8 May 2023 Monday"


def test_a_turn_as_text() -> None:
    asked = message("c", content="Where is it?\nPlease look.", timestamp=NOON)
    answer = message("c", role="assistant", content="In app.py.", timestamp=NOON + timedelta(minutes=3))
    call = call_of(answer.uuid, tool_name="read_file", arguments='{"path": "app.py"}', success=True)
    call.result = ToolResult(
        uuid="r", tool_call_id=call.uuid, success=True, result='{"text": "def main(): ..."}', timestamp=NOON
    )
    call.files = [FileAccess(path="app.py", access="read"), FileAccess(path="lib/b.py", access="read")]
    recalled = call_of(answer.uuid, tool_name="search_history", arguments='{"query": "main"}', success=True)
    recalled.result = ToolResult(
        uuid="s", tool_call_id=recalled.uuid, success=True, result='{"text": "said elsewhere"}', timestamp=NOON
    )
    failed = call_of(answer.uuid, tool_name="run_command", arguments='{"command": "make"}', success=False)
    answer.tool_calls = [call, recalled, failed]
    replaced = message("c", role="assistant", content="wrong", state="superseded", timestamp=NOON)
    turn = Turn(turn_index=3, messages=[asked, replaced, answer])
    said = (
        "> Where is it?\n> Please look.\nIn app.py.\n"
        "- read `app.py`\n- searched for `main`\n- ran `make` (outcome unknown)"
    )
    assert said_text(turn) == shown(turn_text(turn)) == said
    assert turn_text(turn) == f"{said}{RESULTS_MARK}app.py, lib/b.py\ndef main(): ..."
    answer.tool_calls = []
    assert turn_text(turn) == said_text(turn)
    keys = keys_of(turn)
    assert (keys.timestamp, keys.ended) == (NOON, NOON + timedelta(minutes=3))


def test_large_results_and_data_do_not_fill_the_index() -> None:
    answer = message("c", role="assistant", content="x" * (MAX_WORD_CHARS + 1) + " word " * MAX_TEXT_CHARS)
    call = call_of(answer.uuid)
    call.result = ToolResult(
        uuid="r", tool_call_id=call.uuid, success=True, result='{"text": "' + "line " * 5_000 + '"}', timestamp=NOON
    )
    text = turn_text(Turn(turn_index=1, messages=[answer]))
    assert len(shown(text)) <= MAX_TEXT_CHARS + 1
    assert "xxx" not in text
    answer.content = f"before{RESULTS_MARK}after"
    assert "after" in shown(turn_text(Turn(turn_index=1, messages=[answer])))
    answer.content, answer.tool_calls = "", [call]
    assert len(turn_text(Turn(turn_index=1, messages=[answer]))) < 3 * RESULT_EDGE_CHARS


def test_window_key() -> None:
    key = lex_key("this", previous="before", following="after", facts=["a fact"], moment=NOON, language="fr")
    assert key == "2023-05-08 8 mai 2023 lundi\nbefore\nthis\nafter\na fact"


@pytest.mark.parametrize(
    ("question", "takes_previous"),
    [
        ("and why?", True),
        ("it failed again with the same traceback as yesterday", True),
        ("et pourquoi ?", True),
        ("Where is the configuration of the embedded server documented?", False),
        ("", True),
    ],
)
def test_questions_that_refer_back(question: str, takes_previous: bool) -> None:
    previous = "> Does the migration run?\n> On Neo4j too?\nYes."
    said = "Does the migration run?\nOn Neo4j too?"
    assert user_message_in(previous) == said
    assert context_of(question, previous) == (said if takes_previous else "")
    assert context_of(question, "") == ""


def test_factors_of_summaries() -> None:
    boosts = {1: 1.0, 2: 1.1, 3: 1.2}
    assert [scoring.level_factor(level, boosts) for level in (1, 2, 3, 7)] == [1.0, 1.1, 1.2, 1.2]
    assert scoring.level_factor(1, {2: 3.0}) == 1.0
    assert scoring.recency(2, 0.5, 7) == pytest.approx(0.876, abs=1e-3)
    assert scoring.recency(-5, 0.5, 7) == 1.0
    assert scoring.recency(10_000, 0.5, 7) == pytest.approx(0.5)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40),
    st.one_of(st.none(), st.integers(1, 45)),
)
def test_the_best_are_the_first_of_all_in_order(rows: list[tuple[int, bool]], limit: int | None) -> None:
    scores = np.array([score for score, _ in rows], np.float32)
    among = np.array([marked for _, marked in rows])
    ranked = sorted((-scores[row], -row) for row in range(len(rows)) if among[row])
    assert scoring.best(scores, among, limit) == [-row for _, row in ranked][:limit]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("harbour", "Which HARBOURS are deep?"),
        ("skies", "The sky is grey."),
        ("flies", "It can fly."),
        ("happy", "A matter of happiness, happily."),
        ("state", "See parserState in the code."),
        ("parser", "See HTMLParser in the code."),
        ("Müller", "MÜLLERS Garten"),
        ("0ß", "Sheet 0ß"),
        ("\uf900", "A \uf900."),
        ("0", "\u03450"),
    ],
)
def test_a_word_is_found_in_each_of_its_forms(word: str, text: str) -> None:
    assert terms.matched({word: 0.5, "zeppelin": 0.25}, text) == 0.5
    assert terms.matched({"zeppelin": 0.25}, text) == 0


@given(st.text(), st.text())
def test_words_are_found_as_if_every_word_were_stemmed(asked: str, text: str) -> None:
    rarities = dict.fromkeys(terms.words(asked), 1.0)
    language = language_of(text)
    present = set(terms.terms(text, language))
    slowly = sum(not present.isdisjoint(terms.stems([word], language)) for word in rarities)
    assert terms.matched(rarities, text) == slowly
    assert terms.matched_stems(rarities, terms.text_stems(text)) == slowly


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("resume", "Le résumé est prêt."),
        ("demon", "Un démon attend."),
        ("caractere", "dix mille caractères"),
        ("Prufung", "Die Prüfung läuft."),
        ("busqueda", "la búsqueda es rápida"),
        ("租约", "租约的宽限期定为三十秒。"),
        ("猶予", "更新の猶予は三十秒です。"),
        ("백업", "데이터베이스 백업은 두 시에 시작합니다."),
    ],
)
def test_accents_and_scripts_without_blanks(asked: str, text: str) -> None:
    assert terms.matched(dict.fromkeys(terms.content_words(asked, ""), 1.0), text) > 0
    assert Matcher([asked.casefold()]).count(text)
