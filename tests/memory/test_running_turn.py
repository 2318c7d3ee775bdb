"""Shortening of the running turn: what is cut first, what stays, what each mark says."""

from __future__ import annotations

import json

import pytest

from ragforge_tui.memory.context.history_window import tokens_of
from ragforge_tui.memory.context.running_turn import RunningTurn
from ragforge_tui.memory.history import ChatMessage

LINE = "the value of the setting is read here and returned to the caller\n"


def step(name: str, result: str, *, text: str = "", path: str = "a.py") -> list[ChatMessage]:
    """Return a reply with one call and its result."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return [
        {
            "role": "assistant",
            "content": text,
            "tool_calls": [{"id": f"id-{name}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"id-{name}", "content": result},
    ]


def lines(count: int) -> str:
    return "".join(f"{n} {LINE}" for n in range(count))


def results(messages: list[ChatMessage]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_turn_that_fits_is_sent_as_it_is() -> None:
    turn = RunningTurn(3, "Look")
    turn.add(step("one", lines(10)))
    assert turn.messages(10_000) == [{"role": "user", "content": "Look"}, *step("one", lines(10))]
    assert turn.messages(10_000) == turn.messages(1_000_000)


def test_the_largest_and_oldest_results_are_cut_first() -> None:
    turn = RunningTurn(3, "Look")
    for name, count in (("large", 900), ("small", 40), ("large2", 900), ("new", 40)):
        turn.add(step(name, lines(count)))
    sent = turn.messages(20_000)
    assert "left out, open_turn(3, call 1) …]" in results(sent)[0]
    assert "left out" in results(sent)[0]
    assert results(sent)[1] == lines(40)
    assert results(sent)[3] == lines(40)
    assert tokens_of(sent) <= 20_000


def test_the_newest_results_are_cut_last() -> None:
    turn = RunningTurn(3, "Look")
    turn.add(step("old", lines(300)))
    turn.add(step("new", lines(300)))
    old, new = results(turn.messages(7_000))
    assert "left out" in old
    assert new == lines(300)


def test_old_steps_become_notes_that_keep_what_the_model_wrote() -> None:
    turn = RunningTurn(3, "Look")
    for n in range(60):
        text = f"Decision {n}: keep it" if n == 50 else ""
        turn.add(step(f"s{n}", lines(40), text=text, path=f"src/file{n}.py"))
    sent = turn.messages(2_500)
    assert tokens_of(sent) <= 2_500
    first = sent[0]["content"]
    assert first.startswith("Look\n")
    assert "open_turn(3, call N)" in first
    assert "Decision 50: keep it" in first
    assert "call 51: read_file src/file50.py → 0 the value" in first
    assert "oldest lines were left out too" in first
    assert sent[-1]["tool_call_id"] == "id-s59"


@pytest.mark.parametrize("limit", [1_500, 3_000, pytest.param(24_000, marks=pytest.mark.slow)])
def test_two_hundred_large_results_never_exceed_the_limit(limit: int) -> None:
    turn = RunningTurn(9, "Read everything")
    result = lines(200)
    rewritten = 0
    before: list[ChatMessage] = []
    for n in range(200):
        turn.add(step(f"s{n}", result, path=f"src/file{n}.py"))
        sent = turn.messages(limit)
        assert tokens_of(sent) <= limit
        assert [message["role"] for message in sent[:2]] == ["user", "assistant"]
        rewritten += before != sent[: len(before)]
        before = sent
    if limit == 24_000:
        assert rewritten < 80  # a cut goes below the limit, so that most requests only add to the one before


def test_a_message_larger_than_the_limit_is_cut_in_the_middle() -> None:
    turn = RunningTurn(3, "First line\n" + lines(2_000) + "Last line")
    sent = turn.messages(3_000)
    assert tokens_of(sent) <= 3_000
    assert sent[0]["content"].startswith("First line")
    assert sent[0]["content"].endswith("Last line")


@pytest.mark.parametrize("arguments", ['["a", ', "[1]", ""])
def test_malformed_arguments_are_no_error_in_notes(arguments: str) -> None:
    turn = RunningTurn(3, "Look")
    for n in range(40):
        broken = step(f"s{n}", lines(40))
        broken[0]["tool_calls"][0]["function"]["arguments"] = arguments
        turn.add(broken)
    assert tokens_of(turn.messages(2_000)) <= 2_000


def test_what_the_user_sent_meanwhile_outlives_its_step() -> None:
    turn = RunningTurn(3, "Look")
    turn.add([{"role": "user", "content": "No, use Decimal. " + "x" * 60_000}])
    for number in range(20):
        turn.add(step(f"file{number}", lines(300)))
    sent = turn.messages(2_500)
    assert tokens_of(sent) <= 2_500
    assert "No, use Decimal." in sent[0]["content"]
