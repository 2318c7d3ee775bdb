"""Step 10: the lines that calls changed, and commits only of the turns that made them. Released, so it never changes.

A commit was also linked to one turn whose file it holds, which was wrong for the lines of the other turns in it.
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect


async def apply(dialect: Dialect, dimension: int) -> None:
    """Create the relationship from a call to the files whose lines it changed; drop the links that were guessed."""
    await dialect.create_relationship_type("CHANGED")
    await dialect.update("MATCH (:Message)-[p:PRODUCED]->(:Commit) WHERE p.found DELETE p")
    await dialect.update("MATCH (k:Commit) WHERE NOT (k)--() DELETE k")
