"""Models: the LiteLLM client, the offline assistant, discovery, token counts.

The only room that imports litellm, and only inside functions: importing this package costs next to nothing. Cut
here because everything about providers (their names, errors, retries, prices) changes together.
"""

from ragforge_tui.llm.base import ChatModel, ModelChoice
from ragforge_tui.llm.offline import OfflineAssistant
from ragforge_tui.llm.parts import Finished, ModelPart, ReasoningPart, Retrying, TextPart, ToolRequest

__all__ = [
    "ChatModel",
    "Finished",
    "ModelChoice",
    "ModelPart",
    "OfflineAssistant",
    "ReasoningPart",
    "Retrying",
    "TextPart",
    "ToolRequest",
]
