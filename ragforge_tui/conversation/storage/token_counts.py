"""Token counts of messages, computed in a thread: of those about to be stored, and of those earlier releases stored.

Most messages are counted in well under a millisecond. The first one of a process loads the vocabulary, and a huge paste
takes long too: such a message is stored with an estimate, which is corrected as soon as it is counted.
"""

from __future__ import annotations

import asyncio
import time

from ragforge_tui.conversation.background_model import ActiveTurns
from ragforge_tui.graph import Store
from ragforge_tui.graph.store.token_counts import EstimatedCount
from ragforge_tui.llm.tokens import CHARS_PER_TOKEN, count_tokens
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Message

COUNT_SECONDS = 0.004
"""Longest delay of storing a message by the count of its tokens."""

Count = asyncio.Task[int]


async def set_token_count(message: Message) -> Count | None:
    """Set a message's count; return the running count if only an estimate was set."""
    message.token_count = 0
    if not message.content:
        return None
    count = asyncio.create_task(asyncio.to_thread(count_tokens, message.content))
    await asyncio.wait({count}, timeout=COUNT_SECONDS)
    if count.done():
        message.token_count = count.result()
        return None
    message.token_count = max(1, len(message.content) // CHARS_PER_TOKEN)
    return count


async def count_stored(store: Store, active: ActiveTurns, pace: Pace) -> None:
    """Count the messages that earlier releases stored with a quarter of their length, once for each graph.

    Waits for running turns and for keys, and after each batch for as long as it took.
    """
    while conversation_id := await store.token_counts.next_conversation():
        turn = 1
        while turn:
            await active.wait_idle()
            await pace.clear()
            began = time.monotonic()
            messages, turn = await store.token_counts.estimated(conversation_id, turn)
            if changed := await asyncio.to_thread(_miscounted, messages):
                await store.token_counts.replace(changed)
            await asyncio.sleep(time.monotonic() - began)
        await store.token_counts.set_examined(conversation_id)


def _miscounted(messages: list[EstimatedCount]) -> dict[str, tuple[int, int]]:
    counted = {message.uuid: (message.tokens, count_tokens(message.content)) for message in messages}
    return {uuid: both for uuid, both in counted.items() if both[0] != both[1]}


def count_imported(export: ConversationExport) -> ConversationExport:
    """Set the counts of all messages of an import, since files of other programs and earlier versions have others."""
    for turn in export.turns:
        for message in turn.messages:
            message.token_count = count_tokens(message.content)
    return export
