"""The public Python API: an agent whose conversations are kept in a graph."""

from ragforge_tui.conversation.agent import ConversationAgent
from ragforge_tui.conversation.answer import Answer
from ragforge_tui.conversation.conversation import SETTLE_SECONDS, Conversation
from ragforge_tui.conversation.reading import HistoryHit

__all__ = ["SETTLE_SECONDS", "Answer", "Conversation", "ConversationAgent", "HistoryHit"]
