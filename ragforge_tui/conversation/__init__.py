"""The public Python API: an agent whose conversations are kept in a graph."""

from ragforge_tui.conversation.agent import SETTLE_SECONDS, ConversationAgent
from ragforge_tui.conversation.conversation import Answer, Conversation

__all__ = ["SETTLE_SECONDS", "Answer", "Conversation", "ConversationAgent"]
