"""Summaries in levels: when one is due, how it is written with a model or without, and how it is stored.

Used by whatever runs after a turn. Cut here because the tree has rules of its own (ranges, watermarks, limits) that
recall and context only read.
"""

from ragforge_tui.memory.summaries.plan import Pending
from ragforge_tui.memory.summaries.summarizer import Summarizer

__all__ = ["Pending", "Summarizer"]
