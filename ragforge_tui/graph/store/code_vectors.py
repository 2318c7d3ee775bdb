"""Vectors of scopes and of the words of code, kept as bytes on nodes and compared in the process.

The embedded graph's vector index needs half a minute for its first answer over 20 000 scopes, and knows no workspace.
A workspace's vectors are read once, in pages, as signed bytes: a quarter of their size, and the order of the nearest
hardly changes. Reading those of a large workspace takes longer than a request waits, so it continues after the
request has given up, and until then searches use those read before.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.schema.migrate import recorded_embedding
from ragforge_tui.graph.store.records import given, record_from
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.limits import LIMITS

log = logging.getLogger(__name__)

Bytes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float32]

BATCH = 500
CHECK_SECONDS = 1.0
"""Time for which vectors are taken to be the newest: a question asks for them several times."""
MOST_SIMILAR = 500
"""Vectors of words whose similar words are kept: some 4 MB."""
_ROWS_AT_ONCE = 8_192
"""Rows turned into floats at once: 16 MB."""
_EMBEDDED_FIELDS = (
    "uuid",
    "name",
    "qualified_name",
    "kind",
    "file",
    "start_line",
    "end_line",
    "signature",
    "doc",
    "digest",
)
_PAGE_FILES = 300
_WORDS = (
    "MATCH (c:CodeWords {{workspace: $workspace, model: $model}}) "
    "WHERE c.words IS :: LIST<STRING NOT NULL> NOT NULL AND c.vectors IS NOT NULL RETURN {} AS page"
)
_SECTION_CHARS = 400
"""Of a section's text, which has neither signature nor documentation."""


class _Matrix(msgspec.Struct):
    """Vectors of a workspace, as last read.

    Attributes:
        stamp: Of the index when they were read.
        places: Row of each scope.
        norms: Lengths of the rows.
        words: Of the names, signatures and documentation, with a row and a length each.
        similar: Words found for vectors before: the words of a question occur in others too.
    """

    stamp: int
    model: str
    uuids: list[str]
    places: dict[str, int]
    rows: Bytes
    norms: Floats
    words: list[str]
    word_rows: Bytes
    word_norms: Floats
    similar: dict[tuple[bytes, int], list[tuple[str, float]]] = msgspec.field(default_factory=dict)


