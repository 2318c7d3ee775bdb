"""Texts kept outside their node: in files, or as ordered pieces when they are too large for one statement.

A graph with hybrid persistence keeps the text of `content`, `reasoning`, `arguments`, `result` and the like in files
(`content_files.py`); the node then has an empty property and a reference in ``<property>_file``. A text that cannot be
written to a file stays in the graph, and each node records where its texts are.

In the graph, a property above `PART_BYTES` is left empty on its node; the node lists the ids of its (:Part {ordinal,
text}) pieces in ``<property>_parts``, with HAS_PART relationships to them. Pieces are written first and never changed.
Their id comes from their text, so a growing text sends only its new tail and a repeated write stores nothing twice. The
list on the node is written last and switches readers from the old text to the new one at once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import Reference, Text
from ragforge_tui.graph.store.records import derived

log = logging.getLogger(__name__)

PART_BYTES = 1024 * 1024
BATCH_BYTES = 2 * 1024 * 1024
BATCH_NODES = 500
_STAYS = frozenset({"error"})
"""Texts that are a status more than a content, and stay in the graph."""


def outside(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the properties that locate the texts of these fields, for a projection."""
    return tuple(f"{field}{suffix}" for field in fields for suffix in ("_file", "_parts"))


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
    graph: Graph,
    owner: str,
    conversation_id: str,
    properties: dict[str, Any],
    fields: Iterable[str],
    *,
    growing: bool = False,
) -> list[str]:
    """Move texts out of `properties` into files or parts; the caller then stores `properties` and calls `link_parts`.

    Args:
        growing: The texts of a message that still streams, which stay in the graph: files would hold every version.

    Returns:
        The fields that have parts.
    """
    fields = tuple(fields)
    if not growing:
        await move_to_files(graph, conversation_id, [(owner, properties)], fields)
    return await store_parts(graph, owner, conversation_id, properties, fields)


async def move_to_files(
    graph: Graph, conversation_id: str, rows: Sequence[tuple[str, dict[str, Any]]], fields: Iterable[str]
) -> None:
    """Move texts of one conversation's nodes into its file, where the graph keeps its contents in files.

    Args:
        rows: The uuid and the properties of each node.
    """
    places = [(owner, row, field) for owner, row in rows for field in fields if field not in _STAYS]
    for _, row, field in places:
        row[f"{field}_file"] = None
    if not graph.contents.writes or not conversation_id:
        return
    places = [(owner, row, field) for owner, row, field in places if row.get(field)]
    texts = [Text(owner, field, row[field]) for owner, row, field in places]
    try:
        references = await graph.contents.append(conversation_id, texts)
    except OSError as error:
        log.warning("contents: texts stay in the graph, because %s cannot be written: %s", graph.contents.root, error)
        return
    for (_, row, field), reference in zip(places, references, strict=True):
        row[field], row[f"{field}_file"] = "", reference.encode()


async def store_parts(
    graph: Graph, owner: str, conversation_id: str, properties: dict[str, Any], fields: Iterable[str]
) -> list[str]:
    """Move large texts out of `properties` into parts, and return their fields."""
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
        file = properties.get(f"{field}_file")
        if file and Reference.decode(file).size > PART_BYTES:
            # It grew beyond one property while it was streamed.
            await drop_parts(tx, label, owner, field)
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


async def drop_parts(tx: Transaction, label: str, owner: str, field: str) -> None:
    """Remove the pieces of a text that is stored elsewhere now."""
    await tx.run(
        f"MATCH (n:{label} {{uuid: $owner}})-[:HAS_PART]->(p:Part {{field: $field}}) DETACH DELETE p",
        owner=owner,
        field=field,
    )


async def join_large(graph: Graph, tx: Transaction, rows: Iterable[dict[str, Any]], fields: Iterable[str]) -> None:
    """Put the texts of files and parts back into the rows that have them."""
    fields, rows = tuple(fields), list(rows)
    await graph.contents.fill(rows, fields)
    await join_parts(tx, rows, fields)


async def join_parts(tx: Transaction, rows: Iterable[dict[str, Any]], fields: Sequence[str]) -> None:
    """Put large texts of the graph back into the rows that have parts."""
    for row in rows:
        for field in fields:
            ids = row.get(f"{field}_parts")
            if not ids or row.get(f"{field}_file"):
                continue
            texts: dict[str, str] = {}
            for start in range(0, len(ids), 8):
                result = await tx.run(
                    "UNWIND $ids AS id MATCH (p:Part {uuid: id}) RETURN p.uuid AS uuid, p.text AS text",
                    ids=ids[start : start + 8],
                )
                texts.update({record["uuid"]: record["text"] async for record in result})
            row[field] = "".join(texts.get(part, "") for part in ids)
