"""Labels of the program: which nodes a backup holds, and the properties that name a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA_LABELS = ("RagforgeSchema", "RagforgeMigration")
"""Nodes of the schema itself, which each graph has its own of."""
OWNED = ("Message", "ToolCall", "ToolResult", "Part", "Context", "Summary", "Sitting", "Insight")
"""Nodes of one conversation, which have its id."""
SHARED = ("Topic", "Persona", "SystemText", "Commit", "File", "Scope", "CodeIndex", "CodeWords")
"""Nodes that several conversations, or none, refer to."""
ALL = ("Conversation", *OWNED, *SHARED)
FILE_SUFFIX = "_file"
"""End of the names of properties that refer to a text in a file."""
_KEYS = {"File": ("workspace", "path"), "CodeIndex": ("workspace",)}


def key_names(label: str) -> tuple[str, ...]:
    """Return the properties that name a node of a label."""
    return _KEYS.get(label, ("uuid",))


def key_of(label: str, properties: Mapping[str, Any]) -> list[str]:
    """Return the key of a node by its properties."""
    return [properties[name] for name in key_names(label)]


def matched(label: str, key: str) -> str:
    """Return the properties of a pattern that matches the node whose key is the list `key`."""
    return "{" + ", ".join(f"{name}: {key}[{place}]" for place, name in enumerate(key_names(label))) + "}"
