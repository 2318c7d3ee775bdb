"""The graph's schema: what is unique, what is indexed, and how a graph is brought up to date.

`Graph.open` calls `migrate` before anything else is asked. The schema is data here and made by the dialect of the
backend. Cut from the store because it is the only place that changes when a property becomes searchable.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.errors import ForeignGraphError, GraphError

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

log = logging.getLogger(__name__)

_ATTEMPTS = 4

UUID_LABELS = (
    "Conversation",
    "Message",
    "ToolCall",
    "ToolResult",
    "Summary",
    "Topic",
    "Sitting",
    "Context",
    "Scope",
    "Persona",
    "Insight",
    "Part",
)

RELATIONSHIPS = (
    "HAS_MESSAGE",
    "MADE_TOOL_CALL",
    "PRODUCED_RESULT",
    "ACCESSED",
    "SPOKEN_AS",
    "WAS_SENT",
    "REFERENCES_CODE",
    "DEFINES",
    "REFERENCES",
    "HAS_PART",
    "HAS_SITTING",
    "HAS_SUMMARY",
    "SUMMARIZES",
    "MENTIONS_FILE",
    "HAS_TOPIC",
    "RELATED_TO",
    "MERGED_INTO",
    "HAS_BRANCH",
    "HAS_INSIGHT",
)

TYPES = {
    ("Message", "turn_index"): "LONG",
    ("Message", "position"): "LONG",
    ("Summary", "level"): "LONG",
    ("Summary", "start_turn_index"): "LONG",
    ("Sitting", "ordinal"): "LONG",
    ("Conversation", "created_at"): "DATETIME",
    ("Conversation", "updated_at"): "DATETIME",
}
"""Indexed properties that are not text."""

UNIQUE: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((label, ("uuid",)) for label in UUID_LABELS),
    ("Message", ("conversation_id", "turn_index", "position")),
    ("Sitting", ("conversation_id", "ordinal")),
    ("Summary", ("conversation_id", "level", "start_turn_index")),
    ("File", ("workspace", "path")),
    ("RagforgeSchema", ("name",)),
    ("RagforgeMigration", ("name",)),
)

RANGE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Conversation", ("status",)),
    ("Conversation", ("created_at",)),
    ("Conversation", ("updated_at",)),
    ("Conversation", ("workspace",)),
    ("Conversation", ("branch_of",)),
    ("Message", ("conversation_id",)),
    ("Message", ("conversation_id", "turn_index")),
    ("ToolCall", ("message_id",)),
    *(
        (label, ("conversation_id",))
        for label in ("ToolCall", "ToolResult", "Part", "Context", "Summary", "Sitting", "Insight")
    ),
    ("Summary", ("conversation_id", "level")),
    ("Scope", ("workspace", "file")),
    ("Scope", ("name",)),
    ("Topic", ("name",)),
)

VECTOR = (
    ("Message", "embedding"),
    ("Summary", "embedding"),
    ("Topic", "embedding"),
    ("Scope", "embedding"),
    ("Conversation", "summary_embedding"),
)

# conversation_id stands in each full-text index so that a search is scoped inside the query, not after it.
MESSAGE_TEXT = ("turn_text", "conversation_id")
MESSAGE_LEX = {"en": ("lex_key", "conversation_id"), "fr": ("lex_key_fr", "conversation_id")}
"""A turn's window key by language; other languages use English, whose stemmer leaves most foreign words alone."""

FULLTEXT: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Message", MESSAGE_TEXT, "en"),
    *(("Message", props, language) for language, props in MESSAGE_LEX.items()),
    ("Sitting", ("text", "conversation_id"), "en"),
    ("Summary", ("conversation_summary", "actions_summary", "conversation_id"), "en"),
    ("Scope", ("name", "signature", "text", "workspace"), "en"),
)


class Migration(msgspec.Struct, frozen=True):
    """One step forward. Steps only ever add, are safe to repeat, and never change once released."""

    version: int
    name: str
    apply: Callable[[Graph, int], Awaitable[None]]


async def _initial(graph: Graph, dimension: int) -> None:
    """Everything of the first release."""
    dialect = graph.dialect
    for label, props in (*UNIQUE, *RANGE):
        for prop in props:
            await dialect.declare(label, prop, TYPES.get((label, prop), "STRING"))
    for name in RELATIONSHIPS:
        await dialect.create_relationship_type(name)
    for label, props in UNIQUE:
        await dialect.create_unique(label, props)
    for label, props in RANGE:
        await dialect.create_range_index(label, props)
    for label, prop in VECTOR:
        await dialect.create_vector_index(label, prop, dimension)
    for label, props, language in FULLTEXT:
        await dialect.create_fulltext_index(label, props, language)
    await dialect.await_indexes()


async def _system_texts(graph: Graph, dimension: int) -> None:
    """The stable beginning of requests, kept once per text."""
    dialect = graph.dialect
    await dialect.declare("SystemText", "uuid")
    await dialect.create_relationship_type("BEGINS_WITH")
    await dialect.create_unique("SystemText", ("uuid",))
    await dialect.await_indexes()


async def _summary_sequence(graph: Graph, dimension: int) -> None:
    """Summaries of a conversation are numbered as they come: of two made at once one is refused, whatever its range."""
    dialect = graph.dialect
    await dialect.declare("Summary", "sequence", "LONG")
    await dialect.create_unique("Summary", ("conversation_id", "sequence"))
    await dialect.await_indexes()


