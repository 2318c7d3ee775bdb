"""Token budget of the past in a request, and the shares of its sections.

The shares are the project's own choice: the goal 5 %, the frontier of the summaries 10 %, recent files 5 %, topics
2 %, earlier queries 5 %; the rest goes to the newest and the recalled turns.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.settings.schema import MemorySettings

CHARS_PER_TOKEN = 4
ANSWER_TOKENS = 4_096
"""Reserved in the model's window for its answer; a quarter of the window if that is less."""
SMALLEST_PAST_TOKENS = 256

SHARES = {"goal": 0.05, "frontier": 0.10, "files": 0.05, "topics": 0.02, "queries": 0.05}


class Budget(msgspec.Struct, frozen=True):
    """Tokens for the past, and for its sections once the conversation no longer fits."""

    total: int

    def share(self, section: str) -> int:
        """Return the tokens a section may take."""
        return int(self.total * SHARES[section])

    @property
    def rest(self) -> int:
        """Tokens shared by the newest and the recalled turns."""
        return self.total - sum(self.share(section) for section in SHARES)


def past_budget(settings: MemorySettings, window: int, overhead: int) -> Budget:
    """Return the budget of the past.

    Args:
        window: Tokens the model reads at most.
        overhead: Tokens that are sent in any case: the stable part, the tools, the new message.
    """
    answer = min(ANSWER_TOKENS, window // 4)
    # The results of its tools make the running turn grow in addition to the past.
    available = (window - answer - overhead) * 2 // 3
    return Budget(max(SMALLEST_PAST_TOKENS, min(settings.max_context_chars // CHARS_PER_TOKEN, available)))
