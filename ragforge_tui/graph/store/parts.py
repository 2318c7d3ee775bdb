"""Texts too large for one statement, stored as ordered pieces.

A property above `PART_BYTES` is left empty on its node; the node lists the ids of its (:Part {ordinal, text}) pieces
in ``<property>_parts``, with HAS_PART relationships to them. Pieces are written first and never changed. Their id
comes from their text, so a growing text sends only its new tail and a repeated write stores nothing twice. The list on
the node is written last and switches readers from the old text to the new one at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.store.records import derived

PART_BYTES = 1024 * 1024
BATCH_BYTES = 2 * 1024 * 1024
BATCH_NODES = 500


def byte_length(text: str) -> int:
    """Return the length in UTF-8, without encoding plain ASCII."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def split(text: str, limit: int = PART_BYTES) -> list[str]:
    """Return pieces of at most `limit` bytes, cut between characters."""
    if text.isascii():
        return [text[start : start + limit] for start in range(0, len(text), limit)]
    data = text.encode("utf-8")
    pieces: list[str] = []
    start = 0
    while start < len(data):
        end = min(start + limit, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[start:end].decode("utf-8"))
        start = end
    return pieces


def row_size(row: Mapping[str, Any]) -> int:
    """Estimate the size of a row of properties in a statement, in bytes."""
    return sum(byte_length(v) if isinstance(v, str) else 64 for v in row.values()) + 32 * len(row)


def batches(
    rows: Iterable[dict[str, Any]], size_of: Callable[[dict[str, Any]], int] = row_size
) -> Iterator[list[dict[str, Any]]]:
    """Yield rows in batches limited by bytes and number."""
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        weight = size_of(row)
        if batch and (size + weight > BATCH_BYTES or len(batch) >= BATCH_NODES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += weight
    if batch:
        yield batch


async def store_large(
    graph: Graph, owner: str, conversation_id: str, properties: dict[str, Any], fields: Iterable[str]
) -> list[str]:
    """Move large texts out of `properties` into parts; the caller then stores `properties` and calls `link_parts`.

    Returns:
        The fields that have parts.
    """
    moved: list[str] = []
    for field in fields:
        text = properties.get(field) or ""
        key = f"{field}_parts"
        properties[key] = None
        if len(text) * 4 <= PART_BYTES or byte_length(text) <= PART_BYTES:
            continue
        rows = _part_rows(owner, conversation_id, field, text)
        properties[field] = ""
        properties[key] = [row["uuid"] for row in rows]
        await _write_missing(graph, rows)
        moved.append(field)
    return moved


def _part_rows(owner: str, conversation_id: str, field: str, text: str) -> list[dict[str, Any]]:
    rows = []
    for ordinal, piece in enumerate(split(text)):
        digest = hashlib.sha256(piece.encode("utf-8")).hexdigest()
        rows.append(
            {
                "uuid": derived("part", owner, field, ordinal, digest),
                "conversation_id": conversation_id,
                "owner": owner,
                "field": field,
                "ordinal": ordinal,
                "text": piece,
            }
        )
    return rows


async def _write_missing(graph: Graph, rows: list[dict[str, Any]]) -> None:
    wanted = [row["uuid"] for row in rows]
    known = {
        record["uuid"]
        for record in await graph.rows("UNWIND $ids AS id MATCH (p:Part {uuid: id}) RETURN p.uuid AS uuid", ids=wanted)
    }
    missing = (row for row in rows if row["uuid"] not in known)
    for batch in batches(missing, lambda row: byte_length(row["text"])):
        await graph.run("UNWIND $rows AS row MERGE (p:Part {uuid: row.uuid}) SET p += row", rows=batch)


async def link_parts(
    tx: Transaction, label: str, owner: str, properties: Mapping[str, Any], *, tidy: bool = True
) -> None:
    """Link a node's parts to it, in the transaction that stores the node.

    `tidy` drops the pieces it no longer has; not while a text still grows, since somebody may be reading it.
    """
    for key, ids in properties.items():
        if not key.endswith("_parts"):
            continue
        field = key.removesuffix("_parts")
        if ids:
            await tx.run(
                f"MATCH (n:{label} {{uuid: $owner}}) UNWIND $ids AS id MATCH (p:Part {{uuid: id}}) "
                "MERGE (n)-[r:HAS_PART]->(p) SET r.ordinal = p.ordinal",
                owner=owner,
                ids=ids,
            )
        if ids and tidy:
            await tx.run(
                f"MATCH (n:{label} {{uuid: $owner}})-[:HAS_PART]->(p:Part {{field: $field}}) "
                "WHERE NOT p.uuid IN $ids DETACH DELETE p",
                owner=owner,
                field=field,
                ids=ids,
            )


async def join_large(tx: Transaction, rows: Iterable[dict[str, Any]], fields: Iterable[str]) -> None:
    """Put large texts back into the rows that have parts."""
    fields = tuple(fields)
    for row in rows:
        for field in fields:
            ids = row.get(f"{field}_parts")
            if not ids:
                continue
            texts: dict[str, str] = {}
            for start in range(0, len(ids), 8):
                result = await tx.run(
                    "UNWIND $ids AS id MATCH (p:Part {uuid: id}) RETURN p.uuid AS uuid, p.text AS text",
                    ids=ids[start : start + 8],
                )
                texts.update({record["uuid"]: record["text"] async for record in result})
            row[field] = "".join(texts.get(part, "") for part in ids)