MIGRATIONS = (
    Migration(1, "initial", _initial),
    Migration(2, "system texts", _system_texts),
    Migration(3, "summary sequence", _summary_sequence),
)
VERSION = MIGRATIONS[-1].version


async def migrate(graph: Graph, *, adopt: bool, embedding_dimension: int) -> None:
    """Bring the graph to this version's schema; does nothing when it is there already.

    Args:
        graph: Where.
        adopt: Allow our schema beside data that is not ours.
        embedding_dimension: Dimension of the vectors of a graph that is new; an existing graph keeps its own.

    Raises:
        ForeignGraphError: The graph holds data, but not our version node.
        GraphError: The graph was written by a newer version of this program.
    """
    version = await graph.read(_version)
    if version is None:
        if not adopt and await graph.read(_has_data):
            raise ForeignGraphError(
                f"The graph at {graph.name} holds data that is not from this program.",
                kept="Nothing was changed there.",
                todo="Choose another graph or database, or allow it with `ragforge-chat graph adopt`.",
            )
    elif version > VERSION:
        raise GraphError(
            f"The graph at {graph.name} has schema version {version}; this program knows {VERSION}.",
            kept="Nothing was changed there.",
            todo="Upgrade ragforge-tui.",
            kind="graph_newer",
        )
    elif version == VERSION:
        return
    for step in MIGRATIONS:
        await _apply(graph, step, embedding_dimension, anew=version is None)


async def read_identity(graph: Graph) -> str:
    """Return the uuid that makes this graph itself, wherever it is reached; empty when it has none."""

    async def work(tx: AsyncManagedTransaction) -> str:
        result = await tx.run("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.identity AS identity")
        record = await result.single()
        return (record["identity"] or "") if record else ""

    found: str = await graph.read(work)
    return found


async def ensure_identity(graph: Graph) -> str:
    """Return the graph's identity; a graph of an earlier release gets one. No migration, so that those still open it.

    Two processes may try at once: the first one to commit wins, and both read what is there then.
    """
    found = await read_identity(graph)
    if found:
        return found
    fresh = uuid.uuid4().hex

    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.identity = coalesce(v.identity, $fresh)", fresh=fresh
        )

    await graph.write(work)
    return await read_identity(graph)


async def _apply(graph: Graph, step: Migration, dimension: int, *, anew: bool) -> None:
    """Apply a step once. Two processes may try at once; `IF NOT EXISTS` does not hold against that on Neo4j.

    Args:
        anew: There was no version node: steps that are noted all the same belong to one that somebody removed.
    """
    for attempt in range(_ATTEMPTS):
        if (attempt or not anew) and step.name in await graph.read(_applied):
            return
        log.info("schema: applying %s", step.name)
        try:
            await step.apply(graph, dimension)
            await _record(graph, step, dimension)
            return
        except GraphError:
            if attempt == _ATTEMPTS - 1:
                raise
            log.warning("schema: %s failed, trying again", step.name, exc_info=True)
            await asyncio.sleep(0.5 * (attempt + 1))


async def recorded_embedding(graph: Graph) -> tuple[str, int]:
    """The embedding model (empty until one was used) and dimension that belong to the graph."""

    async def work(tx: AsyncManagedTransaction) -> tuple[str, int]:
        result = await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model AS model, v.embedding_dimension AS size"
        )
        record = await result.single()
        return (record["model"] or "", record["size"] or 0) if record else ("", 0)

    found: tuple[str, int] = await graph.read(work)
    return found


async def record_embedding(graph: Graph, model: str, dimension: int) -> None:
    """Note which embedding model the graph's vectors come from."""

    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.embedding_model = $model, v.embedding_dimension = $size",
            model=model,
            size=dimension,
        )

    await graph.write(work)


async def _version(tx: AsyncManagedTransaction) -> int | None:
    result = await tx.run("MATCH (v:RagforgeSchema) RETURN max(v.version) AS version")
    record = await result.single()
    return record["version"] if record else None


async def _has_data(tx: AsyncManagedTransaction) -> bool:
    result = await tx.run("MATCH (n) WHERE NOT n:RagforgeMigration RETURN n IS NOT NULL AS found LIMIT 1")
    return await result.single() is not None


async def _applied(tx: AsyncManagedTransaction) -> set[str]:
    # Without the version node nothing counts as applied: both are written together, so somebody removed it.
    result = await tx.run("MATCH (v:RagforgeSchema {name: 'schema'}), (m:RagforgeMigration) RETURN m.name AS name")
    return {record["name"] async for record in result}


async def _record(graph: Graph, step: Migration, dimension: int) -> None:
    parameters: dict[str, Any] = {
        "step": step.name,
        "version": step.version,
        "dimension": dimension,
        "now": datetime.now(UTC),
    }

    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "MERGE (m:RagforgeMigration {name: $step}) ON CREATE SET m.applied_at = $now "
            "MERGE (v:RagforgeSchema {name: 'schema'}) "
            "ON CREATE SET v.embedding_model = '', v.embedding_dimension = $dimension, v.created_at = $now "
            "SET v.version = CASE WHEN coalesce(v.version, 0) > $version THEN v.version ELSE $version END",
            parameters,
        )

    await graph.write(work)
