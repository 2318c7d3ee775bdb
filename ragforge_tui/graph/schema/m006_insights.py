"""Step 6: insights of conversations. Released, so it never changes.

The first release made constraints of this label that nothing used; graphs that have them keep them.
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Create the label of insights, the relationship to them, and their indexes."""
    await dialect.declare("Insight", "uuid")
    await dialect.declare("Insight", "conversation_id")
    await dialect.create_relationship_type("HAS_INSIGHT")
    await dialect.create_unique("Insight", ("uuid",))
    await dialect.create_range_index("Insight", ("conversation_id",))
    await dialect.await_indexes()