class CodeVectors:
    """Vectors of the scopes of workspaces."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._matrices: dict[str, _Matrix] = {}
        self._reading: dict[str, asyncio.Task[_Matrix | None]] = {}
        self._checked: dict[str, float] = {}

    async def missing(self, workspace: str, model: str, paths: Sequence[str]) -> list[Scope]:
        """Return the scopes of some files that have no vector of a model, with what a vector is made of."""
        fields = ", ".join(f".{name}" for name in _EMBEDDED_FIELDS)
        rows = await self._graph.rows(
            "UNWIND $paths AS path MATCH (s:Scope {workspace: $workspace, file: path}) WHERE s.removed_at IS NULL "
            f"AND (s.embed_model IS NULL OR s.embed_model <> $model) "
            f"RETURN collect(s {{{fields}, "
            "text: CASE WHEN s.kind = 'section' THEN left(toStringOrNull(s.text), $chars) ELSE '' END}) AS scopes",
            workspace=workspace,
            paths=list(paths),
            model=model,
            chars=_SECTION_CHARS,
        )
        return [
            scope
            for row in rows
            for properties in row["scopes"]
            if (scope := record_from(Scope, given(properties, (*_EMBEDDED_FIELDS, "text")))) is not None
        ]

    async def store(self, workspace: str, model: str, vectors: Sequence[tuple[Scope, Floats]]) -> bool:
        """Store vectors; False, storing nothing, when the graph's model is another one.

        A scope that changed since it was read keeps none.
        """
        rows: list[dict[str, Any]] = [
            {
                **{name: getattr(scope, name) for name in ("uuid", "signature", "doc", "digest")},
                "vector": packed(vector),
            }
            for scope, vector in vectors
        ]
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> bool:
                result = await tx.run(
                    "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model = $model AS same", model=model
                )
                record = await result.single()
                if not record or not record["same"]:
                    return False
                stored = await tx.run(
                    "UNWIND $rows AS row MATCH (s:Scope {uuid: row.uuid}) "
                    "WHERE s.removed_at IS NULL AND s.digest = row.digest AND s.signature = row.signature "
                    "AND s.doc = row.doc SET s.vector = row.vector, s.embed_model = $model",
                    rows=batch,
                    model=model,
                )
                await stored.consume()
                return True

            if not await self._graph.write(work):
                return False
        return True

    async def changed(self, workspace: str) -> None:
        """Note that vectors were stored or went, so that each process reads them again before it next compares."""
        self._checked.pop(workspace, None)
        await self._graph.run(
            "MERGE (i:CodeIndex {workspace: $workspace}) SET i.vector_stamp = coalesce(i.vector_stamp, 0) + 1",
            workspace=workspace,
        )

    async def words(self, workspace: str, model: str) -> set[str]:
        """Return the words that have a vector of a model."""
        pages = await self._graph.rows(_WORDS.format("c.words"), workspace=workspace, model=model)
        return {word for page in pages for word in page["page"]}

    async def store_words(self, workspace: str, model: str, words: Sequence[str], vectors: Floats) -> None:
        """Add words with their vectors. They stay when the code changes: one that no scope has finds nothing."""
        kept = [(word, data) for word, vector in zip(words, vectors, strict=True) if (data := packed(vector))]
        if kept:
            await self._graph.run(
                "CREATE (c:CodeWords {uuid: $uuid, workspace: $workspace, model: $model}) "
                "SET c.words = $words, c.vectors = $vectors",
                uuid=str(uuid4()),
                workspace=workspace,
                model=model,
                words=[word for word, _ in kept],
                vectors=b"".join(data for _, data in kept),
            )

    async def similar_words(self, workspace: str, vectors: Floats, *, limit: int) -> list[list[tuple[str, float]]]:
        """Return for each vector of the graph's model the words of the code nearest to it with their cosines."""
        matrix = await self.load(workspace)
        if matrix is None or not matrix.words or matrix.word_rows.shape[1] != vectors.shape[1]:
            return []
        return await asyncio.to_thread(_similar_words, matrix, vectors, limit)

    async def nearest(self, workspace: str, vector: Floats, *, limit: int) -> dict[str, float]:
        """Return the scopes nearest to a vector of the graph's model with their cosines, nearest first."""
        matrix = await self._fitting(workspace, vector)
        return {} if matrix is None else await asyncio.to_thread(_nearest, matrix, vector, limit)

    async def cosines(self, workspace: str, vector: Floats, uuids: Sequence[str]) -> dict[str, float]:
        """Return the cosines of scopes to a vector of the graph's model; scopes without a vector are left out."""
        matrix = await self._fitting(workspace, vector)
        if matrix is None:
            return {}
        known = [uuid for uuid in uuids if uuid in matrix.places]
        rows = [matrix.places[uuid] for uuid in known]
        scores = _cosines(matrix.rows[rows], matrix.norms[rows], vector)
        return dict(zip(known, scores.tolist(), strict=True))

    async def _fitting(self, workspace: str, vector: Floats) -> _Matrix | None:
        matrix = await self.load(workspace)
        return None if matrix is None or matrix.rows.shape[1] != len(vector) else matrix

    async def load(self, workspace: str) -> _Matrix | None:
        """Return the vectors of a workspace, read again if they changed; None if it has none."""
        known = self._matrices.get(workspace)
        if known is not None and time.monotonic() - self._checked.get(workspace, -math.inf) < CHECK_SECONDS:
            return known
        reading = self._reading.get(workspace)
        if reading is None or reading.done():
            reading = self._reading[workspace] = asyncio.create_task(self._load(workspace), name="code-vectors-read")
            reading.add_done_callback(_noted)
        done, _ = await asyncio.wait([reading], timeout=None if known is None else LIMITS.code_vectors)
        return reading.result() if done else known

    async def _load(self, workspace: str) -> _Matrix | None:
        row = await self._graph.one(
            "MATCH (i:CodeIndex {workspace: $workspace}) RETURN coalesce(i.vector_stamp, 0) AS stamp",
            workspace=workspace,
        )
        model, dimension = await recorded_embedding(self._graph)
        if row is None or not model:
            self._matrices.pop(workspace, None)
            return None
        known = self._matrices.get(workspace)
        if known is None or (known.stamp, known.model) != (row["stamp"], model):
            self._matrices[workspace] = await self._read(workspace, model, dimension, row["stamp"])
        self._checked[workspace] = time.monotonic()
        return self._matrices[workspace]

    async def _read(self, workspace: str, model: str, dimension: int, stamp: int) -> _Matrix:
        row = await self._graph.one(
            "MATCH (f:File {workspace: $workspace}) WHERE f.indexed_at IS NOT NULL AND coalesce(f.defines, 0) > 0 "
            "RETURN collect(f.path) AS paths",
            workspace=workspace,
        )
        paths = row["paths"] if row else []
        uuids: list[str] = []
        data = bytearray()
        for start in range(0, len(paths), _PAGE_FILES):
            page = await self._graph.one(
                "UNWIND $paths AS path MATCH (s:Scope {workspace: $workspace, file: path}) "
                "WHERE s.embed_model = $model AND s.vector IS NOT NULL AND s.removed_at IS NULL "
                "RETURN collect([s.uuid, s.vector]) AS vectors",
                workspace=workspace,
                paths=paths[start : start + _PAGE_FILES],
                model=model,
            )
            for uuid, vector in page["vectors"] if page else []:
                if isinstance(uuid, str) and isinstance(vector, bytes | bytearray) and len(vector) == dimension:
                    uuids.append(uuid)
                    data += vector
        rows = np.frombuffer(data, np.int8).reshape(len(uuids), dimension)
        words: list[str] = []
        word_data = bytearray()
        for found in await self._graph.rows(_WORDS.format("[c.words, c.vectors]"), workspace=workspace, model=model):
            page_words, page_data = found["page"]
            if isinstance(page_data, bytes | bytearray) and len(page_data) == dimension * len(page_words):
                words += page_words
                word_data += page_data
        word_rows = np.frombuffer(word_data, np.int8).reshape(len(words), dimension)
        norms, word_norms = await asyncio.to_thread(lambda: (_norms(rows), _norms(word_rows)))
        places = {uuid: place for place, uuid in enumerate(uuids)}
        return _Matrix(
            stamp=stamp,
            model=model,
            uuids=uuids,
            places=places,
            rows=rows,
            norms=norms,
            words=words,
            word_rows=word_rows,
            word_norms=word_norms,
        )


