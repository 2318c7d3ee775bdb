"""Export of a conversation to a file: JSON that can be imported without loss, Markdown or HTML to read; work of days.

Used by the command line, the screen's /export and the real-time exports, which all write the same bytes. Depends on
the record types alone.
"""

from ragforge_tui.export.json import (
    EXPORT_VERSION,
    ExportFormat,
    file_name,
    format_of,
    from_json,
    names_a_file,
    readable_name,
    safe_json,
    to_json,
)
from ragforge_tui.export.markdown import to_markdown
from ragforge_tui.export.standup import standup_markdown
from ragforge_tui.export.write import export_bytes, write_export

__all__ = [
    "EXPORT_VERSION",
    "ExportFormat",
    "export_bytes",
    "file_name",
    "format_of",
    "from_json",
    "names_a_file",
    "readable_name",
    "safe_json",
    "standup_markdown",
    "to_json",
    "to_markdown",
    "write_export",
]
