"""Conversion between the records of `shared/records.py` and the flat properties of nodes.

Text is made storable here, so that nothing reaches the driver that it refuses (lone surrogates, NUL). Times come back
with a time zone whatever the backend returns.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from ragforge_tui.graph.values import native
from ragforge_tui.shared.records import Conversation, FileAccess, Message, ToolCall, ToolResult, Usage
from ragforge_tui.shared.sanitize import storable, storable_value

T = TypeVar("T", bound=msgspec.Struct)

NAMESPACE = uuid.UUID("5f0c2a5e-8a6d-5d0f-9b0e-2f6d1c7a4e31")
"""Namespace of derived ids: the same thing always gets the same uuid, which makes writes idempotent."""

CONVERSATION_FIELDS = Conversation.__struct_fields__
MESSAGE_FIELDS = tuple(f for f in Message.__struct_fields__ if f not in ("usage", "tool_calls"))
USAGE_FIELDS = Usage.__struct_fields__
CALL_FIELDS = tuple(f for f in ToolCall.__struct_fields__ if f not in ("result", "files", "changes"))
RESULT_FIELDS = ToolResult.__struct_fields__


def derived(*parts: object) -> str:
    return str(uuid.uuid5(NAMESPACE, "\x1f".join(str(part) for part in parts)))


def projection(variable: str, fields: tuple[str, ...], *extra: str) -> str:
    """Return a map projection of exactly these properties: never ``.*``, which would transfer embeddings."""
    return f"{variable} {{{', '.join(f'.{name}' for name in (*fields, *extra))}}}"


def given(properties: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that have a value: a property that was never set keeps its default."""
    return {name: native(properties[name]) for name in fields if properties.get(name) is not None}


def record_from(kind: type[T], values: Mapping[str, Any]) -> T | None:
    """Return a record of a node's properties; None if one it cannot be without is missing or of another type.

    A graph may be shared, so a node may be another program's, or changed by one. A property that does not fit is read
    as if it had never been set.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError:
        fitting = dict(values)
    for field in msgspec.structs.fields(kind):
        try:
            msgspec.convert(fitting.get(field.name), field.type)
        except msgspec.ValidationError:
            fitting.pop(field.name, None)
    try:
        return msgspec.convert(fitting, kind)
    except msgspec.ValidationError:
        return None


def graph_value(value: Any) -> Any:
    """Convert a value for the driver."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return storable_value(value)


def properties_of(record: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return these fields of a record, storable; None stays, since setting it removes the property."""
    return {name: graph_value(getattr(record, name)) for name in fields}


def conversation_properties(conversation: Conversation) -> dict[str, Any]:
    return properties_of(conversation, CONVERSATION_FIELDS)


def conversation_from(properties: Mapping[str, Any]) -> Conversation | None:
    return record_from(Conversation, given(properties, CONVERSATION_FIELDS))


def message_properties(message: Message) -> dict[str, Any]:
    properties = properties_of(message, MESSAGE_FIELDS)
    return properties | usage_properties(message.usage)


def usage_properties(usage: Usage | None) -> dict[str, Any]:
    return {name: getattr(usage, name) if usage else None for name in USAGE_FIELDS}


def usage_from(properties: Mapping[str, Any]) -> Usage | None:
    return record_from(Usage, given(properties, USAGE_FIELDS)) if properties.get("input_tokens") is not None else None


def message_from(properties: Mapping[str, Any]) -> Message | None:
    message = record_from(Message, given(properties, MESSAGE_FIELDS))
    if message is not None:
        message.usage = usage_from(properties)
    return message


def call_properties(call: ToolCall, conversation_id: str) -> dict[str, Any]:
    return {**properties_of(call, CALL_FIELDS), "conversation_id": conversation_id}


def call_from(properties: Mapping[str, Any]) -> ToolCall | None:
    return record_from(ToolCall, given(properties, CALL_FIELDS))


def result_properties(result: ToolResult, conversation_id: str) -> dict[str, Any]:
    return {**properties_of(result, RESULT_FIELDS), "conversation_id": conversation_id}


def result_from(properties: Mapping[str, Any]) -> ToolResult | None:
    return record_from(ToolResult, given(properties, RESULT_FIELDS))


def file_rows(files: list[FileAccess]) -> list[dict[str, str]]:
    return [{"path": storable(file.path), "access": file.access} for file in files]
