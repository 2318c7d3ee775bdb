"""Step 10, the first: the types, relationships, constraints and indexes of 0.1.0.

Scopes have no vector index: their vectors are compared in the process (`store/code_vectors.py`).
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect

_PROPERTIES = (
    ("Conversation", "uuid", "STRING"),
    ("Conversation", "status", "STRING"),
    ("Conversation", "created_at", "DATETIME"),
    ("Conversation", "updated_at", "DATETIME"),
    ("Conversation", "workspace", "STRING"),
    ("Conversation", "branch_of", "STRING"),
    ("Message", "uuid", "STRING"),
    ("Message", "conversation_id", "STRING"),
    ("Message", "turn_index", "LONG"),
    ("Message", "position", "LONG"),
    ("Message", "content_file", "STRING"),
    ("Message", "reasoning_file", "STRING"),
    ("Message", "note_file", "STRING"),
    ("ToolCall", "uuid", "STRING"),
    ("ToolCall", "message_id", "STRING"),
    ("ToolCall", "conversation_id", "STRING"),
    ("ToolCall", "arguments_file", "STRING"),
    ("ToolCall", "reasoning_file", "STRING"),
    ("ToolResult", "uuid", "STRING"),
    ("ToolResult", "conversation_id", "STRING"),
    ("ToolResult", "result_file", "STRING"),
    ("Summary", "uuid", "STRING"),
    ("Summary", "conversation_id", "STRING"),
    ("Summary", "level", "LONG"),
    ("Summary", "sequence", "LONG"),
    ("Summary", "start_turn_index", "LONG"),
    ("Topic", "uuid", "STRING"),
    ("Topic", "name", "STRING"),
    ("Sitting", "uuid", "STRING"),
    ("Sitting", "conversation_id", "STRING"),
    ("Sitting", "ordinal", "LONG"),
    ("Context", "uuid", "STRING"),
    ("Context", "conversation_id", "STRING"),
    ("Insight", "uuid", "STRING"),
    ("Insight", "conversation_id", "STRING"),
    ("Finding", "uuid", "STRING"),
    ("Finding", "conversation_id", "STRING"),
    ("Finding", "workspace", "STRING"),
    ("Finding", "scope", "STRING"),
    ("Attempt", "uuid", "STRING"),
    ("Attempt", "conversation_id", "STRING"),
    ("Attempt", "workspace", "STRING"),
    ("Attempt", "key", "STRING"),
    ("BackgroundRequest", "uuid", "STRING"),
    ("BackgroundRequest", "conversation_id", "STRING"),
    ("Persona", "uuid", "STRING"),
    ("SystemText", "uuid", "STRING"),
    ("Part", "uuid", "STRING"),
    ("Part", "conversation_id", "STRING"),
    ("Commit", "uuid", "STRING"),
    ("Commit", "hash", "STRING"),
    ("Commit", "workspace", "STRING"),
    ("File", "workspace", "STRING"),
    ("File", "path", "STRING"),
    ("Scope", "uuid", "STRING"),
    ("Scope", "workspace", "STRING"),
    ("Scope", "file", "STRING"),
    ("Scope", "name", "STRING"),
    ("CodeIndex", "workspace", "STRING"),
    ("CodeWords", "workspace", "STRING"),
    ("RagforgeSchema", "name", "STRING"),
    ("RagforgeMigration", "name", "STRING"),
)
_RELATIONSHIPS = (
    "HAS_MESSAGE",
    "MADE_TOOL_CALL",
    "PRODUCED_RESULT",
    "ACCESSED",
    "CHANGED",
    "SPOKEN_AS",
    "WAS_SENT",
    "BEGINS_WITH",
    "HAS_PART",
    "HAS_SITTING",
    "HAS_SUMMARY",
    "SUMMARIZES",
    "MENTIONS_FILE",
    "HAS_TOPIC",
    "RELATED_TO",
    "MERGED_INTO",
    "HAS_INSIGHT",
    "HAS_FINDING",
    "FROM",
    "ABOUT",
    "REPLACES",
    "CLOSED_BY",
    "HAS_BACKGROUND_REQUEST",
    "HAS_BRANCH",
    "IN",
    "PRODUCED",
    "DEFINES",
    "REFERENCES",
    "REFERENCES_CODE",
)
_UNIQUE = (
    ("Conversation", ("uuid",)),
    ("Message", ("uuid",)),
    ("ToolCall", ("uuid",)),
    ("ToolResult", ("uuid",)),
    ("Summary", ("uuid",)),
    ("Topic", ("uuid",)),
    ("Sitting", ("uuid",)),
    ("Context", ("uuid",)),
    ("Insight", ("uuid",)),
    ("Finding", ("uuid",)),
    ("Attempt", ("uuid",)),
    ("BackgroundRequest", ("uuid",)),
    ("Persona", ("uuid",)),
    ("SystemText", ("uuid",)),
    ("Part", ("uuid",)),
    ("Commit", ("uuid",)),
    ("Scope", ("uuid",)),
    ("CodeIndex", ("workspace",)),
    ("Message", ("conversation_id", "turn_index", "position")),
    ("Sitting", ("conversation_id", "ordinal")),
    ("Summary", ("conversation_id", "level", "start_turn_index")),
    # Of two summaries made at once one is refused, whatever its range.
    ("Summary", ("conversation_id", "sequence")),
    ("File", ("workspace", "path")),
    ("RagforgeSchema", ("name",)),
    ("RagforgeMigration", ("name",)),
)
_RANGE = (
    ("Conversation", ("status",)),
    ("Conversation", ("created_at",)),
    ("Conversation", ("updated_at",)),
    ("Conversation", ("workspace",)),
    ("Conversation", ("branch_of",)),
    ("Message", ("conversation_id",)),
    ("Message", ("conversation_id", "turn_index")),
    ("ToolCall", ("message_id",)),
    ("ToolCall", ("conversation_id",)),
    ("ToolResult", ("conversation_id",)),
    ("Part", ("conversation_id",)),
    ("Context", ("conversation_id",)),
    ("Summary", ("conversation_id",)),
    ("Sitting", ("conversation_id",)),
    ("Insight", ("conversation_id",)),
    ("Finding", ("conversation_id",)),
    ("Finding", ("workspace",)),
    ("Finding", ("scope",)),
    ("Attempt", ("conversation_id",)),
    ("Attempt", ("workspace", "key")),
    ("BackgroundRequest", ("conversation_id",)),
    ("Summary", ("conversation_id", "level")),
    ("Topic", ("name",)),
    ("Commit", ("hash",)),
    ("File", ("workspace",)),
    ("Scope", ("workspace", "file")),
    ("Scope", ("workspace", "name")),
    ("Scope", ("name",)),
    ("CodeWords", ("workspace",)),
)
_VECTOR = (
    ("Message", "embedding"),
    ("Summary", "embedding"),
    ("Topic", "embedding"),
    ("Conversation", "summary_embedding"),
)
_FULLTEXT = (
    ("Message", ("turn_text", "conversation_id"), "en"),
    ("Message", ("lex_key", "conversation_id"), "en"),
    ("Message", ("lex_key_fr", "conversation_id"), "fr"),
    ("Sitting", ("text", "conversation_id"), "en"),
    ("Summary", ("conversation_summary", "actions_summary", "findings_text", "conversation_id"), "en"),
    ("Scope", ("search_text", "workspace_key"), "en"),
)


async def apply(dialect: Dialect, dimension: int) -> None:
    """Make everything; what exists stays.

    Args:
        dialect: Of the graph.
        dimension: Of the vectors.
    """
    for label, prop, kind in _PROPERTIES:
        await dialect.declare(label, prop, kind)
    for name in _RELATIONSHIPS:
        await dialect.create_relationship_type(name)
    for label, props in _UNIQUE:
        await dialect.create_unique(label, props)
    for label, props in _RANGE:
        await dialect.create_range_index(label, props)
    for label, prop in _VECTOR:
        await dialect.create_vector_index(label, prop, dimension)
    for label, fulltext, language in _FULLTEXT:
        await dialect.create_fulltext_index(label, fulltext, language)
    await dialect.await_indexes()
