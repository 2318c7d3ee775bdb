"""Questions that nobody asked, so that the first real ones are answered in time.

The embedded server runs on Java, which compiles what it does often: the first search of other conversations takes a
second, the tenth 50 ms, and one for a request has 150 ms.
"""

from __future__ import annotations

import time

from ragforge_tui.graph import Store
from ragforge_tui.memory.recall.recall import Recall
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import ConversationFilter

QUICK_SECONDS = 0.05
"""A search that takes no longer ends the rehearsal."""
MOST_QUESTIONS = 20


async def rehearse(recall: Recall, store: Store, workspace: str, pace: Pace) -> int:
    """Search other conversations until that is quick; return how often they were searched.

    Args:
        recall: Search of a conversation that has no turns.
        workspace: The folder whose conversations' titles are asked.
        pace: Holds each question back while something urgent is prepared.
    """
    newest = await store.conversations.matching(ConversationFilter(workspace=workspace, limit=MOST_QUESTIONS))
    titles = [conversation.title for conversation in newest if conversation.title]
    asked = 0
    quick = not titles
    if not quick:
        await recall.connect()
    while not quick and asked < MOST_QUESTIONS:
        await pace.clear()
        began = time.monotonic()
        await recall.recall(titles[asked % len(titles)], own=False)
        quick = time.monotonic() - began < QUICK_SECONDS
        asked += 1
    return asked
