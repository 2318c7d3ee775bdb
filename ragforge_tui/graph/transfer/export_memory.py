"""Export of a conversation's memory: summaries, insight, findings, attempts, topics, contexts and personas.

Vectors and search keys are not exported: they are derived again from the texts. A branch includes what belongs to the
turns it shares. `import_memory.py` is the reverse.
"""

from __future__ import annotations

from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.attempts import stored_attempts
from ragforge_tui.graph.store.commits import message_commit
from ragforge_tui.graph.store.conversations import in_pages, segments_of
from ragforge_tui.graph.store.findings import findings_of
from ragforge_tui.graph.store.insights import insight_uuid, stored_insight
from ragforge_tui.graph.store.records import given, record_from
from ragforge_tui.graph.store.summaries import Summaries
from ragforge_tui.graph.values import native
from ragforge_tui.shared.export_records import (
    MemoryExport,
    PersonaText,
    Spoken,
    StoredContext,
    SystemText,
    TopicEdge,
)
from ragforge_tui.shared.records import Summary, Topic

TOPIC_FIELDS = ("uuid", "name", "aliases", "created_at")
_ALL_TURNS = 2**31
_MAX_MERGES = 50
_PAGE = 500


class MemoryExporter:
    """Export of the memory of a conversation."""

    def __init__(self, graph: Graph, summaries: Summaries) -> None:
        self._graph = graph
        self._summaries = summaries

    async def memory(self, uuid: str) -> MemoryExport:
        """Return all of it but contexts and who spoke, in a stable order.

        Raises:
            NotFoundError: There is no such conversation.
        """
        summaries = await self._summaries.of(uuid)

        async def work(tx: Transaction) -> MemoryExport:
            topics, edges = await _topics(tx, summaries)
            return MemoryExport(
                summaries=summaries,
                insight=await stored_insight(tx, insight_uuid(uuid)),
                topics=topics,
                topic_edges=edges,
                personas=await _personas(tx, uuid),
                system_texts=await _system_texts(tx, uuid),
                commits=[message_commit(row) for row in await _of_turns(tx, uuid, 1, _ALL_TURNS, _COMMITS)],
                findings=await findings_of(tx, await segments_of(tx, uuid, 1, _ALL_TURNS)),
                attempts=await stored_attempts(tx, uuid),
            )

        return await self._graph.read(work)

    async def stamp(self, uuid: str) -> str:
        """Return a text that changes with all that `memory` returns.

        A branch has the summaries, topics and findings of its ancestors too, so their changes count.
        """

        async def work(tx: Transaction) -> str:
            segments = await segments_of(tx, uuid, 1, _ALL_TURNS)
            result = await tx.run(
                "UNWIND $ids AS id MATCH (c:Conversation {uuid: id}) OPTIONAL MATCH (c)-[:BEGINS_WITH]->(t:SystemText) "
                "WITH c, count(t) AS texts RETURN sum(coalesce(c.summary_sequence, 0) "
                "+ coalesce(c.summaries_replaced, 0) + coalesce(c.commits_linked, 0) "
                "+ coalesce(c.topics_changed, 0) + coalesce(c.findings_changed, 0) + coalesce(c.attempts_through, 0)) "
                "AS stored, sum(texts) AS texts",
                ids=list(dict.fromkeys([uuid, *(segment.conversation_id for segment in segments)])),
            )
            record = await result.single(strict=True)
            insight = await stored_insight(tx, insight_uuid(uuid))
            made = f" {insight.created_at.timestamp()}" if insight else ""
            return f"{record['stored']} {record['texts']}{made}"

        return await self._graph.read(work)

    async def contexts(self, uuid: str, *, start: int, end: int) -> list[StoredContext]:
        """Return the stored contexts of the turns [start, end), in order.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[StoredContext]:
            found: dict[str, StoredContext] = {}
            for row in await _of_turns(tx, uuid, start, end - 1, _CONTEXTS):
                context = found.setdefault(row["uuid"], _context(row))
                context.messages.append(row["message"])
            return list(found.values())

        return await self._graph.read(work)

    async def spoken(self, uuid: str, *, start: int, end: int) -> list[Spoken]:
        """Return the personas of the messages of turns [start, end), in order.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[Spoken]:
            return [Spoken(**row) for row in await _of_turns(tx, uuid, start, end - 1, _SPOKEN)]

        return await self._graph.read(work)


_COMMITS = (
    f"MATCH (m)-[:PRODUCED]->{own_node('k', 'Commit')} RETURN m.turn_index AS turn_index, m.uuid AS message, "
    "k.workspace AS workspace, k.hash AS hash, k.author AS author, "
    "k.subject AS subject, k.committed_at AS committed_at ORDER BY m.turn_index, m.position, k.committed_at, k.hash"
)
_CONTEXTS = (
    f"MATCH (m)-[:WAS_SENT]->{own_node('x', 'Context')} RETURN x.uuid AS uuid, x.items AS items, x.tokens AS tokens, "
    "x.digest AS digest, x.created_at AS at, m.uuid AS message, m.turn_index AS turn "
    "ORDER BY m.turn_index, m.position, x.uuid"
)
_SPOKEN = (
    f"MATCH (m)-[:SPOKEN_AS]->{own_node('p', 'Persona')} "
    "RETURN m.turn_index AS turn_index, m.uuid AS message, p.uuid AS persona "
    "ORDER BY m.turn_index, m.position, p.uuid"
)
_PERSONAS = (
    f"MATCH (m)-[:SPOKEN_AS]->{own_node('p', 'Persona')} "
    "RETURN DISTINCT p.uuid AS uuid, p.name AS name, p.digest AS digest, p.text AS text ORDER BY p.uuid"
)


