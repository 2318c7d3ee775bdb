"""Opening a stored conversation: a screenful is read at once, the rest when something is said in it."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.conversation import OPENING_TURNS
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.engine import connect_in_process
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded, SummarizationSettings
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.memory import FetchFiles
from ragforge_tui.shared.requests.turns import FetchTurns, OpenConversation
from tests.conftest import ONE_BACKEND
from tests.support.agents import contents, with_memory
from tests.support.model_script import Script
from tests.support.records import conversation, one_turn

TURNS = OPENING_TURNS + 8


def without_summaries(loaded: Loaded) -> Loaded:
    """The same settings; a summary would take a scripted reply."""
    return with_memory(loaded, summarization=SummarizationSettings(enabled=False))


async def stored(graph: Graph) -> str:
    """A conversation longer than a screen."""
    store = Store(graph)
    c = await store.conversations.create(conversation(title="long"))
    for index in range(1, TURNS + 1):
        await one_turn(store, c.uuid, f"question {index}")
    return c.uuid


async def test_opening_gives_the_newest_turns_and_paging_the_others(graph: Graph, loaded: Loaded) -> None:
    uuid = await stored(graph)
    engine = await connect_in_process(loaded)
    try:
        view = await engine.request(OpenConversation(ref=uuid[:8]))
        assert [turn.turn_index for turn in view.page.turns] == list(range(TURNS - OPENING_TURNS + 1, TURNS + 1))
        assert (view.page.first, view.page.last) == (1, TURNS)
        earlier = await engine.request(FetchTurns(conversation_id=uuid, start=1, end=9))
        assert [turn.turn_index for turn in earlier.turns] == list(range(1, 9))
    finally:
        await engine.close()


async def test_reopening_shows_turns_of_another_process(graph: Graph, loaded: Loaded) -> None:
    uuid = await stored(graph)
    engine = await connect_in_process(loaded)
    try:
        await engine.request(OpenConversation(ref=uuid))
        await one_turn(Store(graph), uuid, "from elsewhere")
        view = await engine.request(OpenConversation(ref=uuid))
        assert view.page.turns[-1].messages[0].content == "from elsewhere"
        assert view.page.last == TURNS + 1
    finally:
        await engine.close()


async def test_the_model_is_sent_turns_that_were_not_read_at_opening(
    graph: Graph, loaded: Loaded, server: Script
) -> None:
    uuid = await stored(graph)
    server.script([{"text": "one"}, {"text": "two"}])
    async with ConversationAgent(loaded) as agent:
        resumed = await agent.load_conversation(uuid)
        await one_turn(Store(graph), uuid, "from elsewhere")
        await resumed.send_message("and on")
        await resumed.retry()
        await resumed.wait_idle()
    for request in server.chats():
        asked = contents(request, "user")
        assert asked == [*(f"question {index}" for index in range(1, TURNS + 1)), "from elsewhere", "and on"]


async def test_a_retry_is_of_the_turn_another_process_asked_last(graph: Graph, loaded: Loaded, server: Script) -> None:
    uuid = await stored(graph)
    server.script([{"text": "anew"}])
    async with ConversationAgent(without_summaries(loaded)) as agent:
        resumed = await agent.load_conversation(uuid)
        await one_turn(Store(graph), uuid, "from elsewhere")
        assert await resumed.retry() == TURNS + 1
        await resumed.wait_idle()
        turns = await resumed.get_history(2)
        assert turns[0].messages[-1].content != "anew"
        assert turns[-1].messages[-1].content == "anew"


async def test_two_retries_at_once_are_one(graph: Graph, loaded: Loaded, server: Script) -> None:
    uuid = await stored(graph)
    server.script([{"text": "anew"}, {"text": "once more"}])
    async with ConversationAgent(without_summaries(loaded)) as agent:
        resumed = await agent.load_conversation(uuid)
        results = await asyncio.gather(resumed.retry(), resumed.retry(), return_exceptions=True)
        assert results[0] == TURNS and isinstance(results[1], RagforgeError)
        await resumed.wait_idle()
        assert len(server.requests) == 1


@ONE_BACKEND
async def test_a_retry_waits_for_the_memory_like_a_message(graph: Graph, loaded: Loaded, server: Script) -> None:
    uuid = await stored(graph)
    server.script([{"text": "anew"}])
    async with ConversationAgent(without_summaries(loaded)) as agent:
        resumed = await agent.load_conversation(uuid)
        await resumed.retry()
        await resumed.wait_idle()
        # The turn itself is indexed a moment after it has ended.
        assert resumed.memory.recall.progress()[1] >= TURNS - 1


@ONE_BACKEND
async def test_a_message_sent_while_a_retry_fails_is_answered(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "here"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        results = await asyncio.gather(conversation.retry(), conversation.submit("there?"), return_exceptions=True)
        assert isinstance(results[0], RagforgeError)
        await conversation.wait_idle()
        assert [turn.messages[-1].content for turn in await conversation.get_history()] == ["here"]


async def test_a_mention_older_than_the_loaded_turns_is_still_a_recent_file(graph: Graph, loaded: Loaded) -> None:
    store = Store(graph)
    c = await store.conversations.create(conversation(workspace=loaded.workspace))
    await one_turn(store, c.uuid, "What does @greeting.py do? Ask someone@example.org, or see @missing.py")
    for index in range(2, TURNS + 1):
        await one_turn(store, c.uuid, f"question {index}")
    branch = await store.conversations.create(conversation(workspace=loaded.workspace, branch_of=c.uuid, branch_turn=3))
    async with ConversationAgent(without_summaries(loaded)) as agent:
        for uuid in (c.uuid, branch.uuid):
            opened = await agent.load_conversation(uuid, turns=2)
            opened.memory.start()
            await opened.memory.settle()
            files = [(file.path, file.group, file.tool, file.turn_index) for file in opened.memory.files.groups()]
            assert files == [("greeting.py", "read", "mention", 1)]


@ONE_BACKEND
async def test_files_asked_for_while_they_are_loaded(
    graph: Graph, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(graph)
    c = await store.conversations.create(conversation(workspace=loaded.workspace))
    await one_turn(store, c.uuid, "What does @greeting.py do?")
    may_load = asyncio.Event()
    load_files = ConversationMemory._load_files

    async def slow(self: ConversationMemory, store: Store) -> None:
        await may_load.wait()
        await load_files(self, store)

    monkeypatch.setattr(ConversationMemory, "_load_files", slow)
    engine = await connect_in_process(without_summaries(loaded))
    try:
        await engine.request(OpenConversation(ref=c.uuid))
        asked = asyncio.create_task(engine.request(FetchFiles(conversation_id=c.uuid)))
        await asyncio.sleep(0.05)
        may_load.set()
        assert [file.path for file in await asked] == ["greeting.py"]
    finally:
        await engine.close()
