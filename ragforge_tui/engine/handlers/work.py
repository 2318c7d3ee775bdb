"""Requests about the agent's permissions in a conversation and its changes to files."""

from __future__ import annotations

from typing import Any

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.shared import wire
from ragforge_tui.shared.errors import NotFoundError


async def answer(agent: ConversationAgent, request: wire.WorkRequest) -> Any:
    """Answer one request about the agent's work.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    conversation = _opened(agent, request.conversation_id)
    match request:
        case wire.SetMode(mode=mode):
            conversation.mode = mode
            return mode
        case wire.SessionDiff():
            return await conversation.diff()
        case wire.PlanUndo(turn_index=turn, redo=redo):
            return await conversation.plan_undo(turn, redo=redo)
        case wire.UndoTurn(turn_index=turn, message_id=message_id):
            return await conversation.undo(turn, message_id)
        case wire.RunShell(command=command, message_id=message_id):
            return await conversation.run_command(command, message_id)


def _opened(agent: ConversationAgent, conversation_id: str) -> Conversation:
    conversation = agent.opened(conversation_id)
    if conversation is None:
        raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
    return conversation
