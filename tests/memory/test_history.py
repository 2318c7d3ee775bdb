"""What a provider is sent is always a valid sequence, whatever state the stored turns are in."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm.forms import alternating
from ragforge_tui.memory.history import (
    INTERRUPTED_MARK,
    UNKNOWN_OUTCOME,
    turn_messages,
    valid_arguments,
    without_graph,
)
from ragforge_tui.shared.records import Message, MessageState, ToolCall, ToolResult, Turn, now
from tests.support.chat_templates import refusal

STATES: list[MessageState] = ["complete", "streaming", "interrupted", "failed", "superseded"]


def message(role: str, content: str, *, turn: int = 1, state: MessageState = "complete", calls: int = 0) -> Message:
    made = Message(
        uuid=f"{turn}-{role}-{content}",
        conversation_id="c",
        turn_index=turn,
        role="user" if role == "user" else "assistant",
        content=content,
        state=state,
        timestamp=now(),
    )
    made.tool_calls = [call(f"{made.uuid}-{number}") for number in range(calls)]
    return made


def call(uuid: str, *, result: bool = True, arguments: str = '{"path": "a"}') -> ToolCall:
    made = ToolCall(uuid=uuid, message_id="m", tool_name="read_file", arguments=arguments, timestamp=now())
    if result:
        made.result = ToolResult(
            uuid=uuid + "r", tool_call_id=uuid, success=True, result='{"text": "content"}', timestamp=now()
        )
    return made


def assert_valid(sent: list[dict[str, object]]) -> None:
    open_calls: list[str] = []
    for each in sent:
        if each["role"] == "tool":
            assert each["tool_call_id"] in open_calls
            open_calls.remove(str(each["tool_call_id"]))
            continue
        assert not open_calls
        calls = each.get("tool_calls")
        if isinstance(calls, list):
            open_calls = [each_call["id"] for each_call in calls]
            for each_call in calls:
                assert isinstance(json.loads(each_call["function"]["arguments"]), dict)
    assert not open_calls


@given(
    st.lists(
        st.tuples(st.sampled_from(STATES), st.text(max_size=5), st.integers(0, 3), st.booleans(), st.text(max_size=8)),
        max_size=6,
    )
)
def test_any_turn_becomes_a_valid_sequence(replies: list[tuple[MessageState, str, int, bool, str]]) -> None:
    turn = Turn(turn_index=1, messages=[message("user", "question")])
    for number, (state, text, calls, has_result, arguments) in enumerate(replies):
        reply = message("assistant", text, state=state)
        reply.tool_calls = [call(f"{number}-{n}", result=has_result, arguments=arguments) for n in range(calls)]
        turn.messages.append(reply)
    sent = turn_messages(turn)
    assert_valid(sent)
    assert sent[0] == {"role": "user", "content": "question"}
    following = [*sent, *sent, {"role": "user", "content": "and now?"}]
    assert refusal({"messages": alternating(following), "tools": [{}]}) == ""


def test_an_interrupted_answer_reports_it_and_a_lost_result_too() -> None:
    reply = message("assistant", "half of it", state="interrupted")
    reply.tool_calls = [call("lost", result=False)]
    sent = turn_messages(Turn(turn_index=1, messages=[message("user", "go"), reply]))
    assert sent[1]["content"] == f"half of it\n{INTERRUPTED_MARK}"
    assert sent[2]["content"] == UNKNOWN_OUTCOME


def test_superseded_attempts_are_not_sent() -> None:
    turn = Turn(
        turn_index=1,
        messages=[message("user", "go"), message("assistant", "old", state="superseded"), message("assistant", "new")],
    )
    assert [each["content"] for each in turn_messages(turn)] == ["go", "new"]


def test_malformed_arguments_are_wrapped() -> None:
    assert valid_arguments("") == "{}"
    assert json.loads(valid_arguments('{"path": ')) == {"malformed_arguments": '{"path": '}
    assert json.loads(valid_arguments("[1]")) == {"malformed_arguments": "[1]"}


def turns(count: int) -> list[Turn]:
    return [
        Turn(turn_index=n, messages=[message("user", f"q{n}", turn=n), message("assistant", "a" * 400, turn=n)])
        for n in range(1, count + 1)
    ]


def test_without_the_graph_ten_messages_go_whole_and_more_are_cut_in_the_middle() -> None:
    assert len(without_graph(turns(5))) == 10
    sent = without_graph(turns(8))
    assert len(sent) == 11
    assert sent[0]["content"] == "q1"
    assert sent[1]["role"] == "user"
    assert refusal({"messages": alternating([*sent, {"role": "user", "content": "and now?"}])}) == ""
    assert "6 messages" in sent[1]["content"]
    assert sent[-1]["role"] == "assistant"
