"""Step 3: numbers of a conversation's summaries. Released, so it never changes.

Of two summaries made at once one is refused, whatever its range.
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Make the number of a summary unique in its conversation."""
    await dialect.declare("Summary", "sequence", "LONG")
    await dialect.create_unique("Summary", ("conversation_id", "sequence"))
    await dialect.await_indexes()
