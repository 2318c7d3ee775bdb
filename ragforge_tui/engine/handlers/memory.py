"""Requests about the memory: sent contexts, summaries, topics, files and similar conversations."""

from __future__ import annotations

from typing import Any

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.handlers.tree import sent
from ragforge_tui.shared import wire
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Conversation, SimilarConversation
from ragforge_tui.shared.wire import MemoryView


async def answer(agent: ConversationAgent, request: wire.MemoryRequest) -> Any:
    """Answer one request about the memory.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    match request:
        case wire.FetchContext(conversation_id=ref, turn_index=turn):
            return (await sent(await agent.store(), ref, turn)).record
        case wire.FetchMemory(conversation_id=conversation_id):
            return await _memory(agent, conversation_id)
        case wire.SummarizeConversation(conversation_id=conversation_id):
            return await _summarize(agent, conversation_id)
        case wire.ListTopics(query=query, limit=limit, workspace=workspace):
            store = await agent.store()
            return await store.topics.search(query, limit=limit, workspace=workspace)
        case wire.MergeTopics(a=a, b=b):
            store = await agent.store()
            first, second = await store.topics.get(a), await store.topics.get(b)
            return await store.topics.merge(first.uuid, second.uuid)
        case wire.UnmergeTopic(ref=ref):
            return await (await agent.store()).topics.unmerge_named(ref)
        case wire.FindSimilar():
            return await _similar(agent, request)


async def _memory(agent: ConversationAgent, conversation_id: str) -> MemoryView:
    conversation = agent.opened(conversation_id)
    if conversation is None:
        raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
    store = await agent.store()
    memory = conversation.memory
    turns, chars = await memory.until_next_summary()
    return MemoryView(
        summary=conversation.record.summary,
        summaries=await store.summaries.of(conversation_id),
        topics=await store.topics.search(conversation_id=conversation_id),
        files=memory.files.groups(),
        next_turns=turns,
        next_chars=chars,
        behind=memory.behind,
    )


async def _summarize(agent: ConversationAgent, conversation_id: str) -> Conversation:
    conversation = await agent.load_conversation(conversation_id)
    await conversation.memory.summarise_conversation()
    return conversation.record


async def _similar(agent: ConversationAgent, request: wire.FindSimilar) -> list[SimilarConversation]:
    store = await agent.store()
    recall = agent.settings.agent.memory.recall
    conversation = await store.conversations.resolve(request.ref)
    return await store.vectors.similar_conversations(
        conversation.uuid,
        limit=request.limit,
        min_score=recall.min_score if request.min_score is None else request.min_score,
        workspace=conversation.workspace if recall.scope == "workspace" else None,
    )
