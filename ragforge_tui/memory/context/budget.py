"""How many tokens the past may take in a request, and how its sections share them.

The shares are the project's own: the goal 5 %, the frontier of the summaries 10 %, recent files 5 %, topics 2 %,
earlier queries 5 %; what is left goes to the newest turns and to what is recalled.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.config import MemorySettings

CHARS_PER_TOKEN = 4
ANSWER_TOKENS = 4_096
"""Kept free in the model's window for its answer; a quarter of a smaller window."""
SMALLEST_PAST_TOKENS = 256

SHARES = {"goal": 0.05, "frontier": 0.10, "files": 0.05, "topics": 0.02, "queries": 0.05}


class Budget(msgspec.Struct, frozen=True):
    """Tokens of the past, and of its sections when the conversation no longer fits."""

    total: int

    def share(self, section: str) -> int:
        """Tokens a section may take."""
        return int(self.total * SHARES[section])

    @property
    def rest(self) -> int:
        """What newest and recalled turns share."""
        return self.total - sum(self.share(section) for section in SHARES)


def past_budget(settings: MemorySettings, window: int, overhead: int) -> Budget:
    """The budget of the past.

    Args:
        window: Tokens the model reads at most.
        overhead: Tokens that are sent in any case: the stable part, the tools, the new message.
    """
    answer = min(ANSWER_TOKENS, window // 4)
    # The turn under way grows on top of the past by what its tools give back.
    room = (window - answer - overhead) * 2 // 3
    return Budget(max(SMALLEST_PAST_TOKENS, min(settings.max_context_chars // CHARS_PER_TOKEN, room)))
