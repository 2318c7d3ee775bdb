"""Search over past turns: their keys, the index of an open conversation, ranking and packing.

Used by the conversation, for the context of a turn and for the memory tools. The graph supplies the turns of other
conversations, llm supplies vectors and token counts.
"""

from ragforge_tui.memory.recall.index import ConversationIndex
from ragforge_tui.memory.recall.index_sync import catch_up, reembed
from ragforge_tui.memory.recall.keys import lex_key, turn_text
from ragforge_tui.memory.recall.packing import (
    Recalled,
    RecalledFinding,
    RecalledSummary,
    RecalledTurn,
    render_turns,
)
from ragforge_tui.memory.recall.recall import Recall

__all__ = [
    "ConversationIndex",
    "Recall",
    "Recalled",
    "RecalledFinding",
    "RecalledSummary",
    "RecalledTurn",
    "catch_up",
    "lex_key",
    "reembed",
    "render_turns",
    "turn_text",
]
