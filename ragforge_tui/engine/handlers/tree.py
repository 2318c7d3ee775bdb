"""Requests about parts of the memory: the summary tree, single summaries, turns, topics and sent requests."""

from __future__ import annotations

from typing import Any

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.graph import Store
from ragforge_tui.memory.context import look_up
from ragforge_tui.shared import wire
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Summary
from ragforge_tui.shared.requests.tree import MemoryDue, MemoryTree, SentRequest, TopicPlace


async def answer(agent: ConversationAgent, request: wire.TreeRequest) -> Any:
    """Answer one request about a part of the memory.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    match request:
        case wire.FetchTree(conversation_id=conversation_id):
            return await _tree(agent, _opened(agent, conversation_id))
        case wire.FetchDue(conversation_id=conversation_id):
            return await _due(agent, _opened(agent, conversation_id))
        case wire.FetchSummary(uuid=uuid):
            return await _summary(await agent.store(), uuid)
        case wire.FetchTurnLines(conversation_id=uuid, first=first, last=last):
            return await (await agent.store()).turns.lines(uuid, first, last)
        case wire.FetchTopicPlaces():
            return await _places(await agent.store(), request)
        case wire.FetchSent():
            return await sent(await agent.store(), request.conversation_id, request.turn_index, request.number)


def _opened(agent: ConversationAgent, conversation_id: str) -> Conversation:
    conversation = agent.opened(conversation_id)
    if conversation is None:
        raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
    return conversation


async def _tree(agent: ConversationAgent, conversation: Conversation) -> MemoryTree:
    store = await agent.store()
    record = conversation.record
    return MemoryTree(
        summary=record.summary,
        nodes=await store.summaries.outline(record.uuid),
        topics=await store.topics.search(conversation_id=record.uuid),
        last_turn=(await store.turns.range(record.uuid))[1],
        due=await _due(agent, conversation),
    )


async def _due(agent: ConversationAgent, conversation: Conversation) -> MemoryDue:
    turns, chars = await conversation.memory.until_next_summary()
    enabled = agent.settings.agent.memory.summarization.enabled
    return MemoryDue(next_turns=turns, next_chars=chars, behind=conversation.memory.behind, enabled=enabled)


async def _summary(store: Store, uuid: str) -> Summary:
    found = await store.summaries.by_id([uuid])
    if not found:
        raise NotFoundError("This summary no longer exists.")
    return found[0]


async def _places(store: Store, request: wire.FetchTopicPlaces) -> list[TopicPlace]:
    """Return a topic's turns in this conversation first, then those in others of the workspace."""
    own = request.conversation_id
    places: list[TopicPlace] = []
    exists = False
    for scope in ({"conversation_id": own}, {"workspace": request.workspace}):
        if scope.get("conversation_id") == "":
            continue
        try:
            found = await store.topics.turns(request.ref, **scope)
        except NotFoundError:
            continue
        exists = True
        for uuid, ranges in found.items():
            if uuid == own and "workspace" in scope:
                continue
            title = (await store.conversations.get(uuid)).title
            places += [TopicPlace(conversation_id=uuid, title=title, first=a, last=b) for a, b in ranges]
    if not exists:
        raise NotFoundError(f"There is no topic {request.ref!r}.")
    return places


async def sent(store: Store, ref: str, turn_index: int, number: int = 0) -> SentRequest:
    """Return the content of a turn's request, by default its last one; shared turns are read from the parent.

    Raises:
        NotFoundError: There is no such turn, or no request of it is stored.
    """
    conversation = await store.conversations.resolve(ref)
    last = conversation.next_turn - 1
    index = turn_index or last
    turns = await store.turns.between(conversation.uuid, start=index, end=index + 1) if index > 0 else []
    if not turns:
        raise NotFoundError(f"The conversation {conversation.uuid[:8]} has no turn {index}.")
    found = await store.contexts.of_turn(turns[0].messages[0].conversation_id, index)
    if not found:
        raise NotFoundError(
            f"No sent request of turn {index} is stored.",
            todo="It was imported, predates stored contexts, or did not ask a model.",
        )
    number = min(number or len(found), len(found))
    chosen = found[number - 1]
    record = await look_up(chosen.record, store)
    return SentRequest(record=record, number=number, count=len(found), replies=chosen.replies, last_turn=last)
