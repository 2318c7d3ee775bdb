"""Going on from an earlier turn: a conversation of its own that shares a beginning."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine import connect_in_process
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.requests.turns import (
    BranchConversation,
    CreateConversation,
    FindText,
    OpenConversation,
    SendMessage,
)
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script


async def test_a_branch_shares_the_beginning_and_leaves_its_parent_alone(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first"}, {"text": "second"}, {"text": "other second"}])
    async with ConversationAgent(loaded) as agent:
        parent = await agent.create_conversation(title="T", tags=["x"])
        await parent.send_message("question one")
        await parent.send_message("question two")
        parent.mode = "plan"
        branch = await agent.branch_conversation(parent.record.uuid[:8], 1)
        assert branch.mode == "plan"
        assert (branch.record.message_count, branch.record.total_chars) == (2, len("question onefirst"))
        parent.mode = branch.mode = "ask"
        answer = await branch.send_message("question two, otherwise")
        assert (answer.turn_index, answer.content) == (2, "other second")
        sent = [message["content"] for message in server.chats()[-1]["messages"] if message["role"] == "user"]
        assert "question one" in sent[0]
        assert not any(text == "question two" for text in sent)
        store = await agent.store()
        told = [
            [m.content for turn in await store.turns.between(uuid, start=1, end=9) for m in turn.messages]
            for uuid in (parent.record.uuid, branch.record.uuid)
        ]
        assert told == [
            ["question one", "first", "question two", "second"],
            ["question one", "first", "question two, otherwise", "other second"],
        ]
        again = await agent.branch_conversation(branch.record.uuid, 2)
        assert again.record.message_count == (await store.conversations.get(branch.record.uuid)).message_count == 4
        other = await agent.branch_conversation(branch.record.uuid, 1)
        assert other.record.message_count == 2
        assert (branch.record.tags, branch.record.branch_turn) == (["x"], 1)


async def test_a_branch_has_its_parents_title_until_its_own_first_message(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first"}, {"text": "second"}, {"text": "third"}])
    async with ConversationAgent(loaded) as agent:
        parent = await agent.create_conversation(title="T")
        await parent.send_message("question one")
        inherited, named, renamed = [
            await agent.branch_conversation(parent.record.uuid, 1, title=title) for title in ("", "N", "")
        ]
        store = await agent.store()
        await store.conversations.update(renamed.record.uuid, title="R")
        assert [inherited.record.title, named.record.title] == ["T", "N"]
    async with ConversationAgent(loaded) as agent:
        for uuid, text in ((one.record.uuid, "question two") for one in (inherited, named, renamed)):
            await (await agent.load_conversation(uuid)).send_message(text)
        store = await agent.store()
        titles = [(await store.conversations.get(one.record.uuid)).title for one in (parent, inherited, named, renamed)]
        assert titles == ["T", "question two", "N", "R"]


async def test_a_branch_of_nothing_begins_again(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first"}, {"text": "again"}])
    async with ConversationAgent(loaded) as agent:
        parent = await agent.create_conversation()
        await parent.send_message("question")
        branch = await agent.branch_conversation(parent.record.uuid, 0)
        assert (await branch.send_message("another question")).turn_index == 1
        with pytest.raises(NotFoundError):
            await agent.branch_conversation(parent.record.uuid, 2)


async def test_a_conversation_that_is_private_from_the_start(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "hello"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(private=True)
        store = await agent.store()
        assert (await store.conversations.get(conversation.record.uuid)).private
        await conversation.send_message("the zanzibar plan")
        assert await store.search.turns("zanzibar", conversation_id=conversation.record.uuid)
        assert not await store.search.turns("zanzibar")


@ONE_BACKEND
async def test_a_turn_running_cannot_be_branched_from_but_those_before_can(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first"}, {"text": "slow", "stall": True}])
    engine = await connect_in_process(loaded)
    try:
        view = await engine.request(CreateConversation())
        uuid = view.conversation.uuid
        await engine.request(SendMessage(conversation_id=uuid, message_id="m1", text="one"))
        while not (await engine.request(OpenConversation(ref=uuid))).page.turns[0].messages[1:]:
            await asyncio.sleep(0.05)
        while (await engine.request(OpenConversation(ref=uuid))).active_turn:
            await asyncio.sleep(0.05)
        await engine.request(SendMessage(conversation_id=uuid, message_id="m2", text="two"))
        with pytest.raises(RagforgeError, match="still being answered"):
            await engine.request(BranchConversation(conversation_id=uuid, turn_index=2))
        branch = await engine.request(BranchConversation(conversation_id=uuid, turn_index=1))
        opened = await engine.request(OpenConversation(ref=branch.uuid))
        assert [turn.turn_index for turn in opened.page.turns] == [1]
        assert opened.active_turn is None
        assert await engine.request(FindText(conversation_id=branch.uuid, text="ONE")) == [1]
    finally:
        await engine.close()
