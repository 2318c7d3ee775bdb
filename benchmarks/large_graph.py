"""A large graph, made up: ``python -m benchmarks.large_graph FILE [--turns 100000] [--workspace FOLDER]``.

Writes a backup that ``ragforge-chat graph restore FILE`` makes a graph of, on either backend: some ten minutes for
100 000 turns, where an import and the local model would take an hour. It holds conversations of 1 000 to 2 500 turns
with all that a chat would have stored: recall keys, vectors, sittings, summaries of level 1 and topics. The words are
made up and so are the vectors, which `synthetic.WordVectors` gives for the same words again.
"""

from __future__ import annotations

import argparse
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import synthetic
from ragforge_tui.graph.backup.backup_file import FORMAT, BackupWriter, Edges, End, Header, Nodes, new_backup
from ragforge_tui.graph.schema.migrate import VERSION
from ragforge_tui.graph.store.messages import key_properties
from ragforge_tui.graph.store.records import conversation_properties, derived, message_properties, properties_of
from ragforge_tui.graph.store.topic_names import topic_uuid
from ragforge_tui.memory.retrieval.keys import KEYS_VERSION, TurnKeys, keys_of, lex_key, sitting_text
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import EXTRACTIVE, Summary, now

SHORTEST, LONGEST = 1_000, 2_500
SUMMARY_TURNS = 5
TOPICS = 400
TOPICS_EACH = 2
ROWS = 200
"""Nodes or relationships in one record of the file."""

Row = dict[str, Any]
Edge = tuple[list[str], list[str], Row]


class Written:
    """The backup on its way into a file, with its counts."""

    def __init__(self, writer: BackupWriter) -> None:
        self._writer = writer
        self._nodes: Counter[str] = Counter()
        self._edges: Counter[str] = Counter()

    def nodes(self, label: str, rows: Sequence[Row]) -> None:
        """Add nodes of a label."""
        for first in range(0, len(rows), ROWS):
            self._writer.put(Nodes(label, list(rows[first : first + ROWS])))
        self._nodes[label] += len(rows)

    def edges(self, kind: str, source: str, target: str, rows: Sequence[Edge]) -> None:
        """Add relationships of a kind."""
        for first in range(0, len(rows), ROWS):
            self._writer.put(Edges(kind, source, target, list(rows[first : first + ROWS])))
        self._edges[kind] += len(rows)

    def finish(self) -> None:
        """Write the end."""
        self._writer.finish(End(nodes=dict(self._nodes), edges=dict(self._edges), texts=0, lost=0))


def write(path: Path, turns: int, workspace: str) -> int:
    """Write the backup and return its number of conversations."""
    text = synthetic.Text()
    vectors = synthetic.WordVectors()
    moment = now()
    schema = {"name": "schema", "embedding_model": vectors.name, "embedding_dimension": vectors.dimension}
    header = Header(
        format=FORMAT,
        schema_version=VERSION,
        created_at=moment,
        graph="made up",
        identity=str(uuid.uuid4()),
        schema=schema,
    )
    sizes = list(lengths(turns))
    with new_backup(path, header) as writer:
        written = Written(writer)
        names = [text.question(2) for _ in range(TOPICS)]
        written.nodes("Topic", [_topic(name, vectors) for name in names])
        for number, size in enumerate(sizes):
            made = synthetic.conversation(size, text, workspace)
            _conversation(written, made, names[number:] + names[:number], vectors)
        written.finish()
    return len(sizes)


def lengths(turns: int) -> Iterator[int]:
    """Yield the lengths of conversations that have so many turns together."""
    size = SHORTEST
    while turns > 0:
        yield min(size, turns)
        turns -= size
        size = SHORTEST + (size * 7 + 13) % (LONGEST - SHORTEST)


