"""Nodes of other programs that have a label of this one's: counted, and otherwise left alone."""

from __future__ import annotations

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.labels import ALL, lacking


class ForeignNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a label that are not this program's.

    Attributes:
        lacks: Properties that they lack, or that have another type.
    """

    label: str
    nodes: int
    lacks: list[str]

    def __str__(self) -> str:
        return f"{self.nodes} {self.label} without a valid {', '.join(self.lacks)}"


async def count_foreign_nodes(graph: Graph) -> list[ForeignNodes]:
    """Count the nodes of other programs that have a label of this program's, by label."""
    found: list[ForeignNodes] = []
    for label in ALL:
        rows = await graph.rows(
            # Neo4j may answer `NOT n.x IS :: STRING NOT NULL` from an index, which lacks the nodes without x.
            f"MATCH (n:{label}) WITH {lacking('n', label)} AS lacks WHERE size(lacks) > 0 "
            "RETURN lacks, count(*) AS nodes ORDER BY nodes DESC"
        )
        found += [ForeignNodes(label=label, nodes=row["nodes"], lacks=row["lacks"]) for row in rows]
    return found
