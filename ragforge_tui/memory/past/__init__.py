"""Questions to many past conversations: quotes that answer one, and the work of some days."""

from __future__ import annotations

from ragforge_tui.memory.past.question import PastQuestions
from ragforge_tui.memory.past.quotes import Quotation, best_quote
from ragforge_tui.memory.past.standup import work_done

__all__ = ["PastQuestions", "Quotation", "best_quote", "work_done"]
