"""Step 4: scopes of the workspaces' code, and references between them. Released, so it never changes.

The first release made two indexes of scopes that nothing filled or read; they go, since each scope would be written to
them. Scopes have no vector index: their vectors are compared in the process (`store/code_vectors.py`).
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect

_PROPERTIES = (
    ("Scope", "uuid"),
    ("Scope", "workspace"),
    ("Scope", "file"),
    ("Scope", "name"),
    ("CodeIndex", "workspace"),
)
_UNUSED_FULLTEXT = ("name", "signature", "text", "workspace")


async def apply(dialect: Dialect, dimension: int) -> None:
    """Create the labels, relationships and indexes of code."""
    for label, prop in _PROPERTIES:
        await dialect.declare(label, prop)
    for name in ("DEFINES", "REFERENCES", "REFERENCES_CODE"):
        await dialect.create_relationship_type(name)
    await dialect.create_unique("Scope", ("uuid",))
    await dialect.create_unique("CodeIndex", ("workspace",))
    await dialect.create_range_index("File", ("workspace",))
    await dialect.create_range_index("Scope", ("workspace", "file"))
    await dialect.create_range_index("Scope", ("workspace", "name"))
    await dialect.create_range_index("Scope", ("name",))
    await dialect.drop_index(dialect.vector_index("Scope"))
    await dialect.drop_index(dialect.fulltext_index("Scope", _UNUSED_FULLTEXT))
    await dialect.create_fulltext_index("Scope", ("search_text", "workspace_key"))
    await dialect.await_indexes()
