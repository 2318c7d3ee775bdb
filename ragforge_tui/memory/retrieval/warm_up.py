"""Warm-up of the search in other conversations, so that the user's first questions are answered in time.

The embedded server reads an index from the disk with the searches that need it: in a graph of 10 000 turns the first
one takes six times as long as the tenth, and a request waits for it 150 ms at most.
"""

from __future__ import annotations

import time

from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval.recall import Recall
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import ConversationFilter

QUICK_SECONDS = 0.05
"""A search that takes no longer ends the warm-up."""
MAX_SEARCHES = 20


async def warm_up(recall: Recall, store: Store, workspace: str, pace: Pace) -> int:
    """Search other conversations until a search is quick; return the number of searches.

    Args:
        recall: Recall of a conversation without turns.
        workspace: The titles of this folder's newest conversations are the queries.
        pace: Throttle that each search waits for.
    """
    newest = await store.conversations.matching(ConversationFilter(workspace=workspace, limit=MAX_SEARCHES))
    titles = [conversation.title for conversation in newest if conversation.title]
    if not titles:
        return 0
    await recall.connect()
    for searches in range(MAX_SEARCHES):
        await pace.clear()
        began = time.monotonic()
        await recall.recall(titles[searches % len(titles)], own=False)
        if time.monotonic() - began < QUICK_SECONDS:
            return searches + 1
    return MAX_SEARCHES