async def _of_turns(tx: Transaction, uuid: str, first: int, last: int, ending: str) -> list[dict[str, Any]]:
    """Return rows of nodes linked to the messages `m` of turns [first, last], in order of the turns."""
    rows: list[dict[str, Any]] = []
    for page in in_pages(await segments_of(tx, uuid, max(first, 1), last), _PAGE):
        result = await tx.run(
            "UNWIND range($first, $last) AS turn "
            f"MATCH (m:Message {{conversation_id: $id, turn_index: turn}}) {ending}",
            id=page.conversation_id,
            first=page.first,
            last=page.last,
        )
        rows += [dict(record) async for record in result]
    return rows


def _context(row: dict[str, Any]) -> StoredContext:
    return StoredContext(
        uuid=row["uuid"],
        turn_index=row["turn"],
        messages=[],
        items=row["items"] or "",
        tokens=row["tokens"] or 0,
        digest=row["digest"] or "",
        created_at=native(row["at"]),
    )


async def _personas(tx: Transaction, uuid: str) -> list[PersonaText]:
    rows = await _of_turns(tx, uuid, 1, _ALL_TURNS, _PERSONAS)
    found = {row["uuid"]: PersonaText(**row) for row in rows}
    return [found[persona] for persona in sorted(found)]


async def _system_texts(tx: Transaction, uuid: str) -> list[SystemText]:
    """Return those of the conversation and of its ancestors, whose requests are exported too."""
    segments = await segments_of(tx, uuid, 1, _ALL_TURNS)
    result = await tx.run(
        "UNWIND $ids AS id MATCH (:Conversation {uuid: id})-[:BEGINS_WITH]->"
        f"{own_node('t', 'SystemText')} "
        "RETURN DISTINCT t.uuid AS uuid, t.digest AS digest, t.text AS text ORDER BY t.digest",
        ids=[uuid, *(segment.conversation_id for segment in segments if segment.conversation_id != uuid)],
    )
    return [SystemText(**dict(record)) async for record in result]


async def _topics(tx: Transaction, summaries: list[Summary]) -> tuple[list[Topic], list[TopicEdge]]:
    """Return the topics of summaries with their successors, and all edges to them."""
    edges: list[TopicEdge] = []
    wanted: set[str] = set()
    ids = [summary.uuid for summary in summaries]
    for start in range(0, len(ids), _PAGE):
        result = await tx.run(
            f"UNWIND $ids AS id MATCH (s:Summary {{uuid: id}})-[h:HAS_TOPIC]->{own_node('t', 'Topic')} "
            "RETURN id AS summary, coalesce(toStringOrNull(h.topic), t.uuid) AS topic, t.uuid AS root, "
            "h.confidence AS confidence, toStringOrNull(h.description) AS description",
            ids=ids[start : start + _PAGE],
        )
        async for row in result:
            wanted |= {row["topic"], row["root"]}
            edges.append(
                TopicEdge(
                    kind="has",
                    source=row["summary"],
                    target=row["topic"],
                    confidence=_sure(row["confidence"]),
                    description=row["description"] or "",
                )
            )
    edges += await _merges(tx, wanted)
    edges += await _relations(tx, wanted)
    edges.sort(key=lambda edge: (edge.kind, edge.source, edge.target))
    return await _nodes(tx, wanted), edges


async def _merges(tx: Transaction, wanted: set[str]) -> list[TopicEdge]:
    """Return the merges of the wanted topics; their successors are added to `wanted`."""
    edges: list[TopicEdge] = []
    asked: set[str] = set()
    for _ in range(_MAX_MERGES):
        fresh = sorted(wanted - asked)
        if not fresh:
            break
        asked |= wanted
        result = await tx.run(
            f"UNWIND $ids AS id MATCH (a:Topic {{uuid: id}})-[m:MERGED_INTO]->{own_node('b', 'Topic')} "
            "RETURN id AS source, b.uuid AS target, m.confidence AS confidence, "
            "coalesce(toStringOrNull(m.reason), '') AS reason, m.at AS at, toStringOrNull(m.conversation_id) AS by",
            ids=fresh,
        )
        async for row in result:
            wanted.add(row["target"])
            edges.append(
                TopicEdge(
                    kind="merged",
                    source=row["source"],
                    target=row["target"],
                    confidence=_sure(row["confidence"]),
                    reason=row["reason"],
                    conversation_id=row["by"] or "",
                    at=native(row["at"]),
                )
            )
    return edges


async def _relations(tx: Transaction, wanted: set[str]) -> list[TopicEdge]:
    result = await tx.run(
        "UNWIND $ids AS id MATCH (a:Topic {uuid: id})-[r:RELATED_TO]->(b:Topic) WHERE b.uuid IN $ids "
        "RETURN id AS source, b.uuid AS target, r.confidence AS confidence, toStringOrNull(r.reason) AS reason, "
        "toStringOrNull(r.conversation_id) AS by",
        ids=sorted(wanted),
    )
    return [
        TopicEdge(
            kind="related",
            source=row["source"],
            target=row["target"],
            confidence=_sure(row["confidence"]),
            reason=row["reason"] or "",
            conversation_id=row["by"] or "",
        )
        async for row in result
    ]


async def _nodes(tx: Transaction, wanted: set[str]) -> list[Topic]:
    result = await tx.run(
        "UNWIND $ids AS id MATCH (t:Topic {uuid: id}) "
        f"RETURN t {{{', '.join(f'.{name}' for name in TOPIC_FIELDS)}}} AS t",
        ids=sorted(wanted),
    )
    found = [topic async for record in result if (topic := record_from(Topic, given(record["t"], TOPIC_FIELDS)))]
    return sorted(found, key=lambda topic: (topic.name, topic.uuid))


def _sure(confidence: Any) -> float:
    return float(confidence) if isinstance(confidence, int | float) else 1.0
