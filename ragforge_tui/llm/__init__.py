"""Models: the LiteLLM client, the offline assistant, discovery, token counts.

The only package that imports litellm, and only inside functions: importing this package costs next to nothing. It is
separate because everything about providers (their names, errors, retries, prices) changes together.
"""

from ragforge_tui.llm.base import (
    IMAGES,
    PAST_REASONING,
    PROVIDER_STATE,
    THIS_MACHINE,
    ChatModel,
    Finished,
    KnownServers,
    LeftOut,
    ModelChoice,
    ModelPart,
    Progress,
    ReasoningPart,
    Retrying,
    TextPart,
    ThoughtEnded,
    ToolRequest,
)
from ragforge_tui.llm.check import check_model
from ragforge_tui.llm.client import LiteLLMModel, check_provider
from ragforge_tui.llm.connections import Connections
from ragforge_tui.llm.discover import ListedModel, choose_model, list_models, make_model
from ragforge_tui.llm.litellm_loader import preload
from ragforge_tui.llm.offline import OfflineAssistant
from ragforge_tui.llm.server_window import stated_window
from ragforge_tui.llm.tokens import count_tokens

__all__ = [
    "IMAGES",
    "PAST_REASONING",
    "PROVIDER_STATE",
    "THIS_MACHINE",
    "ChatModel",
    "Connections",
    "Finished",
    "KnownServers",
    "LeftOut",
    "ListedModel",
    "LiteLLMModel",
    "ModelChoice",
    "ModelPart",
    "OfflineAssistant",
    "Progress",
    "ReasoningPart",
    "Retrying",
    "TextPart",
    "ThoughtEnded",
    "ToolRequest",
    "check_model",
    "check_provider",
    "choose_model",
    "count_tokens",
    "list_models",
    "make_model",
    "preload",
    "stated_window",
]
