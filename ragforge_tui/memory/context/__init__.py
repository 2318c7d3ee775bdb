"""Context of a request: the past within one budget, section by section, and its storage for a later look.

The same sections always give the same request, so a stored context can be verified by its digest.
"""

from ragforge_tui.memory.context.builder import (
    BuiltContext,
    ContextBuilder,
    ContextInputs,
    ContextOptions,
    Strategy,
    SystemPart,
    answer_tokens,
    past_tokens,
    system_tokens,
    without_memory,
)
from ragforge_tui.memory.context.choices import ContextChoices
from ragforge_tui.memory.context.code import scope_with_text
from ragforge_tui.memory.context.places import all_turns_fit, recalled_amounts
from ragforge_tui.memory.context.sections import PERSONA_PART
from ragforge_tui.memory.context.stored import StoredContext, accounted, look_up, to_stored
from ragforge_tui.memory.context.wishes import wishes_section

__all__ = [
    "PERSONA_PART",
    "BuiltContext",
    "ContextBuilder",
    "ContextChoices",
    "ContextInputs",
    "ContextOptions",
    "StoredContext",
    "Strategy",
    "SystemPart",
    "accounted",
    "all_turns_fit",
    "answer_tokens",
    "look_up",
    "past_tokens",
    "recalled_amounts",
    "scope_with_text",
    "system_tokens",
    "to_stored",
    "wishes_section",
    "without_memory",
]
