"""Step 2: the stable beginning of requests, stored once per text. Released, so it never changes."""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Create the label of system texts and the relationship to them."""
    await dialect.declare("SystemText", "uuid")
    await dialect.create_relationship_type("BEGINS_WITH")
    await dialect.create_unique("SystemText", ("uuid",))
    await dialect.await_indexes()
