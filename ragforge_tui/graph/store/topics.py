"""Topics in the graph: searched, opened, merged and related.

A topic's id is derived from its normalised name, so the same name is the same node whoever proposes it; the topics of a
private conversation are nodes of their own. A summary keeps the name it proposed, so that a reader with access to some
conversations sees only the names proposed there.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.store.records import derived
from ragforge_tui.graph.values import native
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, RelatedTopic, Summary, Topic, now
from ragforge_tui.shared.sanitize import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connection import Graph


MERGE_CONFIDENCE = 0.8
"""Confidence from which two topics are merged; below it, they are related."""
SHOWN_EXTRACTS = 2
"""Extracted summaries of turns that must name a topic before it is shown: the words of one are often accidental."""
MAX_NAME_CHARS = 80
_MAX_STEPS = 50


class ProposedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as a summary proposes it."""

    name: str
    description: str = ""
    confidence: float = 1.0


class TopicLink(msgspec.Struct, frozen=True, kw_only=True):
    """That two topics, by their names, are the same or near each other."""

    a: str
    b: str
    confidence: float
    reason: str = ""


def topic_key(name: str) -> str:
    """Return the form in which names are compared: NFKC, case folded, letters and digits of all scripts."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(re.sub(r"[^\w\s+#]|_", " ", folded).split())


def topic_uuid(name: str, private_to: str = "") -> str:
    """Return the id of the topic with this name; `private_to` is the private conversation it belongs to."""
    return derived("topic", private_to, topic_key(name))


def worth_showing(by_model: int, extracts: int) -> bool:
    """Return whether a topic is shown and offered to models.

    Args:
        by_model: Number of summaries written by a model that name it.
        extracts: Number of extracts of turns that name it; extracts of other levels only repeat them.
    """
    return by_model > 0 or extracts >= SHOWN_EXTRACTS


def shown_topics(summaries: Iterable[Summary]) -> list[str]:
    """Return the topics of summaries that are `worth_showing`, the most frequent first."""
    named: Counter[str] = Counter()
    by_model: Counter[str] = Counter()
    extracts: Counter[str] = Counter()
    for summary in summaries:
        named.update(summary.topics)
        if summary.made_by != EXTRACTIVE:
            by_model.update(summary.topics)
        elif summary.level == 1:
            extracts.update(summary.topics)
    return [name for name, _ in named.most_common() if worth_showing(by_model[name], extracts[name])]


class TopicScope(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations whose summaries count.

    Attributes:
        workspace: Only conversations of this folder; None: of all.
        conversation_id: Only this conversation, which may be private; it wins over `workspace`.
    """

    workspace: str | None = None
    conversation_id: str = ""


