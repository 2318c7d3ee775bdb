"""Lossless form of a conversation: one JSON document, which `import` reads.

It can also be written in pieces (`head`, `list_begin`, `items`, `list_end`, `tail`) whose concatenation equals the
whole byte for byte: a real-time export writes only the new turns and copies the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import TITLE_CHARS, Conversation
from ragforge_tui.shared.redaction import mask_secrets

EXPORT_VERSION = 2
"""Version that is written, and the newest one that can be read."""

ExportFormat = Literal["json", "markdown", "html"]

LISTS = ("turns", "contexts", "spoken")
"""Lists that grow with the conversation, in document order."""

_SUFFIXES: dict[ExportFormat, str] = {"json": ".json", "markdown": ".md", "html": ".html"}
_FILE_ID = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WORD = re.compile(r"[^\W_]+")
_CONTROLS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def names_a_file(uuid: str) -> bool:
    """Return whether files can be named after an id: it is short, without separators, dots or control characters.

    Imports accept only UUIDs; a graph that another program wrote to may hold other ids.
    """
    return _FILE_ID.fullmatch(uuid) is not None


def file_name(uuid: str, format: ExportFormat) -> str:
    """Return the name of an exported conversation's file.

    Raises:
        RagforgeError: The id is not fit for a file name.
    """
    _check_id(uuid)
    return f"conv-{uuid}{_SUFFIXES[format]}"


def readable_name(title: str, uuid: str, format: ExportFormat = "markdown") -> str:
    """Return the name of an export for people: the words of the title, and the beginning of the id.

    Raises:
        RagforgeError: The id is not fit for a file name.
    """
    _check_id(uuid)
    words = "-".join(_WORD.findall(title))[:TITLE_CHARS].strip("-")
    return f"{words or 'conversation'}-{uuid[:8]}{_SUFFIXES[format]}"


def format_of(name: str) -> ExportFormat:
    """Return the format of a file that is to be written, by its suffix; JSON for an unknown one."""
    return next((format for format, suffix in _SUFFIXES.items() if name.lower().endswith(suffix)), "json")


def _check_id(uuid: str) -> None:
    if not names_a_file(uuid):
        raise RagforgeError(
            f"No file can be named after the conversation {uuid[:60]!r}: its id is not a UUID.",
            todo="Name the file yourself.",
            kind="bad_id",
        )


def to_json(export: ConversationExport) -> bytes:
    """Return an export as JSON, lossless except that secrets are masked."""
    return _indented(export) + b"\n"


def from_json(data: bytes) -> ConversationExport:
    """Read the lossless form, of this version or an earlier one.

    Raises:
        RagforgeError: The data is not an export, or a newer program wrote it.
    """
    with suppress(UnicodeDecodeError):  # the decoder reports it
        data = mask_secrets(data.decode()).encode()
    try:
        export = decode_json(data, ConversationExport)
    except msgspec.MsgspecError as error:
        raise RagforgeError(f"This is not an exported conversation: {error}.", kind="bad_export") from error
    if export.version > EXPORT_VERSION:
        raise RagforgeError(
            f"This export has version {export.version}, which is newer than this program.",
            todo="Upgrade ragforge-tui.",
            kind="bad_export",
        )
    export.version = EXPORT_VERSION
    return export


def safe_json(document: bytes) -> bytes:
    """Escape the control characters that JSON leaves as they are: DEL, C1 and bidirectional controls."""
    text = document.decode()
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def head(conversation: Conversation) -> bytes:
    """Return the document up to its first list."""
    whole = _indented(ConversationExport(conversation=conversation, turns=[]))
    return whole[: whole.rindex(b',\n  "turns": []')]


def list_begin(name: str) -> bytes:
    """Return the opening of a list, with its key and the comma before it."""
    return f',\n  "{name}": ['.encode()


def items(records: Iterable[Any], *, first: bool) -> list[bytes]:
    """Return records as elements of an open list; `first` if the list is still empty."""
    pieces: list[bytes] = []
    for record in records:
        comma = b"" if first and not pieces else b","
        pieces.append(comma + b"\n    " + _indented(record).replace(b"\n", b"\n    "))
    return pieces


def list_end(*, empty: bool) -> bytes:
    """Return the end of a list; an empty one is closed on the same line."""
    return b"]" if empty else b"\n  ]"


def tail(memory: MemoryExport) -> bytes:
    """Return the memory section and the end of the document."""
    return b',\n  "memory": ' + _indented(memory).replace(b"\n", b"\n  ") + b"\n}\n"


def _indented(record: Any) -> bytes:
    return safe_json(mask_secrets(msgspec.json.format(msgspec.json.encode(record)).decode()).encode())
