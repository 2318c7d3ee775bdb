"""Vectors in the graph: which nodes lack one, storing them, and the model they come from.

The embedding model belongs to the graph: vectors are stored only while it is the recorded one, checked in the same
transaction, so that a process with other settings never mixes in its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.schema.indexes import VECTOR
from ragforge_tui.graph.schema.migrate import record_embedding, recorded_embedding
from ragforge_tui.graph.store.records import CONVERSATION_FIELDS, conversation_from, projection
from ragforge_tui.graph.values import vector_bytes
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import Conversation, SimilarConversation

log = logging.getLogger(__name__)

_CONVERSATION = projection("c", CONVERSATION_FIELDS)
BATCH = 200
"""Vectors stored in one statement: about a megabyte of numbers."""
OPENING_SECONDS = 1_800.0
SEARCHED = ("Summary", "Message")
"""Labels whose vectors are searched by their index."""
MOST_WITHOUT_SUMMARY = 500
"""Newest conversations without a vector of a summary that are compared by their turns."""
MOST_WITH_WORDS = 500
"""Newest conversations whose title or summary is compared with the words of a text."""
_VISIBLE = (
    "c.status <> 'deleted' AND coalesce(c.private, false) <> true AND NOT c.uuid IN $exclude "
    "AND ($workspace IS NULL OR c.workspace = $workspace)"
)
_BEST = f"WHERE score >= $min RETURN {_CONVERSATION} AS c, score ORDER BY score DESC, c.uuid LIMIT $limit"


class VectorKind(msgspec.Struct, frozen=True):
    """A kind of node that has a vector.

    Attributes:
        match: Cypher that binds `n`; may use `$id`, a conversation, when `scoped`.
        text: Cypher for the text that is embedded.
        vector: Property of the vector; its bytes and model are in properties named after it.
        of: Property that holds the text the vector was made of, for texts that change; empty for others.
    """

    label: str
    match: str
    text: str
    vector: str = "embedding"
    model: str = "embed_model"
    of: str = ""


KINDS = {
    kind.label: kind
    for kind in (
        VectorKind(
            "Message", f"{own_node('n', 'Message', 'position: 0')} WHERE n.recall_version IS NOT NULL", "n.turn_text"
        ),
        VectorKind(
            "Summary",
            f"{own_node('n', 'Summary')} WHERE true",
            "n.conversation_summary + '\\n' + coalesce(n.actions_summary, '')",
        ),
        VectorKind("Topic", f"{own_node('n', 'Topic')} WHERE true", "n.name + '\\n' + coalesce(n.description, '')"),
        VectorKind(
            "Conversation",
            f"{own_node('n', 'Conversation')} WHERE true",
            "n.summary",
            vector="summary_embedding",
            model="summary_embed_model",
            of="summary_embedded",
        ),
    )
}


class Unembedded(msgspec.Struct, frozen=True):
    """A node without a vector, and the text its vector is to be made of."""

    uuid: str
    text: str


class Vectors:
    """Embedding vectors of nodes, and the model they come from."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._changed: set[str] = set()
        """Labels with vectors stored here that their index may not hold yet."""

    async def model(self) -> tuple[str, int]:
        """Return the model of the graph's vectors, empty until one was used, and the dimension of its indexes."""
        return await recorded_embedding(self._graph)

    async def claim_model(self, model: str, dimension: int) -> tuple[str, int]:
        """Record the model when none is and its dimension is that of the indexes; whatever is recorded then."""
        recorded, size = await self.model()
        if not recorded and size in (0, dimension):
            await record_embedding(self._graph, model, dimension)
            return model, dimension
        return recorded, size

    async def missing(self, label: str, model: str, *, limit: int, conversation_id: str = "") -> list[Unembedded]:
        """Return nodes of a label whose vector is missing or of another model."""
        kind = KINDS[label]
        statement = (
            f"MATCH {kind.match} AND {_missing(kind)} {_scope(label, conversation_id)}"
            f"RETURN n.uuid AS uuid, {kind.text} AS text LIMIT $limit"
        )
        return [
            Unembedded(record["uuid"], record["text"] or "")
            for record in await self._graph.rows(statement, model=model, limit=limit, id=conversation_id)
        ]

    async def count_missing(self, model: str) -> int:
        """Return the number of nodes without a vector of the model."""
        total = 0
        for kind in KINDS.values():
            record = await self._graph.one(
                f"MATCH {kind.match} AND {_missing(kind)} RETURN count(n) AS missing", model=model
            )
            total += int(record["missing"]) if record else 0
        return total

    async def store(self, label: str, model: str, rows: Sequence[tuple[Unembedded, npt.NDArray[np.float32]]]) -> bool:
        """Store vectors of unit length; False, storing nothing, when the graph's model is another one.

        A row of zeros marks a node as having nothing to embed.
        """
        kind = KINDS[label]
        statement = (
            "MATCH (v:RagforgeSchema {name: 'schema'}) WHERE v.embedding_model = $model "
            f"UNWIND $rows AS row MATCH (n:{label} {{uuid: row.uuid}}) WHERE coalesce({kind.text}, '') = row.text "
            f"SET n.{kind.vector} = row.vector, n.{kind.vector}_bytes = row.bytes, n.{kind.model} = $model"
            + (f", n.{kind.of} = row.text" if kind.of else "")
        )
        for start in range(0, len(rows), BATCH):
            batch = [_vector_row(node, vector) for node, vector in rows[start : start + BATCH]]

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> bool:
                result = await tx.run(
                    "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model = $model AS same", model=model
                )
                record = await result.single()
                if not record or not record["same"]:
                    return False
                await tx.run(statement, model=model, rows=batch)
                return True

            if not await self._graph.write(work):
                return False
            self._changed.add(label)
        return True

    async def change_model(self, model: str, dimension: int) -> None:
        """Change the graph's model: vectors of other dimensions are removed, and the indexes created again for its own.

        Vectors of the old model lie still until they are replaced; nothing compares them.
        """
        recorded, size = await self.model()
        if size != dimension:
            # From here on no process stores vectors of the old model.
            await record_embedding(self._graph, "", size)
            for label, prop in VECTOR:
                await self._graph.dialect.drop_index(self._graph.dialect.vector_index(label, prop))
                await self._forget(label, prop)
            for label, prop in VECTOR:
                await self._graph.dialect.create_vector_index(label, prop, dimension)
            await self._graph.dialect.await_indexes()
        if (recorded, size) != (model, dimension):
            await record_embedding(self._graph, model, dimension)

    async def _forget(self, label: str, prop: str) -> None:
        model = KINDS[label].model if label in KINDS else "embed_model"
        statement = (
            f"MATCH {own_node('n', label)} WHERE n.{prop} IS NOT NULL WITH n LIMIT 500 "
            f"SET n.{prop} = NULL, n.{prop}_bytes = NULL, n.{model} = NULL RETURN count(n) AS cleared"
        )
        while (row := await self._graph.write_one(statement)) and row["cleared"]:
            pass

    async def read(self, label: str, uuids: Sequence[str], model: str) -> dict[str, npt.NDArray[np.float32]]:
        """Return the vectors of nodes by uuid, without those that have none of this model."""
        kind = KINDS[label]
        if not uuids:
            return {}
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) "
            f"WHERE n.{kind.model} = $model AND n.{kind.vector} IS NOT NULL "
            f"RETURN n.uuid AS uuid, n.{kind.vector}_bytes AS vector",
            ids=list(uuids),
            model=model,
        )
        found = {row["uuid"]: vector_bytes(row["vector"]) for row in rows}
        return {uuid: np.frombuffer(data, np.float32) for uuid, data in found.items() if data is not None}

    async def similar_conversations(
        self, conversation_id: str, *, limit: int = 5, min_score: float = 0.0, workspace: str | None = None
    ) -> list[SimilarConversation]:
        """Return conversations similar to one, most similar first; never private or deleted ones.

        Compared by summary; a conversation whose summary has no vector is represented by its turns.
        """
        model, _ = await self.model()
        own = (await self.read("Conversation", [conversation_id], model)).get(conversation_id)
        if own is None:
            own = await self._mean_of_turns(conversation_id, model)
        if own is None:
            return []
        return await self.conversations_like(
            own, limit=limit, min_score=min_score, workspace=workspace, exclude=(conversation_id,), by_turns=True
        )

    async def conversations_like(
        self,
        vector: npt.NDArray[np.float32],
        *,
        limit: int = 5,
        min_score: float = 0.0,
        workspace: str | None = None,
        exclude: Sequence[str] = (),
        by_turns: bool = False,
    ) -> list[SimilarConversation]:
        """Return conversations whose summary is similar to a vector of the graph's model, most similar first.

        Args:
            by_turns: Compare conversations whose summary has no vector too, by the most similar of their turns.
        """
        summary, turn = (self._graph.dialect.cosine(each, "$vector") for each in ("c.summary_embedding", "m.embedding"))
        statements = [
            f"MATCH (v:RagforgeSchema {{name: 'schema'}}), {own_node('c', 'Conversation')} "
            "WHERE c.summary_embedding IS NOT NULL "
            f"AND c.summary_embed_model = v.embedding_model AND {_VISIBLE} WITH c, {summary} AS score {_BEST}",
            f"MATCH (v:RagforgeSchema {{name: 'schema'}}), {own_node('c', 'Conversation')} "
            "WHERE (c.summary_embedding IS NULL "
            f"OR c.summary_embed_model <> v.embedding_model) AND {_VISIBLE} "
            f"WITH v, c ORDER BY c.updated_at DESC LIMIT {MOST_WITHOUT_SUMMARY} "
            "MATCH (m:Message {conversation_id: c.uuid, position: 0}) "
            "WHERE m.embedding IS NOT NULL AND m.embed_model = v.embedding_model "
            f"WITH c, max({turn}) AS score {_BEST}",
        ]
        parameters = {
            "vector": vector.tolist(),
            "exclude": list(exclude),
            "workspace": workspace,
            "min": min_score,
            "limit": max(limit, 0),
        }
        asked = statements if by_turns else statements[:1]
        pages = await asyncio.gather(*(self._graph.rows(statement, **parameters) for statement in asked))
        found = [
            SimilarConversation(conversation=conversation, score=record["score"])
            for page in pages
            for record in page
            if (conversation := conversation_from(record["c"])) is not None
        ]
        return sorted(found, key=lambda one: (-one.score, one.conversation.uuid))[: max(limit, 0)]

    async def conversations_with_words(self, starts: Sequence[str], *, workspace: str | None) -> list[Conversation]:
        """Return the newest conversations with any of these beginnings of words in title or summary."""
        rows = await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} WHERE {_VISIBLE} AND any(start IN $starts "
            "WHERE toLower(coalesce(c.title, '') + ' ' + coalesce(c.summary, '')) CONTAINS start) "
            f"RETURN {_CONVERSATION} AS c ORDER BY c.updated_at DESC, c.uuid LIMIT {MOST_WITH_WORDS}",
            starts=list(starts),
            exclude=[],
            workspace=workspace,
        )
        return [one for row in rows if (one := conversation_from(row["c"])) is not None]

    async def open_indexes(self) -> None:
        """Have the server open the indexes that recall asks, which it does with their first search otherwise.

        The embedded server reads an index then, or builds it after many were added at once: seconds for 10 000
        vectors, minutes for 100 000, during which a question gets no answer.

        Raises:
            GraphUnavailableError: No response within `OPENING_SECONDS`.
        """
        await self._open(SEARCHED)

    async def open_changed_indexes(self) -> None:
        """Have the embedded server bring the indexes up to date with the vectors stored since the last call.

        It builds an index of fewer than a thousand vectors again with the first search after a change: 0.1 s for 300,
        which the next message would have to wait for.
        """
        labels = [label for label in SEARCHED if label in self._changed]
        self._changed.clear()
        if self._graph.embedded:
            try:
                await self._open(labels)
            except GraphError as error:
                # It only saves time: the next search does the same.
                log.info("vector indexes not brought up to date: %s", error)

    async def _open(self, labels: Sequence[str]) -> None:
        _, size = await self.model() if labels else ("", 0)
        if not size:
            return
        vector = [1.0] + [0.0] * (size - 1)
        for label in labels:

            async def work(tx: Transaction, label: str = label) -> None:
                result = await tx.run(
                    "CALL db.index.vector.queryNodes($index, 1, $vector) YIELD node RETURN count(node) AS found",
                    index=self._graph.dialect.vector_index(label),
                    vector=vector,
                )
                await result.consume()

            await self._graph.read(work, deadline=OPENING_SECONDS)

    async def _mean_of_turns(self, conversation_id: str, model: str) -> npt.NDArray[np.float32] | None:
        """Return the mean direction of a conversation's newest turns; None if none has a vector."""
        rows = await self._graph.rows(
            "MATCH (m:Message {conversation_id: $id, position: 0}) "
            "WHERE m.embed_model = $model AND m.embedding IS NOT NULL "
            "RETURN m.embedding_bytes AS vector ORDER BY m.turn_index DESC LIMIT $most",
            id=conversation_id,
            model=model,
            most=BATCH,
        )
        vectors = [np.frombuffer(data, np.float32) for row in rows if (data := vector_bytes(row["vector"])) is not None]
        if not vectors:
            return None
        mean = np.mean(vectors, axis=0)
        length = float(np.linalg.norm(mean))
        return (mean / length).astype(np.float32) if length else None


def _missing(kind: VectorKind) -> str:
    stale = f" OR coalesce(n.{kind.of}, '') <> {kind.text}" if kind.of else ""
    return f"coalesce({kind.text}, '') <> '' AND (n.{kind.model} IS NULL OR n.{kind.model} <> $model{stale})"


def _scope(label: str, conversation_id: str) -> str:
    if not conversation_id:
        return ""
    return "AND n.uuid = $id " if label == "Conversation" else "AND n.conversation_id = $id "


def _vector_row(node: Unembedded, vector: npt.NDArray[np.float32]) -> dict[str, Any]:
    known = bool(vector.any())
    return {
        "uuid": node.uuid,
        "text": node.text,
        "vector": vector.tolist() if known else None,
        "bytes": vector.astype(np.float32).tobytes() if known else None,
    }
