"""Labels of the program: the properties that name a node, and those by which its own nodes are known.

A graph may be shared: another program may store nodes with the same labels. A node is this program's only if it has all
properties that this program writes when it makes one, of the right types. Others are never read, changed or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

SCHEMA_LABELS = ("RagforgeSchema", "RagforgeMigration")
"""Nodes of the schema itself, which each graph has its own of."""
OWNED = {
    "Message": 100,
    "ToolCall": 100,
    "ToolResult": 100,
    "Part": 16,
    "Context": 500,
    "Summary": 500,
    "Sitting": 100,
    "Insight": 500,
    "Finding": 500,
    "Attempt": 500,
    "BackgroundRequest": 500,
}
"""Nodes of one conversation, which have its id, and how many a purge deletes at once: a delete loads its nodes, and a
part of a text takes up to 1 MiB."""
SHARED = ("Topic", "Persona", "SystemText", "Commit", "File", "Scope", "CodeIndex", "CodeWords")
"""Nodes that several conversations, or none, refer to."""
ALL = ("Conversation", *OWNED, *SHARED)
FILE_SUFFIX = "_file"
"""End of the names of properties that refer to a text in a file."""
_KEYS = {"File": ("workspace", "path"), "CodeIndex": ("workspace",)}

_TEXT, _NUMBER, _TIME = "STRING NOT NULL", "INTEGER NOT NULL", "DATETIME"
_OWN: dict[str, dict[str, str]] = {
    "Conversation": {
        **dict.fromkeys(("uuid", "status"), _TEXT),
        **dict.fromkeys(("next_turn", "message_count", "total_chars"), _NUMBER),
        **dict.fromkeys(("created_at", "updated_at"), _TIME),
        # Lists of conversations compare and search these.
        **dict.fromkeys(("title", "summary", "workspace", "branch_of"), "STRING"),
        "branch_turn": "INTEGER",
        "private": "BOOLEAN",
        "stub": "BOOLEAN",
        "tags": "LIST<STRING NOT NULL>",
    },
    "Message": {
        **dict.fromkeys(("uuid", "conversation_id", "role", "state"), _TEXT),
        **dict.fromkeys(("turn_index", "position"), _NUMBER),
        "timestamp": _TIME,
    },
    "ToolCall": {
        **dict.fromkeys(("uuid", "conversation_id", "message_id", "tool_name"), _TEXT),
        **dict.fromkeys(("iteration", "ordinal"), _NUMBER),
        "timestamp": _TIME,
    },
    "ToolResult": {
        **dict.fromkeys(("uuid", "conversation_id", "tool_call_id"), _TEXT),
        "success": "BOOLEAN NOT NULL",
        "timestamp": _TIME,
    },
    "Part": {**dict.fromkeys(("uuid", "conversation_id", "owner", "field", "text"), _TEXT), "ordinal": _NUMBER},
    "Context": dict.fromkeys(("uuid", "conversation_id", "items"), _TEXT),
    "Summary": {
        **dict.fromkeys(("uuid", "conversation_id"), _TEXT),
        **dict.fromkeys(("level", "start_turn_index", "end_turn_index"), _NUMBER),
        "ordinal": "INTEGER",
        "created_at": _TIME,
    },
    "Sitting": {**dict.fromkeys(("uuid", "conversation_id", "text"), _TEXT), "ordinal": _NUMBER, "date": _TIME},
    "Insight": {**dict.fromkeys(("uuid", "conversation_id"), _TEXT), "created_at": _TIME},
    "Finding": {
        **dict.fromkeys(("uuid", "conversation_id", "kind", "text", "state"), _TEXT),
        "turn_index": _NUMBER,
        "since": _TIME,
        **dict.fromkeys(("workspace", "scope"), "STRING"),
    },
    "Attempt": {
        **dict.fromkeys(("uuid", "conversation_id", "workspace", "key", "outcome", "what"), _TEXT),
        **dict.fromkeys(("turn_index", "end_turn"), _NUMBER),
        "over": "BOOLEAN NOT NULL",
        "at": _TIME,
    },
    "BackgroundRequest": {
        **dict.fromkeys(("uuid", "conversation_id", "purpose", "model"), _TEXT),
        "input_tokens": _NUMBER,
        "timestamp": _TIME,
    },
    "Topic": {**dict.fromkeys(("uuid", "name"), _TEXT), "created_at": _TIME},
    "Persona": dict.fromkeys(("uuid", "name", "text"), _TEXT),
    "SystemText": dict.fromkeys(("uuid", "digest", "text"), _TEXT),
    "Commit": {**dict.fromkeys(("uuid", "hash"), _TEXT), "committed_at": _TIME},
    "File": dict.fromkeys(("workspace", "path"), _TEXT),
    "Scope": {
        **dict.fromkeys(("uuid", "workspace", "file", "name", "kind"), _TEXT),
        **dict.fromkeys(("start_line", "end_line"), _NUMBER),
    },
    "CodeIndex": dict.fromkeys(("workspace",), _TEXT),
    "CodeWords": dict.fromkeys(("uuid", "workspace", "model"), _TEXT),
}
"""Properties of the program's own nodes, with their types in Cypher."""
_PYTHON: dict[str, type] = {"STRING": str, "INTEGER": int, "BOOLEAN": bool, "DATETIME": datetime, "LIST": list}


def key_names(label: str) -> tuple[str, ...]:
    """Return the properties that name a node of a label."""
    return _KEYS.get(label, ("uuid",))


def key_of(label: str, properties: Mapping[str, Any]) -> list[str]:
    """Return the key of a node by its properties."""
    return [properties[name] for name in key_names(label)]


def matched(label: str, key: str) -> str:
    """Return the properties of a pattern that matches the node whose key is the list `key`."""
    return "{" + ", ".join(f"{name}: {key}[{place}]" for place, name in enumerate(key_names(label))) + "}"


def is_own(variable: str, label: str) -> str:
    """Return a Cypher condition that holds for this program's nodes of a label only."""
    return " AND ".join(_condition(f"{variable}.{name}", kind) for name, kind in _OWN[label].items())


def own_node(variable: str, label: str, properties: str = "") -> str:
    """Return a pattern that matches this program's nodes of a label only.

    Args:
        properties: What the pattern has between braces.
    """
    braces = f" {{{properties}}}" if properties else ""
    return f"({variable}:{label}{braces} WHERE {is_own(variable, label)})"


def lacking(variable: str, label: str) -> str:
    """Return a Cypher list of the properties that make a node another program's."""
    cases = (
        f"CASE WHEN {_condition(f'{variable}.{name}', kind)} THEN NULL ELSE '{name}' END"
        for name, kind in _OWN[label].items()
    )
    return f"[name IN [{', '.join(cases)}] WHERE name IS NOT NULL]"


def fault_of(label: str, properties: Mapping[str, Any]) -> str:
    """Return the first property that makes a node another program's; empty for one of this program."""
    for name, kind in _OWN[label].items():
        value = properties.get(name)
        wanted = _PYTHON[kind.split("<")[0].split()[0]]
        if value is None and (kind == _TIME or kind.endswith("NOT NULL")):
            return name
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            return name
    return ""


def _condition(value: str, kind: str) -> str:
    if kind == _TIME:
        # The embedded graph stores times without their zone.
        return f"({value} IS :: ZONED DATETIME NOT NULL OR {value} IS :: LOCAL DATETIME NOT NULL)"
    return f"{value} IS :: {kind}"