class Topics:
    """Topics, and which of them are the same or related."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def search(
        self, query: str = "", *, limit: int = 50, workspace: str | None = None, conversation_id: str = ""
    ) -> list[Topic]:
        """Return topics whose name or alias contains all words of `query`, those with most conversations first.

        A topic that no model named, and only one extract, is left out; `get` finds it by its name.

        Only what conversations in scope proposed is seen: neither private conversations (unless named by
        `conversation_id`) nor deleted ones, nor those of another workspace, show a name, an alias or a relation.
        """
        scope = TopicScope(workspace=workspace, conversation_id=conversation_id)
        found = await self._visible_topics(scope, confirmed=True)
        words = topic_key(query).split()
        hits = [topic for topic in found if all(any(word in key for key in _keys(topic)) for word in words)]
        hits.sort(key=lambda t: (-t.conversations, -t.summaries, topic_key(t.name), t.uuid))
        return hits[:limit]

    async def get(self, ref: str, *, workspace: str | None = None, conversation_id: str = "") -> Topic:
        """Return the topic with this id, name or alias; for a merged one, its successor.

        Raises:
            NotFoundError: No conversation in scope has it.
        """
        found = await self._visible_topics(TopicScope(workspace=workspace, conversation_id=conversation_id))
        key = topic_key(ref)
        by_id = [t for t in found if ref == t.uuid or any(r.uuid == ref for r in t.related if r.relation == "merged")]
        by_name = [t for t in found if topic_key(t.name) == key]
        for hits in (by_id, by_name, [t for t in found if key in _keys(t)]):
            if hits:
                return max(hits, key=lambda t: (t.conversations, t.summaries, t.uuid))
        raise NotFoundError(f"There is no topic {ref!r}.", todo="`ragforge-chat topics` lists all topics.")

    async def turns(
        self, ref: str, *, workspace: str | None = None, conversation_id: str = ""
    ) -> dict[str, list[tuple[int, int]]]:
        """Return ranges of turns, inclusive, whose summaries have the topic, by conversation; of L1 if there is one.

        Raises:
            NotFoundError: No conversation in scope has it.
        """
        topic = await self.get(ref, workspace=workspace, conversation_id=conversation_id)
        scope = TopicScope(workspace=workspace, conversation_id=conversation_id)

        async def work(tx: AsyncManagedTransaction) -> list[dict[str, Any]]:
            family = [uuid for uuid, root in (await roots_in(tx)).items() if root == topic.uuid]
            where, parameters = _in_scope(scope)
            result = await tx.run(
                "MATCH (t:Topic)<-[:HAS_TOPIC]-(s:Summary) WHERE t.uuid IN $topics "
                f"MATCH (c:Conversation {{uuid: s.conversation_id}}) WHERE {where} "
                "RETURN DISTINCT c.uuid AS id, s.level AS level, s.start_turn_index AS first, s.end_turn_index AS last",
                topics=[topic.uuid, *family],
                **parameters,
            )
            return [dict(record) async for record in result]

        rows = await self._graph.read(work)
        ranges: dict[str, list[tuple[int, int]]] = {}
        for row in sorted(rows, key=lambda r: (r["id"], r["level"], r["first"])):
            lowest = min(r["level"] for r in rows if r["id"] == row["id"])
            if row["level"] == lowest:
                ranges.setdefault(row["id"], []).append((row["first"], row["last"]))
        return ranges

    async def merge(self, a: str, b: str, *, confidence: float = 1.0) -> Topic:
        """Make two topics, by id, one: the younger is merged into the older. Nothing when they are one already.

        Returns:
            The topic both are.

        Raises:
            NotFoundError: One of them does not exist.
        """

        async def work(tx: AsyncManagedTransaction) -> str:
            return await merge_in(tx, a, b, confidence=confidence, conversation_id="")

        root = await self._graph.write(work)
        if not root:
            raise NotFoundError(f"There is no topic {a!r} or no topic {b!r}.")
        return await self._with_own_properties(root)

    async def unmerge(self, uuid: str) -> Topic:
        """Undo the merge of a topic into another one; the topic gets its own edges back.

        Raises:
            NotFoundError: There is no such topic, or it was not merged.
        """

        async def work(tx: AsyncManagedTransaction) -> bool:
            return await unmerge_in(tx, uuid)

        if not await self._graph.write(work):
            raise NotFoundError(f"There is no merged topic {uuid!r}.")
        return await self._with_own_properties(uuid)

    async def unmerge_named(self, ref: str) -> Topic:
        """Undo the merge of a topic given by its id, by its own name, or by that of the topic it became.

        The last only while there is no doubt which one is meant.

        Raises:
            NotFoundError: No such topic was merged.
        """
        found = await self.get(ref)
        merged = [near for near in found.related if near.relation == "merged"]
        meant = [near for near in merged if ref == near.uuid or topic_key(near.name) == topic_key(ref)] or merged
        if len(meant) != 1:
            names = ", ".join(near.name for near in merged)
            what = (
                f"Several topics were merged into {found.name!r}: {names}."
                if merged
                else (f"Nothing was merged into {found.name!r}.")
            )
            raise NotFoundError(what, todo="Give the name of the merged one." if merged else "")
        return await self.unmerge(meant[0].uuid)

    async def relate(self, a: str, b: str, *, confidence: float, reason: str = "") -> None:
        """Relate two topics, by id."""

        async def work(tx: AsyncManagedTransaction) -> None:
            await relate_in(tx, a, b, confidence=confidence, reason=reason, conversation_id="")

        await self._graph.write(work)

    async def _with_own_properties(self, uuid: str) -> Topic:
        """Return a topic with its own properties only."""

        async def work(tx: AsyncManagedTransaction) -> dict[str, Any]:
            result = await tx.run(
                "MATCH (t:Topic {uuid: $uuid}) RETURN t.uuid AS uuid, t.name AS name, t.description AS description, "
                "t.aliases AS aliases, t.created_at AS created_at",
                uuid=uuid,
            )
            return dict(await result.single(strict=True))

        row = await self._graph.read(work)
        return Topic(
            uuid=row["uuid"],
            name=row["name"],
            description=row["description"] or "",
            aliases=list(row["aliases"] or []),
            created_at=native(row["created_at"]),
        )

    async def _visible_topics(self, scope: TopicScope, *, confirmed: bool = False) -> list[Topic]:
        """Return all topics as a reader of `scope` sees them, or those that are `worth_showing`."""

        async def work(
            tx: AsyncManagedTransaction,
        ) -> tuple[list[dict[str, Any]], dict[str, str], list[dict[str, Any]]]:
            where, parameters = _in_scope(scope)
            result = await tx.run(
                "MATCH (t:Topic)<-[h:HAS_TOPIC]-(s:Summary) "
                f"MATCH (c:Conversation {{uuid: s.conversation_id}}) WHERE {where} "
                "RETURN h.topic AS proposed, c.uuid AS conversation, count(DISTINCT s.uuid) AS summaries, "
                "sum(CASE WHEN s.made_by = $extractive THEN 0 ELSE 1 END) AS by_model, "
                "sum(CASE WHEN s.made_by = $extractive AND s.level = 1 THEN 1 ELSE 0 END) AS extracts",
                extractive=EXTRACTIVE,
                **parameters,
            )
            rows = [dict(record) async for record in result]
            return rows, await roots_in(tx), await _related(tx, scope)

        rows, roots, related = await self._graph.read(work)
        nodes = await self._nodes(sorted({row["proposed"] for row in rows}))
        grouped: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["proposed"] in nodes:
                grouped.setdefault(roots.get(row["proposed"], row["proposed"]), []).append(row)
        topics = {
            root: _topic(root, members, nodes)
            for root, members in grouped.items()
            if not confirmed or worth_showing(*(sum(row[by] for row in members) for by in ("by_model", "extracts")))
        }
        _add_relations(topics, roots, related)
        return list(topics.values())

    async def _nodes(self, uuids: list[str]) -> dict[str, dict[str, Any]]:
        return {
            record["uuid"]: record
            for record in await self._graph.rows(
                "UNWIND $ids AS id MATCH (t:Topic {uuid: id}) "
                "RETURN t.uuid AS uuid, t.name AS name, t.description AS description, t.created_at AS created_at",
                ids=uuids,
            )
        }


def _topic(root: str, members: list[dict[str, Any]], nodes: dict[str, dict[str, Any]]) -> Topic:
    """Return a topic as proposed by conversations in scope; the root's own name only if one of them proposed it."""
    said: Counter[str] = Counter()
    for row in members:
        said[row["proposed"]] += row["summaries"]
    first = root if root in said else max(said, key=lambda uuid: (said[uuid], uuid))
    others = [uuid for uuid in said if uuid != first]
    return Topic(
        uuid=root,
        name=nodes[first]["name"],
        description=nodes[first]["description"] or "",
        aliases=sorted(nodes[uuid]["name"] for uuid in others),
        created_at=native(nodes[first]["created_at"]),
        summaries=sum(said.values()),
        conversations=len({row["conversation"] for row in members}),
        related=[RelatedTopic(uuid=uuid, name=nodes[uuid]["name"], relation="merged") for uuid in sorted(others)],
    )


