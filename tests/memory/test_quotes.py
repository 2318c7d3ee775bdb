"""The sentences of a turn that answer a question: pure, on turns as people write them."""

from __future__ import annotations

import json

import pytest

from ragforge_tui.memory.past import best_quote
from ragforge_tui.memory.past.quotes import QUOTE_CHARS
from ragforge_tui.shared.records import ToolResult, now
from tests.support.records import call_of
from tests.support.turns import turn_of

LEASES = {"leases": 1.0}


def quoted(asked: str, answer: str, rarities: dict[str, float]) -> tuple[str, str]:
    found = best_quote(turn_of("c", 1, asked, answer), rarities)
    assert found is not None
    return found.role, found.text


def test_a_statement_is_quoted_before_the_question_it_answers() -> None:
    role, text = quoted("How long do leases last?", "Leases last 30 seconds. The clock is monotonic.", LEASES)
    assert role == "assistant"
    assert text.startswith("Leases last 30 seconds.")


def test_a_decision_is_quoted_before_a_remark() -> None:
    answer = "Leases are kept in the graph by a task of their own, which also renews them while the process runs."
    role, text = quoted(f"{answer} We decided that leases last 30 seconds.", "Noted.", LEASES)
    assert (role, text.startswith("We decided that leases last 30 seconds.")) == ("user", True)


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("The lease of a writer ends after thirty seconds.", "ok"),
        ("租约的宽限期定为三十秒，之后锁会被释放。", "好的。"),
    ],
)
def test_a_statement_found_by_meaning_is_quoted_rather_than_the_assent_to_it(said: str, reply: str) -> None:
    assert quoted(said, reply, {"expiry": 1.0}) == ("user", said)


def test_where_only_the_question_matches_the_reply_is_quoted() -> None:
    role, text = quoted("How long do leases last?", "Thirty seconds, and they are renewed every ten.", {"last": 1.0})
    assert (role, text) == ("assistant", "Thirty seconds, and they are renewed every ten.")


def test_a_sentence_that_refers_to_the_one_before_brings_it() -> None:
    answer = "The writer holds a lock on the row. It expires with the lease after half a minute."
    _, text = quoted("Tell me.", answer, {"lease": 1.0})
    assert text == answer


def test_the_next_sentence_is_added_when_it_says_more_of_what_is_asked() -> None:
    answer = (
        "A lease names the process that writes an answer, and is renewed with each checkpoint of it. "
        "Its length is thirty seconds. Something else is told here at the very end of the whole long answer."
    )
    _, text = quoted("Tell me.", answer, {"lease": 1.0, "seconds": 0.8})
    assert text == answer.partition(" Something")[0]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("```python\nLEASE_SECONDS = 30\n```\nThat is the constant you asked me to show to you here.", "30"),
        ("No such thing is set anywhere in this code.\n\n- **Leases:** 30 s\n- Locks: none", "Leases: 30 s"),
    ],
    ids=["code", "list"],
)
def test_code_and_lists_are_quoted_too(answer: str, wanted: str) -> None:
    _, text = quoted("Show it.", answer, {"leases": 1.0, "LEASE": 1.0})
    assert wanted in text


def test_a_long_sentence_is_cut_and_highlights_fit() -> None:
    found = best_quote(turn_of("c", 1, "Go on.", "leases " * 200), LEASES)
    assert found is not None
    assert len(found.text) <= QUOTE_CHARS
    assert all(found.text[start:end].casefold() == "leases" for start, end in found.highlights)


def test_no_escape_sequence_is_quoted() -> None:
    _, text = quoted("Go on.", "Leases \x1b[31mlast\x1b[0m 30 seconds.", LEASES)
    assert text == "Leases last 30 seconds."


def test_a_turn_found_by_meaning_is_quoted_by_its_reply_and_an_empty_one_not_at_all() -> None:
    assert quoted("What of it?", "The writer holds a lock for half a minute at most.", {"zebra": 1.0})[0] == "assistant"
    assert best_quote(turn_of("c", 1, ""), LEASES) is None


def test_a_replaced_answer_is_not_quoted() -> None:
    turn = turn_of("c", 1, "Go on.", "Leases last an hour.")
    turn.messages[1].state = "superseded"
    found = best_quote(turn, LEASES)
    assert found is not None and found.role == "user"


def test_what_the_user_stated_is_quoted_before_the_echo_of_it() -> None:
    role, text = quoted("The release with leases is on Friday.", "Noted: the release with leases is on Friday.", LEASES)
    assert (role, text) == ("user", "The release with leases is on Friday.")


@pytest.mark.parametrize(
    "line",
    ["tests/test_leases.py::test_leases PASSED [ 89%]", "leases ........ [ 40%]", "leases.tar 45%|####  | 3.1MB/s"],
)
def test_progress_of_a_command_is_never_quoted(line: str) -> None:
    turn = turn_of("c", 1, "Run them.", "All of it went well today.")
    call = call_of(turn.messages[1].uuid, tool_name="run_command")
    text = json.dumps({"text": f"{line}\nleases are renewed every ten seconds", "exit_status": 0})
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result=text, timestamp=now())
    turn.messages[1].tool_calls = [call]
    found = best_quote(turn, LEASES)
    assert found is not None
    assert (found.role, found.text) == ("tool", "leases are renewed every ten seconds")
    call.result.result = json.dumps({"text": line, "exit_status": 0})
    found = best_quote(turn, LEASES)
    assert found is not None and found.role == "assistant"