def _conversation(
    written: Written, made: ConversationExport, names: Sequence[str], vectors: synthetic.WordVectors
) -> None:
    record = made.conversation
    keys = [keys_of(turn) for turn in made.turns]
    rows = []
    for turn, key in zip(made.turns, keys, strict=True):
        for message in turn.messages:
            row = {**message_properties(message), "counted_chars": message.char_count}
            if message.position == 0:
                row |= _turn_keys(keys, key, vectors)
            rows.append(row)
    summaries = [_summary(record.uuid, number, keys, names) for number in range(len(keys) // SUMMARY_TURNS)]
    own = [record.uuid]
    counted = {
        "total_chars": sum(message.char_count for turn in made.turns for message in turn.messages),
        "keys_version": KEYS_VERSION,
        "indexed_turn": len(keys),
        "watermarks": [len(summaries) * SUMMARY_TURNS],
        "summary_sequence": len(summaries),
        "summary": f"The user asked for {names[0]}.",
        "summary_made_by": EXTRACTIVE,
    }
    written.nodes("Conversation", [{**conversation_properties(record), **counted}])
    written.nodes("Message", rows)
    written.nodes("Summary", [_summary_row(summary, vectors) for summary in summaries])
    sittings = _sittings(record.uuid, keys)
    written.nodes("Sitting", sittings)
    written.edges("HAS_MESSAGE", "Conversation", "Message", [(own, [row["uuid"]], {}) for row in rows])
    written.edges("HAS_SUMMARY", "Conversation", "Summary", [(own, [summary.uuid], {}) for summary in summaries])
    written.edges("HAS_SITTING", "Conversation", "Sitting", [(own, [row["uuid"]], {}) for row in sittings])
    written.edges(
        "HAS_TOPIC",
        "Summary",
        "Topic",
        [
            ([summary.uuid], [topic_uuid(name)], {"topic": topic_uuid(name), "confidence": 0.9, "description": name})
            for summary in summaries
            for name in summary.topics
        ],
    )


def _turn_keys(keys: Sequence[TurnKeys], key: TurnKeys, vectors: synthetic.WordVectors) -> Row:
    place = key.turn_index - 1
    vector = vectors.vector(key.text)
    window = lex_key(
        key.text,
        previous=keys[place - 1].text if place else "",
        following=keys[place + 1].text if place + 1 < len(keys) else "",
        moment=key.timestamp,
        language="",
    )
    return {
        **key_properties(key.text, window, ""),
        "turn_ended": key.ended,
        "sitting": _sitting(key),
        "recall_version": KEYS_VERSION,
        **_embedded(vector, vectors.name),
    }


def _sitting(key: TurnKeys) -> int:
    """Return the sitting of a turn: the days of `synthetic.moment`."""
    return key.turn_index // synthetic.TURNS_PER_SITTING + 1


def _sittings(conversation_id: str, keys: Sequence[TurnKeys]) -> list[Row]:
    found: dict[int, list[TurnKeys]] = {}
    for key in keys:
        found.setdefault(_sitting(key), []).append(key)
    return [
        {
            "uuid": derived("sitting", conversation_id, ordinal),
            "conversation_id": conversation_id,
            "ordinal": ordinal,
            "date": some[0].timestamp,
            "text": sitting_text([key.text for key in some], some[0].timestamp, ""),
        }
        for ordinal, some in found.items()
    ]


def _summary(conversation_id: str, number: int, keys: Sequence[TurnKeys], names: Sequence[str]) -> Summary:
    first = number * SUMMARY_TURNS
    covered = keys[first : first + SUMMARY_TURNS]
    topics = [names[(number * TOPICS_EACH + n) % len(names)] for n in range(TOPICS_EACH)]
    text = " ".join(key.text[:90].lstrip("> ") for key in covered)
    return Summary(
        uuid=derived("summary", conversation_id, 1, first + 1),
        conversation_id=conversation_id,
        level=1,
        ordinal=number + 1,
        title=topics[0],
        conversation_summary=text,
        topics=topics,
        start_turn_index=first + 1,
        end_turn_index=first + len(covered),
        turn_count=len(covered),
        summary_char_count=len(text),
        made_by=EXTRACTIVE,
        created_at=covered[-1].ended,
    )


def _summary_row(summary: Summary, vectors: synthetic.WordVectors) -> Row:
    fields = tuple(name for name in Summary.__struct_fields__ if name != "key_findings")
    vector = vectors.vector(summary.conversation_summary)
    return {
        **properties_of(summary, fields),
        "sequence": summary.ordinal,
        "findings_text": "",
        **_embedded(vector, vectors.name),
    }


def _topic(name: str, vectors: synthetic.WordVectors) -> Row:
    return {
        "uuid": topic_uuid(name),
        "name": name,
        "description": "",
        "aliases": [],
        "created_at": synthetic.BEGAN,
        **_embedded(vectors.vector(name), vectors.name),
    }


def _embedded(vector: synthetic.Vector, model: str) -> Row:
    return {"embedding": vector.tolist(), "embedding_bytes": vector.tobytes(), "embed_model": model}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a backup of a large graph, made up.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--workspace", default="", help="folder the conversations belong to; none unless given")
    arguments = parser.parse_args()
    conversations = write(arguments.file, arguments.turns, arguments.workspace)
    print(f"{conversations} conversations, {arguments.turns} turns: {arguments.file}")