def _add_relations(topics: dict[str, Topic], roots: dict[str, str], related: list[dict[str, Any]]) -> None:
    """Add the relations between topics in scope to both their ends."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in related:
        a, b = (roots.get(row[end], row[end]) for end in ("a", "b"))
        if a == b or a not in topics or b not in topics:
            continue
        for pair in ((a, b), (b, a)):
            if pair not in best or row["confidence"] > best[pair]["confidence"]:
                best[pair] = row
    for (a, b), row in sorted(best.items()):
        near = RelatedTopic(
            uuid=b, name=topics[b].name, confidence=row["confidence"], reason=row["reason"] if row["shown"] else ""
        )
        topics[a].related.append(near)


def _keys(topic: Topic) -> list[str]:
    return [topic_key(name) for name in (topic.name, *topic.aliases)]


def _in_scope(scope: TopicScope) -> tuple[str, dict[str, Any]]:
    """Return a condition on the conversation `c`, and its parameters."""
    if scope.conversation_id:
        return "c.uuid = $conversation AND c.status <> 'deleted'", {"conversation": scope.conversation_id}
    public = "c.status <> 'deleted' AND NOT coalesce(c.private, false)"
    if scope.workspace is None:
        return public, {}
    return f"{public} AND c.workspace = $workspace", {"workspace": scope.workspace}


async def _related(tx: AsyncManagedTransaction, scope: TopicScope) -> list[dict[str, Any]]:
    """Return RELATED_TO edges; `shown` is whether the reason comes from a conversation in scope."""
    result = await tx.run(
        "MATCH (a:Topic)-[r:RELATED_TO]->(b:Topic) RETURN a.uuid AS a, b.uuid AS b, r.confidence AS confidence, "
        "coalesce(r.reason, '') AS reason, coalesce(r.conversation_id, '') AS source"
    )
    rows = [dict(record) async for record in result]
    where, parameters = _in_scope(scope)
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (c:Conversation {{uuid: id}}) WHERE {where} RETURN c.uuid AS uuid",
        ids=sorted({row["source"] for row in rows if row["source"]}),
        **parameters,
    )
    visible = {record["uuid"] async for record in result}
    return [{**row, "shown": not row["source"] or row["source"] in visible} for row in rows]


async def attach_topics(
    tx: AsyncManagedTransaction, summary_uuid: str, topics: Sequence[ProposedTopic], private_to: str
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
        "ON CREATE SET t.name = row.name, t.description = row.description, t.aliases = [], t.created_at = row.at",
        rows=rows,
    )
    roots = await _roots_of(tx, list(proposed))
    await tx.run(
        "MATCH (s:Summary {uuid: $summary}) UNWIND $rows AS row MATCH (t:Topic {uuid: row.root}) "
        "MERGE (s)-[h:HAS_TOPIC {topic: row.uuid}]->(t) SET h.confidence = row.confidence",
        summary=summary_uuid,
        rows=[{**row, "root": roots[row["uuid"]]} for row in rows],
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
    """Merge the topics linked as the same with enough confidence, relate the others; unknown names are left out."""
    for link in links:
        a, b = topic_uuid(link.a, private_to), topic_uuid(link.b, private_to)
        if link.confidence >= MERGE_CONFIDENCE:
            await merge_in(tx, a, b, confidence=link.confidence, conversation_id=conversation_id)
        elif link.confidence > 0:
            await relate_in(tx, a, b, confidence=link.confidence, reason=link.reason, conversation_id=conversation_id)


async def merge_in(tx: AsyncManagedTransaction, a: str, b: str, *, confidence: float, conversation_id: str) -> str:
    """Merge two topics; the id of the one they are, empty when one does not exist."""
    found = [await _node(tx, await root_in(tx, uuid)) for uuid in (a, b)]
    ages = sorted((native(node["created_at"]), node["uuid"], node["name"]) for node in found if node)
    if len(ages) < 2 or ages[0][1] == ages[1][1]:
        return ages[0][1] if len(ages) == 2 else ""
    (_, winner, _), (_, loser, name) = ages
    await tx.run(
        "MATCH (l:Topic {uuid: $loser}), (w:Topic {uuid: $winner}) "
        "SET w.aliases = [x IN coalesce(w.aliases, []) WHERE NOT x IN $names] + $names "
        "MERGE (l)-[m:MERGED_INTO]->(w) SET m.confidence = $confidence, m.at = $at, m.conversation_id = $source",
        loser=loser,
        winner=winner,
        names=[name, *(await _node(tx, loser) or {}).get("aliases", [])],
        confidence=confidence,
        at=now(),
        source=conversation_id,
    )
    await _move(tx, loser, winner, None)
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
        "RETURN s.uuid AS summary, h.topic AS topic, h.confidence AS confidence",
        source=source,
        proposed=proposed,
    )
    rows = [dict(record) async for record in result]
    for start in range(0, len(rows), 500):
        batch = rows[start : start + 500]
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}), (t:Topic {uuid: $target}) "
            "MERGE (s)-[h:HAS_TOPIC {topic: row.topic}]->(t) SET h.confidence = row.confidence",
            rows=batch,
            target=target,
        )
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary})"
            "-[h:HAS_TOPIC {topic: row.topic}]->(:Topic {uuid: $source}) DELETE h",
            rows=batch,
            source=source,
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
        "MATCH (t:Topic)-[:MERGED_INTO]->(w:Topic) RETURN t.uuid AS uuid, w.uuid AS into, w.created_at AS at"
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
