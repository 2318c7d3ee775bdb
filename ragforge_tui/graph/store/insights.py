"""Insights in the graph: one for each conversation, replaced when the conversation has grown.

A model's insight replaces an extract; an extract never replaces a model's, however much the conversation has grown
since. A branch has none until its own is made: what it shares with its parent is read for it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.store.records import derived, given, graph_value, projection, record_from
from ragforge_tui.graph.store.summary_tree import finding_text, findings_from
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, Insight, now
from ragforge_tui.shared.sanitize import storable

_LISTS = ("key_findings", "action_items")
_PLAIN = tuple(name for name in Insight.__struct_fields__ if name not in _LISTS)
_INSIGHT = projection("i", (*_PLAIN, *_LISTS))
_ONE = f"MATCH (i:Insight {{uuid: $uuid}}) RETURN {_INSIGHT} AS i"
_PAGE = 500


def insight_uuid(conversation_id: str) -> str:
    """Return the id of a conversation's insight; it is the same whoever makes it."""
    return derived("insight", conversation_id)


def insight_properties(insight: Insight) -> dict[str, Any]:
    """Return an insight as flat properties; findings are stored like those of summaries."""
    properties = {name: graph_value(getattr(insight, name)) for name in _PLAIN}
    for name in _LISTS:
        properties[name] = [storable(finding_text(finding)) for finding in getattr(insight, name)]
    return properties


def insight_from(properties: Any) -> Insight | None:
    fields = {"main_topic": "", **given(properties, _PLAIN)}
    return record_from(Insight, {**fields, **{name: findings_from(properties.get(name)) for name in _LISTS}})


class Insights:
    """Insights of conversations."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def of(self, conversation_ids: Sequence[str]) -> dict[str, Insight]:
        """Return the insights of these conversations that have one, by conversation."""
        found: dict[str, Insight] = {}
        for start in range(0, len(conversation_ids), _PAGE):
            rows = await self._graph.rows(
                f"UNWIND $ids AS id MATCH (i:Insight {{uuid: id}}) RETURN {_INSIGHT} AS i",
                ids=[insight_uuid(uuid) for uuid in conversation_ids[start : start + _PAGE]],
            )
            insights = [insight for row in rows if (insight := insight_from(row["i"])) is not None]
            found |= {insight.conversation_id: insight for insight in insights}
        return found

    async def store(self, insight: Insight) -> Insight:
        """Store an insight in place of an earlier one, with its relationship, and return the one that is stored now.

        An earlier one stays if a model made it and the new one is an extract, or if it has read further.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> Insight | None:
            # Lock first, so that the insight read stays current until it is replaced.
            result = await tx.run(
                "MATCH (c:Conversation {uuid: $id}) SET c.insight_at = $now RETURN c.uuid AS uuid",
                id=insight.conversation_id,
                now=now(),
            )
            if await result.single() is None:
                return None
            existing = await stored_insight(tx, insight.uuid)
            if existing is not None and not replaces(insight, existing):
                return existing
            await write_insight(tx, insight)
            return insight

        stored = await self._graph.write(work)
        if stored is None:
            raise NotFoundError(f"There is no conversation {insight.conversation_id!r}.")
        return stored


def replaces(insight: Insight, existing: Insight) -> bool:
    """Return whether an insight may be stored in place of another one."""
    by_model, was_by_model = insight.made_by != EXTRACTIVE, existing.made_by != EXTRACTIVE
    if by_model != was_by_model:
        return by_model
    return insight.up_to_turn >= existing.up_to_turn


async def stored_insight(tx: Transaction, uuid: str) -> Insight | None:
    record = await (await tx.run(_ONE, uuid=uuid)).single()
    return insight_from(record["i"]) if record else None


async def write_insight(tx: Transaction, insight: Insight) -> None:
    """Create or overwrite an insight. The node is looked up first: a MERGE would walk all of a conversation's edges."""
    properties = insight_properties(insight)
    result = await tx.run(
        "MATCH (i:Insight {uuid: $uuid}) SET i = $properties RETURN i.uuid AS uuid",
        uuid=insight.uuid,
        properties=properties,
    )
    if await result.single() is None:
        await tx.run(
            "MATCH (c:Conversation {uuid: $id}) CREATE (c)-[:HAS_INSIGHT]->(i:Insight) SET i = $properties",
            id=insight.conversation_id,
            properties=properties,
        )
