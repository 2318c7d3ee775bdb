"""Step 5: commits that turns made, or that hold what turns wrote. Released, so it never changes."""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Make the label of commits and their relationship to messages."""
    for prop, kind in (("uuid", "STRING"), ("hash", "STRING"), ("workspace", "STRING")):
        await dialect.declare("Commit", prop, kind)
    await dialect.create_relationship_type("PRODUCED")
    await dialect.create_unique("Commit", ("uuid",))
    await dialect.create_range_index("Commit", ("hash",))
    await dialect.await_indexes()
