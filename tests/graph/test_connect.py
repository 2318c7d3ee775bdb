"""Opening a graph and what goes wrong with it, on both backends."""

from __future__ import annotations

from ragforge_tui.graph import Graph


async def test_what_was_written_is_read_back(graph: Graph) -> None:
    async def write(tx):  # type: ignore[no-untyped-def]
        await tx.run("CREATE (:Conversation {uuid: 'a', title: 'é'})")

    await graph.write(write)
    assert await graph.query_readonly("MATCH (c:Conversation) RETURN c.title AS title") == [{"title": "é"}]
