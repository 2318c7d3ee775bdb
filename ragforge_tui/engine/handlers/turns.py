"""Requests about single turns: text search in a conversation, and branches."""

from __future__ import annotations

from typing import Any

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.shared import wire


async def answer(agent: ConversationAgent, request: wire.TurnRequest) -> Any:
    """Answer one request about turns.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    match request:
        case wire.FindText(conversation_id=conversation_id, text=text):
            return await (await agent.store()).search.find_text(conversation_id, text)
        case wire.BranchConversation(conversation_id=conversation_id, turn_index=turn_index):
            return (await agent.branch_conversation(conversation_id, turn_index)).record
