"""Checks of what a backup holds, before anything of the graph is changed.

A checksum says that a file is whole, not who wrote it. So a backup is checked like an import: ids become file names,
turn indexes become loops, and whatever the graph would reject in the middle of a restore would leave it half empty.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ragforge_tui.graph.content_files import Reference
from ragforge_tui.graph.labels import FILE_SUFFIX, OWNED, fault_of, key_names, key_of
from ragforge_tui.graph.transfer.import_checks import LARGEST, MAX_LEVEL

MOST_TURNS = 1_000_000
"""Highest turn index: loops over turns must end."""
MOST_DIMENSIONS = 8_192
_NAMED_BY_ID = frozenset({"Conversation", *OWNED, "Topic", "Persona", "SystemText"})
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
"""Ids become names of files and folders. An import wants UUIDs; a graph may have got others through the Python API."""
_RANGES = {
    "turn_index": (1, MOST_TURNS),
    "next_turn": (1, MOST_TURNS + 1),
    "branch_turn": (0, MOST_TURNS),
    "start_turn_index": (1, MOST_TURNS),
    "end_turn_index": (1, MOST_TURNS),
    "position": (0, MOST_TURNS),
    "ordinal": (0, MOST_TURNS),
    "level": (1, MAX_LEVEL),
    "message_count": (0, LARGEST),
    "total_chars": (0, LARGEST),
}
_UNIQUE = {
    "Message": (("conversation_id", "turn_index", "position"),),
    "Summary": (("conversation_id", "level", "start_turn_index"), ("conversation_id", "sequence")),
    "Sitting": (("conversation_id", "ordinal"),),
}
"""Properties that the schema wants once, besides the keys."""
_SCALARS = (str, int, float, bytes, datetime)


Edge = tuple[list[str], list[str], Mapping[str, Any]]


class InvalidBackupError(ValueError):
    """Content that this program does not write; the message is part of a sentence."""


def check_origin(schema_version: int, schema: Mapping[str, Any]) -> None:
    """Check a header's version and the properties of its version node.

    Raises:
        InvalidBackupError: One of them cannot be.
    """
    if schema_version < 0:
        raise InvalidBackupError(f"its schema version is {schema_version}")
    _check_values(schema)
    model, dimension = schema.get("embedding_model"), schema.get("embedding_dimension")
    if not isinstance(model, str | None):
        raise InvalidBackupError("the name of its embedding model is no text")
    if dimension is not None and (type(dimension) is not int or not 1 <= dimension <= MOST_DIMENSIONS):
        raise InvalidBackupError(f"its vectors have {dimension!r} dimensions")


class ContentCheck:
    """Check of a backup's records, one after the other.

    Attributes:
        nodes: Number of nodes so far, by label.
        edges: Number of relationships so far, by type.
        texts: Number of texts in files so far.
    """

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self.edges: Counter[str] = Counter()
        self.texts = 0
        self._seen: set[bytes] = set()
        self._conversations: set[str] = set()
        self._named: set[str] = set()

    def add_nodes(self, label: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Check the nodes of a record.

        Raises:
            InvalidBackupError: A property is missing, of another type or out of range, or a node occurs twice.
        """
        for row in rows:
            if fault := fault_of(label, row):
                raise InvalidBackupError(f"{fault} of a {label} is missing or of another type")
            _check_values(row)
            if label in _NAMED_BY_ID and not _ID.fullmatch(row["uuid"]):
                raise InvalidBackupError(f"the id of a {label} cannot be the name of a file")
            self._check_numbers(label, row)
            self._once(label, key_names(label), key_of(label, row))
            for names in _UNIQUE.get(label, ()):
                if all(row.get(name) is not None for name in names):
                    self._once(label, names, [row[name] for name in names])
            if label == "Conversation":
                self._conversations.add(row["uuid"])
            elif label in OWNED:
                self._named.add(row["conversation_id"])
            self._check_files(label, row)
            self.nodes[label] += 1

    def add_edges(
        self, kind: str, source: str, target: str, rows: Iterable[tuple[Any, Any, Mapping[str, Any]]]
    ) -> None:
        """Check the relationships of a record.

        Raises:
            InvalidBackupError: A key or a property has another form.
        """
        for start, end, values in rows:
            if len(start) != len(key_names(source)) or len(end) != len(key_names(target)):
                raise InvalidBackupError(f"a {kind} relationship does not name its nodes")
            _check_values(values)
            self.edges[kind] += 1

    def add_texts(self, conversation: str, number: int) -> None:
        """Check the conversation of texts in files, whose id becomes the name of a folder.

        Raises:
            InvalidBackupError: It is not an id.
        """
        if not _ID.fullmatch(conversation):
            raise InvalidBackupError("the id of a conversation cannot be the name of a folder")
        self._named.add(conversation)
        self.texts += number

    def finish(self, nodes: Mapping[str, int], edges: Mapping[str, int], texts: int, lost: int) -> None:
        """Check what needs all records: references to conversations, and the counts of the end record.

        Raises:
            InvalidBackupError: A conversation is missing, or a count is another one.
        """
        if self._named - self._conversations:
            raise InvalidBackupError("a conversation is missing to which other nodes belong")
        if (dict(nodes), dict(edges), texts) != (dict(self.nodes), dict(self.edges), self.texts) or lost < 0:
            raise InvalidBackupError("its counts do not fit what it holds")

    def _check_numbers(self, label: str, row: Mapping[str, Any]) -> None:
        for name, (least, most) in _RANGES.items():
            value = row.get(name)
            # One of another type is read as if it were not set; only those that a node must have are of the right type.
            if isinstance(value, int) and not least <= value <= most:
                raise InvalidBackupError(f"{name} of a {label} is {value!r:.40}")
        if label == "Summary" and row["end_turn_index"] < row["start_turn_index"]:
            raise InvalidBackupError("a summary ends before it starts")
        if label == "Conversation" and row.get("branch_of") == row["uuid"]:
            raise InvalidBackupError("a conversation is a branch of itself")

    def _check_files(self, label: str, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if name.endswith(FILE_SUFFIX) and value is not None and not Reference.is_valid(value):
                raise InvalidBackupError(f"{name} of a {label} does not refer to a text")

    def _once(self, label: str, names: Iterable[str], values: Iterable[Any]) -> None:
        # A graph may have millions of nodes: digests take the least room.
        digest = hashlib.blake2b(repr((label, *names, *values)).encode(), digest_size=16).digest()
        if digest in self._seen:
            raise InvalidBackupError(f"a {label} occurs twice")
        self._seen.add(digest)


def _check_values(properties: Mapping[str, Any]) -> None:
    """Check that a graph can store all values: texts, numbers, times, bytes, and lists of one of these."""
    for name, value in properties.items():
        items = value if isinstance(value, list) else () if value is None else (value,)
        kinds = {type(item) for item in items}
        if len(kinds) > 1 or not all(isinstance(item, _SCALARS) for item in items):
            raise InvalidBackupError(f"{name:.40} has a value that no graph can store")
        if int in kinds and not all(-LARGEST <= item < LARGEST for item in items):
            raise InvalidBackupError(f"{name:.40} is too large")
