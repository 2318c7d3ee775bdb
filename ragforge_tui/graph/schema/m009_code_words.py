"""Step 9: words of the workspaces' code with their vectors. Released, so it never changes."""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Create the label of words and its index."""
    await dialect.declare("CodeWords", "workspace")
    await dialect.create_range_index("CodeWords", ("workspace",))
    await dialect.await_indexes()
