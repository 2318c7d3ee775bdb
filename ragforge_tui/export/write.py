"""Writing an exported conversation to a file that the user or a program names."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.export.html import to_html
from ragforge_tui.export.json import ExportFormat, file_name, to_json
from ragforge_tui.export.markdown import to_markdown
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.files import atomic_write


def export_bytes(exported: ConversationExport, format: ExportFormat) -> bytes:
    """Return the document in a format, with secrets masked."""
    if format == "json":
        return to_json(exported)
    return (to_html(exported) if format == "html" else to_markdown(exported)).encode("utf-8", "replace")


def write_export(exported: ConversationExport, format: ExportFormat, path: Path) -> Path:
    """Write the document and return its path; a folder gets a file named after the conversation.

    Raises:
        RagforgeError: The file cannot be written.
    """
    data = export_bytes(exported, format)
    path = path.expanduser()
    target = path / file_name(exported.conversation.uuid, format) if path.is_dir() else path
    if not target.parent.is_dir():
        raise RagforgeError(f"{target} cannot be written: the folder {target.parent} does not exist.")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe
        else:
            atomic_write(target, data, keep_mode=True)
    except OSError as error:
        raise RagforgeError(f"{target} cannot be written: {error.strerror}.") from error
    return target
