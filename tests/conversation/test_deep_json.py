"""Calls whose arguments are nested absurdly deep: refused in words, stored as text, harmless to later turns."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import timedelta

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.export.json import from_json, to_json
from ragforge_tui.export.markdown import to_markdown
from ragforge_tui.graph.repositories import Store
from ragforge_tui.settings.schema import Loaded, SummarizationSettings
from ragforge_tui.shared.json_text import MOST_NESTED, decode_json
from ragforge_tui.shared.records import now
from ragforge_tui.shared.requests.memory import FetchSent
from ragforge_tui.shared.requests.sessions import ExportConversation
from ragforge_tui.shared.requests.turns import OpenConversation
from ragforge_tui.shared.requests.work import FetchCall, ListCalls
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_memory
from tests.support.model_script import Script
from tests.support.records import call_of

DEPTHS = [64, 65, *(pytest.param(depth, marks=pytest.mark.slow) for depth in (100, 1_100)), 20_000]


def nested(depth: int, *, closed: bool = True) -> str:
    """Arguments of this depth; the object itself is the first level."""
    lists = "[" * (depth - 1) + ("]" * (depth - 1) + "}" if closed else "")
    return f'{{"path": "greeting.py", "x": {lists}'


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Collect garbage of earlier tests first: finalizers that run at the limit of recursion cannot report anything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@ONE_BACKEND
@pytest.mark.parametrize("closed", [True, False], ids=["whole", "cut off"])
@pytest.mark.parametrize("depth", DEPTHS)
async def test_later_turns_of_a_conversation_go_on(loaded: Loaded, server: Script, depth: int, closed: bool) -> None:
    written = nested(depth, closed=closed)
    call = {"name": "read_file", "arguments": written}
    # The first conversation meets the call in its running turn; later ones, and summaries, find it in the graph.
    script = [{"tool_calls": [call, call], "chunk": 4_000}, {"text": "one", "when": "tools"}]
    server.script([*script, *({"text": f"answer {n}", "when": "tools"} for n in range(2, 6))])
    engine = InProcessEngine(
        with_memory(loaded, summarization=SummarizationSettings(every_turns=2, keep_recent_turns=1))
    )
    try:
        agent = engine.agent
        conversation = await agent.create_conversation()
        assert (await conversation.send_message("go")).content == "one"
        for n in (2, 3, 4):
            assert (await conversation.send_message(f"turn {n}")).content == f"answer {n}"
        await conversation.wait_idle()
        uuid = conversation.record.uuid
        page = await engine.request(ListCalls(conversation_id=uuid))
        if closed:
            assert [entry.call.success for entry in page.calls] == [depth <= MOST_NESTED] * 2
        whole = await engine.request(FetchCall(conversation_id=uuid, turn_index=1, call_id=page.calls[0].call.uuid))
        assert whole.arguments == written
        assert whole.result is not None
        if closed and depth > MOST_NESTED:
            assert "nested more than 64 levels deep" in whole.result.result
        assert (await engine.request(FetchSent(conversation_id=uuid, turn_index=4))).record.sections
        export = await engine.request(ExportConversation(ref=uuid))
        again = from_json(to_json(export))
        assert again.turns[0].messages[1].tool_calls[0].arguments == written
        assert "answer 4" in to_markdown(export)
        assert await conversation.diff() == []
    finally:
        await engine.close()
    async with ConversationAgent(loaded) as later:
        resumed = await later.load_conversation(uuid)
        assert (await resumed.send_message("turn 5")).content == "answer 5"
    sent = [call for body in server.chats() for each in body["messages"] for call in each.get("tool_calls") or []]
    for call in sent:
        assert isinstance(decode_json(call["function"]["arguments"]), dict)


@ONE_BACKEND
@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_stored_call_and_its_stored_result_are_read(loaded: Loaded, server: Script, depth: int) -> None:
    read = {"name": "read_file", "arguments": {"path": "greeting.py"}}
    server.script([{"tool_calls": [read]}, {"text": "one"}, {"text": "two"}, {"text": "three"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("go")
        await conversation.wait_idle()
        uuid = conversation.record.uuid
        store: Store = await agent.store()
        stored = (await conversation.get_history())[0].messages[1].tool_calls[0]
        deep = "[" * depth + "]" * depth
        stored.arguments, stored.reasoning = nested(depth), ""
        assert stored.result is not None
        stored.result.result = (
            f'{{"text": "seen", "before": {deep}, "commits": {deep}, "scopes": {deep}, "diff": {deep}}}'
        )
        await store.tool_calls.finish(stored, loaded.workspace)
        unfinished = call_of(stored.message_id, tool_name="edit_file", arguments=nested(depth), ordinal=1)
        unfinished.timestamp = now() - timedelta(minutes=1)
        await store.tool_calls.start(unfinished, uuid)
    engine = InProcessEngine(loaded)
    try:
        view = await engine.request(OpenConversation(ref=uuid))
        assert [call.arguments for call in view.page.turns[0].messages[1].tool_calls] == [nested(depth)] * 2
        resumed = await engine.agent.load_conversation(uuid)
        for answer in ("two", "three"):
            assert (await resumed.send_message("and now?")).content == answer
        await resumed.wait_idle()
        assert (await engine.request(ListCalls(conversation_id=uuid))).calls
        export = await engine.request(ExportConversation(ref=uuid))
        assert to_markdown(from_json(to_json(export)))
        assert await resumed.diff() == []
    finally:
        await engine.close()
