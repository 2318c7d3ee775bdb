"""The one search: questions, sources, ranking, packing, and the recipes that say how each question is answered.

`recipes.py` is the page to read first. The graph supplies the turns of other
conversations, llm supplies vectors and token counts.
"""

from ragforge_tui.memory.retrieval.candidates import Candidate
from ragforge_tui.memory.retrieval.index import ConversationIndex
from ragforge_tui.memory.retrieval.index_sync import catch_up, reembed
from ragforge_tui.memory.retrieval.keys import lex_key, turn_text
from ragforge_tui.memory.retrieval.packing import Recalled, render_turns
from ragforge_tui.memory.retrieval.question import Questions
from ragforge_tui.memory.retrieval.recall import Recall

__all__ = [
    "Candidate",
    "ConversationIndex",
    "Questions",
    "Recall",
    "Recalled",
    "catch_up",
    "lex_key",
    "reembed",
    "render_turns",
    "turn_text",
]
