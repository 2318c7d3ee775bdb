"""The list of a conversation's calls, on both backends: in order, without results, page by page."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.tool_calls import SHOWN_CHARS
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import ToolCall, ToolResult, Turn, now
from ragforge_tui.shared.requests.work import CallPage
from ragforge_tui.tui.transcript.tool_block import failure_of
from tests.support.records import add_reply, call_of, conversation, message
from tests.support.turns import turn_of


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def done(call: ToolCall, *, success: bool = True, text: str = "x" * 5000, error: str | None = None) -> ToolCall:
    """A call with its result."""
    call.success = success
    call.duration_ms = 12
    call.result = ToolResult(
        uuid=str(uuid.uuid4()),
        tool_call_id=call.uuid,
        success=success,
        result=json.dumps({"text": text}),
        error=error,
        timestamp=now(),
        result_size_bytes=len(text),
    )
    return call


async def stored(store: Store, turns: int, calls: int, **fields: Any) -> str:
    """A conversation whose turns made so many calls each; its id."""
    made = conversation(**fields)
    told: list[Turn] = []
    for index in range(1, turns + 1):
        turn = turn_of(made.uuid, index, "Read it.", "Read.")
        answer = turn.messages[1]
        for ordinal in range(calls):
            call = call_of(answer.uuid, tool_name=f"tool_{index}_{ordinal}", ordinal=ordinal)
            answer.tool_calls.append(done(call))
        told.append(turn)
    made.next_turn = turns + 1
    await store.transfer.import_(ConversationExport(conversation=made, turns=told))
    return made.uuid


def names(page: CallPage) -> list[str]:
    return [entry.call.tool_name for entry in page.calls]


async def test_calls_come_in_order_without_their_results(store: Store) -> None:
    uuid = await stored(store, 3, 2)
    page = await store.tool_calls.page(uuid)
    assert page.first_turn == 1
    assert names(page) == [f"tool_{turn}_{ordinal}" for turn in (1, 2, 3) for ordinal in (0, 1)]
    entry = page.calls[-1]
    assert (entry.turn_index, entry.position) == (3, 1)
    assert entry.call.duration_ms == 12
    assert entry.call.result is not None
    assert (entry.call.result.result, entry.call.result.result_size_bytes) == ("", 5000)


async def test_pages_hold_whole_turns_and_meet(store: Store) -> None:
    uuid = await stored(store, 7, 3)
    pages = [await store.tool_calls.page(uuid, limit=4)]
    while pages[-1].first_turn > 1:
        pages.append(await store.tool_calls.page(uuid, before=pages[-1].first_turn, limit=4))
    assert [page.first_turn for page in pages] == [6, 4, 2, 1]
    joined = [name for page in reversed(pages) for name in names(page)]
    assert joined == names(await store.tool_calls.page(uuid, limit=100))


async def test_a_call_that_failed_gives_the_reason_and_long_arguments_are_cut(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="go"))
    answer = await add_reply(store, message(c.uuid, role="assistant", turn_index=1))
    call = call_of(answer.uuid, arguments=json.dumps({"path": "a.py", "content": "y" * 3_000_000}))
    await store.tool_calls.start(call, c.uuid)
    running = (await store.tool_calls.page(c.uuid)).calls[0].call
    assert running.result is None
    await store.tool_calls.finish(done(call, success=False, error="not unique " * 100), "/w")
    listed = (await store.tool_calls.page(c.uuid)).calls[0].call
    assert listed.result is not None
    assert listed.result.error is not None and listed.result.error.startswith("not unique")
    assert len(listed.result.error) <= 400
    assert len(listed.arguments) <= SHOWN_CHARS


@pytest.mark.parametrize("printed", ["E   KeyError: 'a'", "x\n" * 200_000 + "E   KeyError: 'a'"], ids=["short", "long"])
async def test_of_a_command_that_failed_the_end_is_listed(store: Store, printed: str) -> None:
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="go"))
    answer = await add_reply(store, message(c.uuid, role="assistant", turn_index=1))
    call = done(call_of(answer.uuid, tool_name="run_command"), success=False, error="Exit status 1.")
    assert call.result is not None
    text = f"{printed}\n[Exit status 1.]"
    call.result.result = json.dumps({"text": text, "exit_status": 1, "timed_out": False})
    await store.tool_calls.finish(call, "/w")
    listed = (await store.tool_calls.page(c.uuid)).calls[0].call
    assert listed.result is not None and len(listed.result.result) < 5000
    assert failure_of(listed) == failure_of(call) == "E KeyError: 'a'", "as it was shown when it ended"


async def test_a_branch_lists_the_calls_of_the_turns_it_shares(store: Store) -> None:
    parent = await stored(store, 4, 1)
    branch = msgspec.structs.replace(conversation(), branch_of=parent, branch_turn=2, next_turn=3)
    await store.conversations.create(branch)
    assert names(await store.tool_calls.page(branch.uuid)) == ["tool_1_0", "tool_2_0"]


async def test_an_unknown_conversation_has_no_list(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.tool_calls.page("nope")