def _noted(reading: asyncio.Task[_Matrix | None]) -> None:
    """Log the failure of a read, because its caller may have stopped waiting for it."""
    if not reading.cancelled() and (error := reading.exception()) is not None:
        log.warning("vectors of code could not be read: %s", error)


def packed(vector: Floats) -> bytes | None:
    """Return a vector as signed bytes, scaled to their range; None for one of zeros."""
    most = float(np.abs(vector).max(initial=0.0))
    return np.rint(vector * (127.0 / most)).astype(np.int8).tobytes() if most > 0 else None


def _norms(rows: Bytes) -> Floats:
    norms = np.ones(len(rows), np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.float32)
        norms[start : start + _ROWS_AT_ONCE] = np.sqrt(np.einsum("ij,ij->i", part, part))
    return norms


def _cosines(rows: Bytes, norms: Floats, vector: Floats) -> Floats:
    scores = np.zeros(len(rows), np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.float32)
        # Not BLAS, whose threads wait for each other on a busy machine.
        scores[start : start + _ROWS_AT_ONCE] = np.einsum("ij,j->i", part, vector)
    scores /= norms * max(float(np.linalg.norm(vector)), 1e-12)
    return scores


def _best(scores: Floats, limit: int) -> list[int]:
    """Return the places of the highest scores, highest first."""
    count = min(limit, len(scores))
    best = np.argpartition(-scores, count - 1)[:count].tolist() if count else []
    return sorted(best, key=lambda row: -scores[row])


def _nearest(matrix: _Matrix, vector: Floats, limit: int) -> dict[str, float]:
    scores = _cosines(matrix.rows, matrix.norms, vector)
    return {matrix.uuids[row]: float(scores[row]) for row in _best(scores, limit)}


def _similar_words(matrix: _Matrix, vectors: Floats, limit: int) -> list[list[tuple[str, float]]]:
    found: list[list[tuple[str, float]]] = []
    for vector in vectors:
        key = (vector.tobytes(), limit)
        similar = matrix.similar.get(key)
        if similar is None:
            cosines = _cosines(matrix.word_rows, matrix.word_norms, vector)
            similar = [(matrix.words[row], float(cosines[row])) for row in _best(cosines, limit)]
            if len(matrix.similar) >= MOST_SIMILAR:
                matrix.similar.clear()
            matrix.similar[key] = similar
        found.append(similar)
    return found
