"""Topics in the graph: searched, opened, merged and related.

A topic's id is derived from its normalised name, so the same name is the same node whoever proposes it; the topics of a
private conversation are nodes of their own. A summary keeps the name it proposed, so that a reader with access to some
conversations sees only the names and descriptions proposed there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.topic_edges import merge_in, relate_in, roots_in, unmerge_in
from ragforge_tui.graph.store.topic_names import topic_key
from ragforge_tui.graph.values import native
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, RelatedTopic, Summary, Topic

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connection import Graph

Vector = npt.NDArray[np.float32]

SHOWN_EXTRACTS = 2
"""Extracted summaries of turns that must name a topic before it is shown: the words of one are often accidental."""


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


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """A query's vector, the model it is from, and the least cosine of a topic with and without a description."""

    vector: Vector
    model: str
    described: float
    named: float


class Topics:
    """Topics, and which of them are the same or related."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def search(
        self,
        query: str = "",
        *,
        near: Near | None = None,
        limit: int = 50,
        workspace: str | None = None,
        conversation_id: str = "",
    ) -> list[Topic]:
        """Return topics that match `query`: by name or alias, then by name and description, then by meaning.

        Names and descriptions match if they contain all words; of these, topics with most conversations come first. A
        topic that no model named, and only one extract, is left out; `get` finds it by its name.

        Only what conversations in scope proposed is seen: neither private conversations (unless named by
        `conversation_id`) nor deleted ones, nor those of another workspace, show a name, an alias or a relation.

        Args:
            near: The query's vector, to find topics by meaning too.
        """
        scope = TopicScope(workspace=workspace, conversation_id=conversation_id)
        found = await self._visible_topics(scope, confirmed=True)
        words = topic_key(query).split()
        ordered = sorted(found, key=lambda t: (-t.conversations, -t.summaries, topic_key(t.name), t.uuid))
        hits = [topic for topic in ordered if all(any(word in key for key in topic.keys) for word in words)]
        if words:
            described = (t for t in ordered if all(word in " ".join(t.keys_and_description) for word in words))
            hits += [topic for topic in described if topic not in hits]
        topics = [topic.record() for topic in hits]
        if words and near is not None and len(hits) < limit:
            others = {topic.uuid: topic for topic in ordered if topic not in hits}
            topics += await self._nearest(others, near)
        return topics[:limit]

    async def _nearest(self, topics: dict[str, _Visible], near: Near) -> list[Topic]:
        """Return the topics that are similar enough to a vector, most similar first."""
        scores = await self._cosines([uuid for topic in topics.values() for uuid in topic.said], near)
        best: dict[str, float] = {}
        for topic in topics.values():
            enough = [scores[uuid] for uuid in topic.said if uuid in scores]
            if enough:
                best[topic.uuid] = max(enough)
        ranked = sorted(best, key=lambda uuid: (-best[uuid], uuid))
        return [msgspec.structs.replace(topics[uuid].record(), similarity=best[uuid]) for uuid in ranked]

    async def _cosines(self, uuids: list[str], near: Near) -> dict[str, float]:
        """Return the cosines of topics that reach the floor for their kind of text."""
        cosine = self._graph.dialect.cosine("t.embedding", "$vector")
        rows = await self._graph.rows(
            "UNWIND $ids AS id MATCH (t:Topic {uuid: id}) WHERE t.embedding IS NOT NULL AND t.embed_model = $model "
            f"WITH t, {cosine} AS score "
            "WHERE score >= CASE WHEN coalesce(t.description, '') = '' THEN $named ELSE $described END "
            "RETURN t.uuid AS uuid, score",
            ids=uuids,
            model=near.model,
            vector=near.vector.tolist(),
            named=near.named,
            described=near.described,
        )
        return {row["uuid"]: float(row["score"]) for row in rows}

    async def get(self, ref: str, *, workspace: str | None = None, conversation_id: str = "") -> Topic:
        """Return the topic with this id, name or alias; for a merged one, its successor.

        Raises:
            NotFoundError: No conversation in scope has it.
        """
        found = await self._visible_topics(TopicScope(workspace=workspace, conversation_id=conversation_id))
        key = topic_key(ref)
        by_id = [t for t in found if ref == t.uuid or ref in t.said]
        by_name = [t for t in found if topic_key(t.name) == key]
        for hits in (by_id, by_name, [t for t in found if key in t.keys]):
            if hits:
                return max(hits, key=lambda t: (t.conversations, t.summaries, t.uuid)).record()
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
                f"MATCH (t:Topic)<-[:HAS_TOPIC]-{own_node('s', 'Summary')} WHERE t.uuid IN $topics "
                f"MATCH {own_node('c', 'Conversation', 'uuid: s.conversation_id')} WHERE {where} "
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

    async def conversations(self, uuid: str) -> list[str]:
        """Return the conversations whose summaries have a topic, by its id, and the branches of these."""
        rows = await self._graph.rows(
            f"MATCH (:Topic {{uuid: $uuid}})<-[:HAS_TOPIC]-{own_node('s', 'Summary')} "
            "RETURN DISTINCT s.conversation_id AS id ORDER BY id",
            uuid=uuid,
        )
        found: list[str] = []
        while fresh := [row["id"] for row in rows if row["id"] not in found]:
            found += fresh
            rows = await self._graph.rows(
                "UNWIND $ids AS parent MATCH (c:Conversation {branch_of: parent}) RETURN c.uuid AS id ORDER BY id",
                ids=fresh,
            )
        return found

    async def relate(self, a: str, b: str, *, confidence: float, reason: str = "") -> None:
        """Relate two topics, by id."""

        async def work(tx: AsyncManagedTransaction) -> None:
            await relate_in(tx, a, b, confidence=confidence, reason=reason, conversation_id="")

        await self._graph.write(work)

    async def _with_own_properties(self, uuid: str) -> Topic:
        """Return a topic with its own properties only."""

        async def work(tx: AsyncManagedTransaction) -> dict[str, Any]:
            result = await tx.run(
                "MATCH (t:Topic {uuid: $uuid}) "
                "RETURN t.uuid AS uuid, t.name AS name, t.aliases AS aliases, t.created_at AS created_at",
                uuid=uuid,
            )
            return dict(await result.single(strict=True))

        row = await self._graph.read(work)
        return Topic(
            uuid=row["uuid"],
            name=row["name"],
            aliases=list(row["aliases"] or []),
            created_at=native(row["created_at"]),
        )

    async def _visible_topics(self, scope: TopicScope, *, confirmed: bool = False) -> list[_Visible]:
        """Return all topics as a reader of `scope` sees them, or those that are `worth_showing`."""

        async def work(
            tx: AsyncManagedTransaction,
        ) -> tuple[list[dict[str, Any]], dict[str, str], list[dict[str, Any]]]:
            where, parameters = _in_scope(scope)
            result = await tx.run(
                f"MATCH (t:Topic)<-[h:HAS_TOPIC]-{own_node('s', 'Summary')} "
                f"MATCH {own_node('c', 'Conversation', 'uuid: s.conversation_id')} WHERE {where} "
                "RETURN toStringOrNull(h.topic) AS proposed, c.uuid AS conversation, "
                "count(DISTINCT s.uuid) AS summaries, "
                "sum(CASE WHEN s.made_by = $extractive THEN 0 ELSE 1 END) AS by_model, "
                "sum(CASE WHEN s.made_by = $extractive AND s.level = 1 THEN 1 ELSE 0 END) AS extracts, "
                # A model's description comes before an extracted one.
                "max(CASE WHEN coalesce(h.description, '') = '' THEN '' WHEN s.made_by = $extractive "
                "THEN '0' + toStringOrNull(h.description) ELSE '1' + toStringOrNull(h.description) END) AS described",
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
            root: _Visible(root, members, nodes)
            for root, members in grouped.items()
            if not confirmed or worth_showing(*(sum(row[by] for row in members) for by in ("by_model", "extracts")))
        }
        _add_relations(topics, roots, related)
        return list(topics.values())

    async def _nodes(self, uuids: list[str]) -> dict[str, dict[str, Any]]:
        """Return names, ages and the confidence of the merge, if there was one, of these topics."""
        return {
            record["uuid"]: record
            for record in await self._graph.rows(
                f"UNWIND $ids AS id MATCH {own_node('t', 'Topic', 'uuid: id')} "
                "OPTIONAL MATCH (t)-[m:MERGED_INTO]->(:Topic) "
                "RETURN t.uuid AS uuid, t.name AS name, t.created_at AS created_at, max(m.confidence) AS confidence",
                ids=uuids,
            )
        }


class _Visible:
    """Topic as proposed by conversations in scope; the root's own name only if one of them proposed it.

    Attributes:
        said: Number of summaries in scope that proposed it, by the id of the name they used.
    """

    def __init__(self, root: str, members: list[dict[str, Any]], nodes: dict[str, dict[str, Any]]) -> None:
        self.uuid = root
        self.said: Counter[str] = Counter()
        for row in members:
            self.said[row["proposed"]] += row["summaries"]
        first = root if root in self.said else max(self.said, key=lambda uuid: (self.said[uuid], uuid))
        others = sorted(uuid for uuid in self.said if uuid != first)
        self.name = str(nodes[first]["name"])
        self.aliases = sorted(str(nodes[uuid]["name"]) for uuid in others)
        # An extracted one says little more than the name that it was extracted with.
        told = [row["described"] or "" for row in members if row["proposed"] == first]
        told += [row["described"] for row in members if (row["described"] or "").startswith("1")]
        self.description = max(told, key=lambda text: text[:1], default="")[1:]
        self.created_at = native(nodes[first]["created_at"])
        self.summaries = sum(self.said.values())
        self.conversations = len({row["conversation"] for row in members})
        self.related = [
            RelatedTopic(
                uuid=uuid,
                name=nodes[uuid]["name"],
                relation="merged",
                confidence=1.0 if nodes[uuid]["confidence"] is None else nodes[uuid]["confidence"],
            )
            for uuid in others
        ]
        self.keys = [topic_key(name) for name in (self.name, *self.aliases)]

    @property
    def keys_and_description(self) -> list[str]:
        return [*self.keys, topic_key(self.description)]

    def record(self) -> Topic:
        return Topic(
            uuid=self.uuid,
            name=self.name,
            description=self.description,
            aliases=self.aliases,
            created_at=self.created_at,
            summaries=self.summaries,
            conversations=self.conversations,
            related=self.related,
        )


def _add_relations(topics: dict[str, _Visible], roots: dict[str, str], related: list[dict[str, Any]]) -> None:
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


def _in_scope(scope: TopicScope) -> tuple[str, dict[str, Any]]:
    """Return a condition on the conversation `c`, and its parameters."""
    if scope.conversation_id:
        return "c.uuid = $conversation AND c.status <> 'deleted'", {"conversation": scope.conversation_id}
    public = "c.status <> 'deleted' AND coalesce(c.private, false) <> true"
    if scope.workspace is None:
        return public, {}
    return f"{public} AND c.workspace = $workspace", {"workspace": scope.workspace}


async def _related(tx: AsyncManagedTransaction, scope: TopicScope) -> list[dict[str, Any]]:
    """Return RELATED_TO edges; `shown` is whether the reason comes from a conversation in scope."""
    result = await tx.run(
        f"MATCH {own_node('a', 'Topic')}-[r:RELATED_TO]->{own_node('b', 'Topic')} "
        "RETURN a.uuid AS a, b.uuid AS b, coalesce(toFloatOrNull(r.confidence), 0.0) AS confidence, "
        "coalesce(toStringOrNull(r.reason), '') AS reason, coalesce(toStringOrNull(r.conversation_id), '') AS source"
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
