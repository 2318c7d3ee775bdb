"""Step 7: references to texts in files. Released, so it never changes.

An earlier release would show such texts as empty, so it must not open the graph.
"""

from __future__ import annotations

from ragforge_tui.graph.dialect import Dialect

_REFERENCES = (
    ("Message", "content_file"),
    ("Message", "reasoning_file"),
    ("Message", "note_file"),
    ("ToolCall", "arguments_file"),
    ("ToolCall", "reasoning_file"),
    ("ToolResult", "result_file"),
)


async def apply(dialect: Dialect, dimension: int) -> None:
    """Declare the properties that refer to texts in files."""
    for label, prop in _REFERENCES:
        await dialect.declare(label, prop)
