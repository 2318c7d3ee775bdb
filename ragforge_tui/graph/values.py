"""Values of the driver as plain data: the output of ``graph query``, the same on both backends."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from neo4j.graph import Node, Path, Relationship
from neo4j.time import Date, DateTime, Duration, Time


def native(value: Any) -> Any:
    """Convert a driver's value to Python's types, recursively; datetimes become aware UTC."""
    if hasattr(value, "to_native"):
        value = value.to_native()
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, list):
        return [native(item) for item in value]
    if isinstance(value, Mapping):
        return {key: native(item) for key, item in value.items()}
    return value


def moment(text: str) -> datetime:
    """Return the time that Cypher's `toString` wrote, aware; the embedded graph writes UTC without its zone."""
    return native(datetime.fromisoformat(text))  # type: ignore[no-any-return]


def vector_bytes(value: Any) -> bytes | None:
    """Return stored float32 values; None for anything else, which another program may have put there."""
    return bytes(value) if isinstance(value, bytes | bytearray) and value and len(value) % 4 == 0 else None


def plain(value: Any) -> Any:
    """Return a value for JSON: nodes and relationships with properties, times in ISO 8601, bytes in base64."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Node():
            return {"labels": sorted(value.labels), "properties": _mapping(value)}
        case Relationship():
            return {"type": value.type, "properties": _mapping(value)}
        case Path():
            return {"nodes": [plain(node) for node in value.nodes], "relationships": [plain(r) for r in value]}
        case DateTime() | datetime():
            # The embedded graph stores times without their zone, which was UTC; so all times are returned in UTC.
            return native(value).isoformat()
        case Date() | Time():
            return value.to_native().isoformat()
        case date() | time():
            return value.isoformat()
        case Duration():
            return value.iso_format()
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return _mapping(value)
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    return str(value)


def _mapping(value: Any) -> dict[str, Any]:
    return {str(key): plain(item) for key, item in sorted(value.items())}
