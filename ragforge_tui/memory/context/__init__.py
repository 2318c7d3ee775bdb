"""What a request holds: the past within one budget, section by section, and how that is stored and shown again."""

from ragforge_tui.memory.context.block import PERSONA_PART
from ragforge_tui.memory.context.builder import (
    BuiltContext,
    ContextBuilder,
    ContextInputs,
    SystemPart,
    without_memory,
)
from ragforge_tui.memory.context.stored import StoredContext, look_up, to_stored

__all__ = [
    "PERSONA_PART",
    "BuiltContext",
    "ContextBuilder",
    "ContextInputs",
    "StoredContext",
    "SystemPart",
    "look_up",
    "to_stored",
    "without_memory",
]
