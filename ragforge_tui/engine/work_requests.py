"""Requests about what the agent may do in a conversation, and about what it did to files."""

from __future__ import annotations

from typing import Any

from ragforge_tui import protocol
from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.errors import NotFoundError


async def answer(agent: ConversationAgent, request: protocol.WorkRequest) -> Any:
    """Answer one request about the agent's work.

    Raises:
        RagforgeError: In words for the person.
    """
    conversation = _opened(agent, request.conversation_id)
    match request:
        case protocol.SetMode(mode=mode):
            conversation.mode = mode
            return mode


def _opened(agent: ConversationAgent, conversation_id: str) -> Conversation:
    conversation = agent.opened(conversation_id)
    if conversation is None:
        raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
    return conversation
