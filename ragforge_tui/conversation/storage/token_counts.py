"""Token counts of messages, computed in a thread before they are stored.

Most messages are counted in well under a millisecond. The first one of a process loads the vocabulary, and a huge paste
takes long too: such a message is stored with an estimate, which is corrected as soon as it is counted.
"""

from __future__ import annotations

import asyncio

from ragforge_tui.llm.tokens import CHARS_PER_TOKEN, count_tokens
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import Message

Count = asyncio.Task[int]


async def set_token_count(message: Message) -> Count | None:
    """Set a message's count; return the running count if only an estimate was set."""
    message.token_count = 0
    if not message.content:
        return None
    count = asyncio.create_task(asyncio.to_thread(count_tokens, message.content))
    await asyncio.wait({count}, timeout=LIMITS.token_count)
    if count.done():
        message.token_count = count.result()
        return None
    message.token_count = max(1, len(message.content) // CHARS_PER_TOKEN)
    return count


def count_imported(export: ConversationExport) -> ConversationExport:
    """Set the counts of all messages of an import, since files of other programs have others."""
    for turn in export.turns:
        for message in turn.messages:
            message.token_count = count_tokens(message.content)
    return export
