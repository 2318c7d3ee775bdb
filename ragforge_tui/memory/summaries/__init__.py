"""Summaries in levels: the schedule, the text written with or without a model, and the storage.

Used by the work that runs after a turn. A package of its own because the tree has rules (ranges, watermarks, limits)
that recall and context only read.
"""

from ragforge_tui.memory.summaries.plan import Pending
from ragforge_tui.memory.summaries.summarizer import Summarizer

__all__ = ["Pending", "Summarizer"]
