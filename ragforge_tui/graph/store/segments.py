"""Segments: which conversation of a chain of branches holds which turns.

A branch keeps only its own turns; those it shares are read from its parent, and from the parent of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.graph.store.conversations import find_conversation
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Conversation

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

_MIN_DENSE = 100
"""Turns that are looked for one by one without asking which exist: one page of a reader."""


class Segment(msgspec.Struct, frozen=True):
    """Turns `first` to `last`, inclusive, of one conversation of a chain of branches."""

    conversation_id: str
    first: int
    last: int


async def existing_conversation(tx: AsyncManagedTransaction, uuid: str) -> Conversation:
    """Return a conversation.

    Raises:
        NotFoundError: There is no such conversation.
    """
    found = await find_conversation(tx, uuid)
    if found is None:
        raise NotFoundError(f"There is no conversation {uuid!r}.")
    return found


async def segments_of(tx: AsyncManagedTransaction, conversation_id: str, first: int, last: int) -> list[Segment]:
    """Return the segments of the chain of branches that hold the turns [first, last], oldest first.

    Segments are safe to loop over: where the indexes reach further than there can be turns, as earlier releases let an
    import do, only the runs of turns that exist are returned.
    """
    current = await existing_conversation(tx, conversation_id)
    last = min(last, current.next_turn - 1)
    found: list[Segment] = []
    seen = {current.uuid}
    while first <= last:
        shared = (current.branch_turn or 0) if current.branch_of else 0
        if last > shared:
            segment = Segment(current.uuid, max(first, shared + 1), last)
            # A turn has at least one message, so more turns than messages means that most do not exist.
            dense = segment.last - segment.first < max(current.message_count, _MIN_DENSE)
            found += [segment] if dense else (await _runs(tx, segment))[::-1]
        last = min(last, shared)
        parent = await find_conversation(tx, current.branch_of) if current.branch_of and first <= last else None
        if parent is None or parent.uuid in seen:
            break
        seen.add(parent.uuid)
        current = parent
    return found[::-1]


async def _runs(tx: AsyncManagedTransaction, segment: Segment) -> list[Segment]:
    """The turns of a segment that exist, as runs without a gap, ascending."""
    result = await tx.run(
        "MATCH (m:Message {conversation_id: $id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
        "RETURN DISTINCT m.turn_index AS turn ORDER BY turn",
        id=segment.conversation_id,
        first=segment.first,
        last=segment.last,
    )
    runs: list[Segment] = []
    async for record in result:
        turn = record["turn"]
        if runs and turn == runs[-1].last + 1:
            runs[-1] = Segment(segment.conversation_id, runs[-1].first, turn)
        else:
            runs.append(Segment(segment.conversation_id, turn, turn))
    return runs
