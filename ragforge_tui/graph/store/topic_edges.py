"""Edges of topics, written within the transaction that stores a summary or changes a topic.

A topic that was merged keeps its node and its name; its edges move to its successor and carry the name that was
proposed, so that a merge can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.topic_names import MAX_NAME_CHARS, ProposedTopic, TopicLink, topic_key, topic_uuid
from ragforge_tui.graph.values import native
from ragforge_tui.shared.records import EXTRACTIVE, Summary, now
from ragforge_tui.shared.sanitize import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

_MAX_STEPS = 50


async def attach_topics(
    tx: AsyncManagedTransaction, summary: Summary, topics: Sequence[ProposedTopic], private_to: str
) -> None:
    """Add topics to a summary in the transaction that stores it; a name merged before resolves to its successor."""
    proposed: dict[str, ProposedTopic] = {}
    for topic in topics:
        if topic_key(topic.name):
            proposed.setdefault(topic_uuid(topic.name, private_to), topic)
    if not proposed:
        return
    moment = now()
    rows: list[dict[str, Any]] = [
        {
            "uuid": uuid,
            "name": storable(topic.name[:MAX_NAME_CHARS]),
            "description": storable(topic.description),
            "confidence": topic.confidence,
            # The first named counts as the older one, also where a backend keeps milliseconds only.
            "at": moment + timedelta(milliseconds=place),
        }
        for place, (uuid, topic) in enumerate(proposed.items())
    ]
    await tx.run(
        "UNWIND $rows AS row MERGE (t:Topic {uuid: row.uuid}) "
        "ON CREATE SET t.name = row.name, t.aliases = [], t.created_at = row.at",
        rows=rows,
    )
    await describe_topics(tx, rows, conversation_id=summary.conversation_id, made_by=summary.made_by)
    roots = await _roots_of(tx, list(proposed))
    await tx.run(
        "MATCH (s:Summary {uuid: $summary}) UNWIND $rows AS row MATCH (t:Topic {uuid: row.root}) "
        "MERGE (s)-[h:HAS_TOPIC {topic: row.uuid}]->(t) "
        "SET h.confidence = row.confidence, h.description = row.description",
        summary=summary.uuid,
        rows=[{**row, "root": roots[row["uuid"]]} for row in rows],
    )
    merged = [root for uuid, root in roots.items() if uuid != root]
    if merged:
        await _name_in_summaries(tx, merged, summary=summary.uuid)


async def describe_topics(
    tx: AsyncManagedTransaction, rows: Sequence[dict[str, Any]], *, conversation_id: str, made_by: str
) -> None:
    """Set the descriptions of topics that have none; a model's replaces an extracted one.

    It is part of the text that a topic is embedded by. What readers see is the description of an edge in their scope.
    The topic names the conversation, so that a purge removes the description as well.

    Args:
        rows: Each with `uuid` and `description`.
    """
    await tx.run(
        "UNWIND $rows AS row MATCH (t:Topic {uuid: row.uuid}) "
        "WHERE coalesce(t.description, '') = '' OR ($made_by <> $extractive AND t.described_by = $extractive) "
        "SET t.description = row.description, t.described_by = $made_by, t.described_in = $conversation, "
        # Without a model it counts as not embedded.
        "t.embedding = NULL, t.embedding_bytes = NULL, t.embed_model = NULL",
        rows=[{"uuid": row["uuid"], "description": row["description"]} for row in rows if row["description"]],
        made_by=made_by,
        extractive=EXTRACTIVE,
        conversation=conversation_id,
    )


async def _roots_of(tx: AsyncManagedTransaction, uuids: Sequence[str]) -> dict[str, str]:
    """Return the last successor of each of these topics; a topic that was not merged is its own."""
    result = await tx.run(
        "UNWIND $ids AS id MATCH (:Topic {uuid: id})-[:MERGED_INTO]->(:Topic) RETURN DISTINCT id", ids=list(uuids)
    )
    merged = {record["id"] async for record in result}
    return {uuid: await root_in(tx, uuid) if uuid in merged else uuid for uuid in uuids}


async def link_topics(
    tx: AsyncManagedTransaction, links: Sequence[TopicLink], private_to: str, conversation_id: str
) -> None:
    """Merge the topics linked as the same, relate the others; unknown names are left out."""
    for link in links:
        a, b = topic_uuid(link.a, private_to), topic_uuid(link.b, private_to)
        if link.same:
            await merge_in(tx, a, b, confidence=link.confidence, reason=link.reason, conversation_id=conversation_id)
        elif link.confidence > 0:
            await relate_in(tx, a, b, confidence=link.confidence, reason=link.reason, conversation_id=conversation_id)


async def merge_in(
    tx: AsyncManagedTransaction, a: str, b: str, *, confidence: float, reason: str = "", conversation_id: str
) -> str:
    """Merge two topics; the id of the one they are, empty when one does not exist."""
    found = [await _node(tx, await root_in(tx, uuid)) for uuid in (a, b)]
    ages = sorted((native(node["created_at"]), node["uuid"], node["name"]) for node in found if node)
    if len(ages) < 2 or ages[0][1] == ages[1][1]:
        return ages[0][1] if len(ages) == 2 else ""
    (_, winner, _), (_, loser, name) = ages
    names = [name, *(await _node(tx, loser) or {}).get("aliases", [])]
    await tx.run(
        "MATCH (l:Topic {uuid: $loser}), (w:Topic {uuid: $winner}) "
        "SET w.aliases = [x IN coalesce(w.aliases, []) WHERE NOT x IN $names] + $names "
        "MERGE (l)-[m:MERGED_INTO]->(w) SET m.confidence = $confidence, m.reason = $reason, m.at = $at, "
        "m.conversation_id = $source",
        loser=loser,
        winner=winner,
        names=names,
        confidence=confidence,
        reason=storable(reason),
        at=now(),
        source=conversation_id,
    )
    await _move(tx, loser, winner, None)
    await _name_in_summaries(tx, [winner], former=names)
    await _note_change(tx, [winner])
    return str(winner)


async def unmerge_in(tx: AsyncManagedTransaction, uuid: str) -> bool:
    """Undo a merge; False when the topic was not merged."""
    root = await root_in(tx, uuid)
    if root == uuid:
        return False
    await tx.run("MATCH (t:Topic {uuid: $uuid})-[m:MERGED_INTO]->(:Topic) DELETE m", uuid=uuid)
    roots = await roots_in(tx)
    family = [uuid, *(member for member, top in roots.items() if top == uuid)]
    await _move(tx, root, uuid, family)
    names = [node["name"] for node in [await _node(tx, member) for member in family] if node]
    await tx.run(
        "MATCH (w:Topic {uuid: $root}) SET w.aliases = [x IN coalesce(w.aliases, []) WHERE NOT x IN $names]",
        root=root,
        names=names,
    )
    await _name_in_summaries(tx, [root, uuid], former=[(await _node(tx, root) or {}).get("name", "")])
    await _note_change(tx, [root, uuid])
    return True


async def relate_in(
    tx: AsyncManagedTransaction, a: str, b: str, *, confidence: float, reason: str, conversation_id: str
) -> None:
    """Relate two topics, never one to itself; a greater confidence replaces a smaller one."""
    first, second = sorted((await root_in(tx, a), await root_in(tx, b)))
    if first == second:
        return
    await tx.run(
        "MATCH (a:Topic {uuid: $a}), (b:Topic {uuid: $b}) MERGE (a)-[r:RELATED_TO]->(b) "
        "WITH r WHERE coalesce(r.confidence, -1.0) < $confidence "
        "SET r.confidence = $confidence, r.reason = $reason, r.conversation_id = $source",
        a=first,
        b=second,
        confidence=confidence,
        reason=storable(reason),
        source=conversation_id,
    )


async def _move(tx: AsyncManagedTransaction, source: str, target: str, proposed: list[str] | None) -> None:
    """Move HAS_TOPIC edges from one topic to another: all, or those proposed as one of these."""
    result = await tx.run(
        "MATCH (s:Summary)-[h:HAS_TOPIC]->(:Topic {uuid: $source}) WHERE $proposed IS NULL OR h.topic IN $proposed "
        "RETURN s.uuid AS summary, h.topic AS topic, h.confidence AS confidence, h.description AS description",
        source=source,
        proposed=proposed,
    )
    rows = [dict(record) async for record in result]
    for start in range(0, len(rows), 500):
        batch = rows[start : start + 500]
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}), (t:Topic {uuid: $target}) "
            "MERGE (s)-[h:HAS_TOPIC {topic: row.topic}]->(t) "
            "SET h.confidence = row.confidence, h.description = row.description",
            rows=batch,
            target=target,
        )
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary})"
            "-[h:HAS_TOPIC {topic: row.topic}]->(:Topic {uuid: $source}) DELETE h",
            rows=batch,
            source=source,
        )


async def _name_in_summaries(
    tx: AsyncManagedTransaction, topics: Sequence[str], *, former: Sequence[str] = (), summary: str = ""
) -> None:
    """Write the names that topics have now into the summaries that have them.

    A name that no summary of the same folder proposed stays out of it, and one of a private conversation out of others.

    Args:
        former: Names that they may have had before, which are removed.
        summary: The only summary to change; empty for all.
    """
    outdated = {topic_key(name) for name in former}
    result = await tx.run(
        "MATCH (s:Summary)-[:HAS_TOPIC]->(t:Topic) WHERE t.uuid IN $topics AND ($summary = '' OR s.uuid = $summary) "
        "WITH DISTINCT s MATCH (c:Conversation {uuid: s.conversation_id}) "
        "MATCH (s)-[h:HAS_TOPIC]->(t:Topic) MATCH (p:Topic {uuid: h.topic}) "
        "RETURN s.uuid AS summary, s.topics AS topics, h.topic AS proposed, p.name AS said, t.uuid AS topic, "
        "t.name AS name, c.uuid AS conversation, c.workspace AS folder ORDER BY summary, proposed",
        topics=list(topics),
        summary=summary,
    )
    rows = [dict(record) async for record in result]
    result = await tx.run(
        "MATCH (s:Summary)-[h:HAS_TOPIC]->(t:Topic) WHERE t.uuid IN $topics AND h.topic = t.uuid "
        "MATCH (c:Conversation {uuid: s.conversation_id}) RETURN DISTINCT t.uuid AS topic, c.uuid AS conversation, "
        "c.workspace AS folder, coalesce(c.private, false) = true OR c.status = 'deleted' AS hidden",
        topics=list({row["topic"] for row in rows}),
    )
    known: set[tuple[str, str]] = set()
    async for record in result:
        known.add((record["topic"], record["conversation"]))
        if not record["hidden"]:
            known.add((record["topic"], record["folder"]))
    edges: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        edges.setdefault(row["summary"], []).append(row)
    changed: list[dict[str, Any]] = []
    for uuid, found in edges.items():
        names: dict[str, str] = {}
        for row in found:
            own = row["proposed"] != row["topic"] and known.isdisjoint(
                {(row["topic"], row["conversation"]), (row["topic"], row["folder"])}
            )
            # Before a merge it has the name it proposed, after one that of the successor: both mean this topic.
            current = row["said"] if own else row["name"]
            names.setdefault(topic_key(row["said"]), current)
            if row["proposed"] != row["topic"]:
                names.setdefault(topic_key(row["name"]), current)
        before = list(found[0]["topics"] or [])
        kept = [name for name in before if topic_key(name) in names or topic_key(name) not in outdated]
        wanted = [names.pop(topic_key(name), name) for name in kept]
        wanted += [name for name in dict.fromkeys(names.values()) if name not in wanted]
        wanted = list({topic_key(name): name for name in reversed(wanted)}.values())[::-1]
        if wanted != before:
            changed.append({"uuid": uuid, "topics": wanted})
    for start in range(0, len(changed), 500):
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.uuid}) SET s.topics = row.topics",
            rows=changed[start : start + 500],
        )


async def _note_change(tx: AsyncManagedTransaction, topics: Sequence[str]) -> None:
    """Count the change in the conversations with these topics, whose exports hold them."""
    await tx.run(
        "MATCH (t:Topic)<-[:HAS_TOPIC]-(s:Summary) WHERE t.uuid IN $topics WITH DISTINCT s.conversation_id AS id "
        "MATCH (c:Conversation {uuid: id}) SET c.topics_changed = coalesce(c.topics_changed, 0) + 1",
        topics=list(topics),
    )


async def _node(tx: AsyncManagedTransaction, uuid: str) -> dict[str, Any] | None:
    result = await tx.run(
        "MATCH (t:Topic {uuid: $uuid}) "
        "RETURN t.uuid AS uuid, t.name AS name, t.created_at AS created_at, coalesce(t.aliases, []) AS aliases",
        uuid=uuid,
    )
    record = await result.single()
    return dict(record) if record else None


async def root_in(tx: AsyncManagedTransaction, uuid: str) -> str:
    """Return the last successor of a topic; a topic that was not merged is its own."""
    for _ in range(_MAX_STEPS):
        result = await tx.run(
            "MATCH (:Topic {uuid: $uuid})-[:MERGED_INTO]->(w:Topic) "
            "RETURN w.uuid AS uuid ORDER BY w.created_at, w.uuid LIMIT 1",
            uuid=uuid,
        )
        record = await result.single()
        if record is None:
            break
        uuid = record["uuid"]
    return uuid


async def roots_in(tx: AsyncManagedTransaction) -> dict[str, str]:
    """Return the last successor of each merged topic."""
    result = await tx.run(
        f"MATCH {own_node('t', 'Topic')}-[:MERGED_INTO]->{own_node('w', 'Topic')} "
        "RETURN t.uuid AS uuid, w.uuid AS into, w.created_at AS at"
    )
    into: dict[str, tuple[datetime, str]] = {}
    async for record in result:
        older = (native(record["at"]), record["into"])
        into[record["uuid"]] = min(older, into.get(record["uuid"], older))
    roots = {}
    for uuid in into:
        current = uuid
        while current in into:
            current = into[current][1]
        roots[uuid] = current
    return roots
