"""Requests about tool calls: lists of calls, and one call in full."""

from __future__ import annotations

from typing import Any

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.shared import wire
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ToolCall


async def answer(agent: ConversationAgent, request: wire.CallRequest) -> Any:
    """Answer one request about calls.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    match request:
        case wire.ListCalls(conversation_id=uuid, before=before, limit=limit):
            return await (await agent.store()).tool_calls.page(uuid, before=before, limit=limit)
        case wire.FetchCall():
            return await _call(agent, request)


async def _call(agent: ConversationAgent, request: wire.FetchCall) -> ToolCall:
    store = await agent.store()
    index = request.turn_index
    for turn in await store.turns.between(request.conversation_id, start=index, end=index + 1):
        for message in turn.messages:
            for call in message.tool_calls:
                if call.uuid == request.call_id:
                    return call
    raise NotFoundError(f"Turn {index} has no such call.")
