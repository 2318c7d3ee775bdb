"""Requests about single turns: text search in a conversation, and branches."""

from __future__ import annotations

from typing import Any

from ragforge_tui import protocol
from ragforge_tui.conversation import ConversationAgent


async def answer(agent: ConversationAgent, request: protocol.TurnRequest) -> Any:
    """Answer one request about turns.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    match request:
        case protocol.FindText(conversation_id=conversation_id, text=text):
            return await (await agent.store()).search.find_text(conversation_id, text)
        case protocol.BranchConversation(conversation_id=conversation_id, turn_index=turn_index):
            return (await agent.branch_conversation(conversation_id, turn_index)).record
