"""ragforge-chat: a terminal chat with an agent whose memory is a graph.

The names of the Python API are loaded when first used: importing the package costs nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragforge_tui.code.lookup import CodeLookup as CodeLookup
    from ragforge_tui.conversation.agent import ConversationAgent as ConversationAgent
    from ragforge_tui.conversation.answer import Answer as Answer
    from ragforge_tui.conversation.conversation import Conversation as Conversation
    from ragforge_tui.conversation.past import Past as Past
    from ragforge_tui.conversation.reading import HistoryHit as HistoryHit
    from ragforge_tui.conversation.sync import SyncConversation as SyncConversation
    from ragforge_tui.conversation.sync import SyncConversationAgent as SyncConversationAgent
    from ragforge_tui.llm.base import ChatModel as ChatModel
    from ragforge_tui.llm.embeddings import Embedder as Embedder
    from ragforge_tui.llm.functions import FunctionEmbedder as FunctionEmbedder
    from ragforge_tui.llm.functions import FunctionModel as FunctionModel
    from ragforge_tui.memory.context.builder import BuiltContext as BuiltContext
    from ragforge_tui.settings.load import load as load
    from ragforge_tui.settings.schema import Settings as Settings
    from ragforge_tui.shared.errors import ConfigError as ConfigError
    from ragforge_tui.shared.errors import GraphError as GraphError
    from ragforge_tui.shared.errors import ModelError as ModelError
    from ragforge_tui.shared.errors import NotFoundError as NotFoundError
    from ragforge_tui.shared.errors import RagforgeError as RagforgeError
    from ragforge_tui.shared.events import ApprovalRequested as ApprovalRequested
    from ragforge_tui.shared.past_records import PastChoice as PastChoice
    from ragforge_tui.tools.base import Tool as Tool
    from ragforge_tui.tools.base import ToolOutcome as ToolOutcome
    from ragforge_tui.tools.functions import tool as tool

# A program that sets up no logging gets no lines on its stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__version__ = "0.1.0"

_EXPORTS = {
    "Answer": "conversation.answer",
    "ApprovalRequested": "shared.events",
    "BuiltContext": "memory.context.builder",
    "ChatModel": "llm.base",
    "CodeLookup": "code.lookup",
    "ConfigError": "shared.errors",
    "Conversation": "conversation.conversation",
    "ConversationAgent": "conversation.agent",
    "Embedder": "llm.embeddings",
    "FunctionEmbedder": "llm.functions",
    "FunctionModel": "llm.functions",
    "GraphError": "shared.errors",
    "HistoryHit": "conversation.reading",
    "ModelError": "shared.errors",
    "NotFoundError": "shared.errors",
    "Past": "conversation.past",
    "PastChoice": "shared.past_records",
    "RagforgeError": "shared.errors",
    "Settings": "settings.schema",
    "SyncConversation": "conversation.sync",
    "SyncConversationAgent": "conversation.sync",
    "Tool": "tools.base",
    "ToolOutcome": "tools.base",
    "load": "settings.load",
    "tool": "tools.functions",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
