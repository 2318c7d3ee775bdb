"""Properties of the full-text and vector indexes that statements use.

A change here needs a new step of the schema: released steps carry their own statements.
"""

from __future__ import annotations

# Each full-text index has conversation_id, so that a search is limited to conversations inside the query.
MESSAGE_TEXT = ("turn_text", "conversation_id")
MESSAGE_LEX = {"en": ("lex_key", "conversation_id"), "fr": ("lex_key_fr", "conversation_id")}
"""A turn's window key by language; other languages use English, whose stemmer leaves most foreign words alone."""
SUMMARY_TEXT = ("conversation_summary", "actions_summary", "findings_text", "conversation_id")
SCOPE_TEXT = ("search_text", "workspace_key")
"""A scope has its workspace as one word, so that a search is limited to it."""

VECTOR = (
    ("Message", "embedding"),
    ("Summary", "embedding"),
    ("Topic", "embedding"),
    ("Conversation", "summary_embedding"),
)
"""Vector indexes: label and property."""
