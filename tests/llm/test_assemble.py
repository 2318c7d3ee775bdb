"""How providers cut tool calls, and that they come out whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ragforge_tui.llm.assemble import Assembler
from ragforge_tui.llm.base import ReasoningPart, TextPart


def chunk(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> Any:
    function = SimpleNamespace(name=name, arguments=arguments)
    delta = SimpleNamespace(tool_calls=[SimpleNamespace(index=index, id=call_id, function=function)])
    return SimpleNamespace(choices=[SimpleNamespace(delta=delta, finish_reason=None)])


def assembled(*chunks: Any) -> list[tuple[str, str]]:
    assembler = Assembler()
    for piece in chunks:
        assert list(assembler.feed(piece)) == []
    return [(request.name, request.arguments) for request in assembler.requests()]


def test_pieces_of_parallel_calls_interleaved() -> None:
    chunks = [
        chunk(0, "a", "f", '{"x'),
        chunk(1, "b", "g", '{"y'),
        chunk(0, None, None, '": 1}'),
        chunk(1, None, None, '": 2}'),
    ]
    assert assembled(*chunks) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]


def test_every_call_with_index_zero() -> None:
    assert assembled(chunk(0, "a", "f", "{}"), chunk(0, "b", "f", '{"n": 1}')) == [("f", "{}"), ("f", '{"n": 1}')]
    assert assembled(chunk(0, None, "f", "{}"), chunk(0, None, "g", "{}")) == [("f", "{}"), ("g", "{}")]


def test_the_name_repeated_in_every_piece_is_one_call() -> None:
    assert assembled(chunk(0, "a", "f", '{"x'), chunk(0, "a", "f", '": 1}')) == [("f", '{"x": 1}')]


def test_no_index_at_all() -> None:
    assert assembled(chunk(None, "a", "f", '{"x'), chunk(None, None, None, '": 1}')) == [("f", '{"x": 1}')]


def answered(*events: dict[str, Any], tools: tuple[str, ...] = ("read_file",)) -> tuple[str, str, str, Assembler]:
    """Text, reasoning and reason for the end of an answer of a server's own events."""
    assembler = Assembler([{"function": {"name": name, "parameters": {}}} for name in tools])
    text = thought = ""
    for part in [*(part for event in events for part in assembler.feed(event)), *assembler.rest()]:
        text += part.text if isinstance(part, TextPart) else ""
        thought += part.text if isinstance(part, ReasoningPart) else ""
    return text, thought, assembler.finish_reason, assembler


def event(delta: Any, finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **fields}]}


STOP = event({}, "stop")


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"content": "Yes."}, ("Yes.", "")),
        ({"content": ["Y", {"type": "text", "text": "es."}]}, ("Yes.", "")),
        ({"content": {"type": "output_text", "text": "Yes."}}, ("Yes.", "")),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, "Yes."]}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning": {"content": "Hm."}}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}, ("Yes.", "Hm.")),
        (
            {"content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "Yes."}]},
            ("Yes.", ""),
        ),
        ({"reasoning_content": "It is so."}, ("It is so.", "It is so.")),
        ({"content": "<think>It is so."}, ("It is so.", "It is so.")),
    ],
)
def test_content_and_reasoning_in_any_form(delta: dict[str, Any], expected: tuple[str, str]) -> None:
    assert answered(event(delta), STOP)[:2] == expected
    whole = {"choices": [{"message": {"role": "assistant", **delta}, "finish_reason": "stop"}]}
    assert answered(whole)[:3] == (*expected, "stop")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("END_TURN", "stop"),
        ("eos", "stop"),
        ("tool_use", "tool_calls"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("network_error", "network_error"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        ({"type": "stop"}, "stop"),
        ({"type": "abort"}, "abort"),
        ("null", ""),
        (None, ""),
    ],
)
def test_the_providers_own_word_for_the_end_is_kept_unless_it_is_known(word: Any, reason: str) -> None:
    assert answered(event({"content": "Half"}), event({}, word))[2] == reason


def test_a_refusal_is_shown_and_is_no_whole_answer() -> None:
    text, _, reason, _ = answered(event({"refusal": "I cannot "}), event({"refusal": "do that."}), STOP)
    assert (text, reason) == ("I cannot do that.", "refusal")


def test_another_choice_is_not_mixed_in() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "No"}, "finish_reason": None}]}
    assert answered(event({"content": "Yes"}), other, STOP)[0] == "Yes"


@pytest.mark.parametrize(
    "pieces",
    [
        [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read_"}}]}, {"tool_calls": [
            {"index": 0, "function": {"name": "file", "arguments": "{}"}}]}],
        [{"function_call": {"name": "read_file", "arguments": ""}}, {"function_call": {"arguments": "{}"}}],
        [{"tool_calls": [{"index": 0, "function": {"name": "functions.read_file", "arguments": {}}}]}],
        [{"content": '<tool_call>{"name": "read_file", "arguments": {}}'}, {"content": "</tool_call>"}],
        [{"reasoning_content": 'I read.\n{"name": "read_file", "arguments": {}}'}],
    ],
    ids=["name in pieces", "legacy", "prefix and object", "in the text", "in the reasoning"],
)  # fmt: skip
def test_a_call_in_an_odd_form_is_one(pieces: list[dict[str, Any]]) -> None:
    text, _, _, assembler = answered(*map(event, pieces), STOP)
    assert [(each.name, each.arguments or "{}") for each in assembler.requests()] == [("read_file", "{}")]
    assert text == ""


def test_a_call_in_the_text_of_a_truncated_answer_does_not_run() -> None:
    written = '<tool_call>{"name": "read_file", "arguments": {}}</tool_call>'
    assert answered(event({"content": written}), event({}, "length"))[3].requests() == []
