"""Step 8: search of summaries by their findings and files. Released, so it never changes.

The index of the first release knew the prose of a summary only, so a decision that it does not repeat was not found. A
new index replaces it, since neither backend can add a property to one.
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect

_OLD = ("conversation_summary", "actions_summary", "conversation_id")
_NEW = ("conversation_summary", "actions_summary", "findings_text", "conversation_id")
_FILL = (
    "MATCH (s:Summary) WHERE s.findings_text IS NULL SET s.findings_text = "
    "reduce(text = '', line IN coalesce(s.key_findings, []) | text + line + '\\n') + "
    # An index would keep a file's name as one word.
    "reduce(text = '', path IN coalesce(s.files_mentioned, []) | text + "
    "replace(replace(replace(replace(path, '/', ' '), '.', ' '), '_', ' '), '-', ' ') + '\\n')"
)


async def apply(dialect: Dialect, dimension: int) -> None:
    """Give the summaries that exist their findings as one text, and create the index that holds it."""
    await dialect.declare("Summary", "findings_text")
    await dialect.update(_FILL)
    await dialect.create_fulltext_index("Summary", _NEW)
    await dialect.drop_index(dialect.fulltext_index("Summary", _OLD))
    await dialect.await_indexes()
