"""Whatever a request is put together from, it leaves in an order that every chat template takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.llm.forms import LEFT_OUT, NO_ANSWER, alternating
from tests.llm.conftest import MakeModel
from tests.support.chat_templates import (
    ALTERNATE,
    ALTERNATE_BUT_CALLS,
    CALL_ID,
    EMPTY_REPLY,
    NO_QUERY,
    SYSTEM_FIRST,
    UNANSWERED,
    UNCALLED,
    UNKNOWN_FIELD,
    Messages,
    refusal,
)
from tests.support.model_script import Step
from tests.support.openai_server import OpenAIServer

SYSTEM = {"role": "system", "content": "rules"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def called(*ids: str, text: str = "", results: bool = True) -> Messages:
    calls = [{"id": one, "type": "function", "function": {"name": "read_file", "arguments": "{}"}} for one in ids]
    answers = [{"role": "tool", "tool_call_id": one, "content": f"result {one}"} for one in ids]
    return [{**said(text), "tool_calls": calls}, *(answers if results else [])]


part = st.one_of(
    st.text(min_size=1, max_size=5).map(lambda text: [user(text)]),
    st.text(min_size=1, max_size=5).map(lambda text: [said(text)]),
    st.tuples(st.lists(st.uuids().map(str), min_size=1, max_size=3, unique=True), st.text(max_size=5)).map(
        lambda made: called(*made[0], text=made[1])
    ),
)


@given(st.lists(part, max_size=8), st.booleans())
def test_any_parts_become_a_request_that_is_taken(parts: list[Messages], begins_with_system: bool) -> None:
    given = [*([SYSTEM] if begins_with_system else []), *(message for made in parts for message in made), user("now")]
    sent = alternating(given)
    assert refusal({"messages": sent, "tools": [{}]}) == ""
    texts = "\n\n".join(message["content"] for message in sent)
    at = 0
    for message in given:
        at = texts.index(message["content"], at) + len(message["content"])
    assert [len(m["tool_calls"]) for m in sent if "tool_calls" in m] == [
        len(m["tool_calls"]) for m in given if "tool_calls" in m
    ]
    assert alternating(sent) == sent


def test_joined_messages_and_their_separators() -> None:
    first, second = "0123456789abcdef", "fedcba9876543210"
    parts = [
        SYSTEM,
        said("Imported."),
        user("!ls"),
        user("[its result]"),
        said("Half"),
        *called(first, text="Whole"),
        *called(second),
        user("Stopped; and now?"),
    ]
    sent = alternating(parts)
    short = [call["id"] for message in sent for call in message.get("tool_calls", [])]
    assert [(m["role"], m["content"]) for m in sent] == [
        ("system", "rules"),
        ("user", LEFT_OUT),
        ("assistant", "Imported."),
        ("user", "!ls\n\n[its result]"),
        ("assistant", "Half\n\nWhole"),
        ("tool", f"result {first}"),
        ("assistant", ""),
        ("tool", f"result {second}"),
        ("assistant", NO_ANSWER),
        ("user", "Stopped; and now?"),
    ]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == short
    assert len(set(short)) == 2 and all(len(one) == 9 for one in short)
    assert parts[-2]["tool_call_id"] == second, "what was given is as it was"


CALL, OTHER = "a1b2c3d4e", "b1b2c3d4e"


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([SYSTEM, SYSTEM, user("hi")], SYSTEM_FIRST),
        ([SYSTEM, user("hi"), SYSTEM], SYSTEM_FIRST),
        ([user("hi"), SYSTEM], SYSTEM_FIRST),
        ([SYSTEM, said("hi")], NO_QUERY),
        ([SYSTEM, user("one"), user("two")], ALTERNATE_BUT_CALLS),
        ([SYSTEM, said("one"), user("two")], ALTERNATE_BUT_CALLS),
        ([user("one"), said("two"), said("three"), user("four")], ALTERNATE_BUT_CALLS),
        ([user("one"), *called(CALL), user("two")], ALTERNATE_BUT_CALLS),
        ([user("one"), said("two"), *called(CALL)], ALTERNATE),
        ([user("one"), said(""), user("two")], EMPTY_REPLY),
        ([user("one"), *called("c1")], CALL_ID),
        ([user("one") | {"provider_state": {}}], f"{UNKNOWN_FIELD}provider_state"),
        ([user("one"), *called(CALL, results=False), said("two")], UNANSWERED),
        ([user("one"), said("two"), user("x"), {"role": "tool", "tool_call_id": CALL, "content": ""}], UNCALLED),
        ([SYSTEM, user("one"), *called(CALL, OTHER), said("two"), user("three"), *called(CALL), said("four")], ""),
    ],
)
def test_message_orders_that_chat_templates_refuse(messages: Messages, error: str) -> None:
    assert refusal({"messages": messages}) == error


async def test_a_system_message_that_a_template_refuses_is_sent_as_the_users(
    server: OpenAIServer, make: MakeModel
) -> None:
    server.script([Step(text="Hello.")])
    assert (await make().complete([SYSTEM, SYSTEM, user("hi")]))[0] == "Hello."
    assert server.refused == [SYSTEM_FIRST]
    assert [message["role"] for message in server.chats()[-1]["messages"]] == ["user"]
