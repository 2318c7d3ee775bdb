"""Backups that somebody made to do harm: the checksum is right, and each is refused before the graph is touched."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.backup.backup_file import MAGIC, End, FileText, Header, check, new_backup
from ragforge_tui.graph.backup.restore import restore
from ragforge_tui.graph.schema.migrate import VERSION
from ragforge_tui.graph.store.records import conversation_properties, message_properties
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import now
from tests.conftest import ONE_BACKEND
from tests.graph.test_backup import contents_of
from tests.support.records import conversation, message
from tests.support.stored_memory import remembered

ID = str(uuid.UUID(int=1, version=4))
Frames = list[dict[str, Any]]


def good() -> Frames:
    """The parts of a small backup, as plain values: a header, two nodes, a relationship, a text, and the end."""
    talk = conversation_properties(conversation(uuid=ID, next_turn=2, message_count=1))
    said = message_properties(message(ID, uuid=str(uuid.UUID(int=2, version=4)), turn_index=1))
    header = Header(
        format=1, schema_version=VERSION, created_at=now(), graph="x", identity="y", schema={"version": VERSION}
    )
    text = FileText("owner", "content", "0" * 64, "a text")
    parts: Frames = [
        msgspec.to_builtins(header, builtin_types=(type(now()),)),
        {"type": "texts", "conversation": ID, "texts": [list(msgspec.to_builtins(text))]},
        {"type": "nodes", "label": "Message", "rows": [said]},
        {"type": "nodes", "label": "Conversation", "rows": [talk]},
        {
            "type": "edges",
            "kind": "HAS_MESSAGE",
            "source": "Conversation",
            "target": "Message",
            "rows": [[[ID], [said["uuid"]], {}]],
        },
        msgspec.to_builtins(End(nodes={"Message": 1, "Conversation": 1}, edges={"HAS_MESSAGE": 1}, texts=1, lost=0)),
    ]
    return parts


def write(path: Path, frames: list[bytes]) -> Path:
    """Write a backup of these frames with the right checksum."""
    body = MAGIC
    for frame in frames:
        packed = zlib.compress(frame)
        body += struct.pack(">I", len(packed)) + packed
    path.write_bytes(body + hashlib.sha256(body).digest())
    return path


def encoded(parts: Frames) -> list[bytes]:
    return [msgspec.msgpack.encode(part) for part in parts]


def changed(number: int, name: str, value: Any) -> Callable[[Frames], None]:
    """Change a property of a node, or of the header or the end."""

    def change(parts: Frames) -> None:
        part = parts[number]
        (part["rows"][0] if part.get("type") == "nodes" else part)[name] = value

    return change


def without(number: int, name: str) -> Callable[[Frames], None]:
    def change(parts: Frames) -> None:
        del parts[number]["rows"][0][name]

    return change


def twice(number: int) -> Callable[[Frames], None]:
    def change(parts: Frames) -> None:
        parts[number]["rows"] *= 2

    return change


def at_the_same_place(parts: Frames) -> None:
    parts[2]["rows"].append({**parts[2]["rows"][0], "uuid": str(uuid.UUID(int=3, version=4))})


def vectors(size: Any) -> Callable[[Frames], None]:
    return lambda parts: parts[0]["schema"].update(embedding_model="m", embedding_dimension=size)


HOSTILE: dict[str, Callable[[Frames], None]] = {
    "id of a conversation is a path": changed(3, "uuid", "x/../../../../victim/package"),
    "id of a message is a path": changed(2, "uuid", "../x"),
    "texts of a path": changed(1, "conversation", "../../x"),
    "texts of nobody": changed(1, "conversation", str(uuid.UUID(int=9, version=4))),
    "message of no conversation": changed(2, "conversation_id", str(uuid.UUID(int=9, version=4))),
    "turn of 10^9": changed(2, "turn_index", 10**9),
    "turn 0": changed(2, "turn_index", 0),
    "turn of 2^63": changed(2, "turn_index", 2**63),
    "negative position": changed(2, "position", -1),
    "next turn of 10^9": changed(3, "next_turn", 10**9),
    "negative count": changed(3, "message_count", -1),
    "branch of itself": changed(3, "branch_of", ID),
    "turn index as a text": changed(2, "turn_index", "1"),
    "time as a text": changed(2, "timestamp", "yesterday"),
    "no time": without(2, "timestamp"),
    "no updated_at": without(3, "updated_at"),
    "map as a property": changed(3, "title", {"a": 1}),
    "map in a list": changed(3, "extra", [{"a": 1}]),
    "list of lists": changed(3, "extra", [[1]]),
    "list of different kinds": changed(3, "extra", [1, "a"]),
    "number beyond 64 bits": changed(3, "extra", 2**63),
    "reference to nothing": changed(2, "content_file", "zzz"),
    "reference that is a number": changed(2, "content_file", 7),
    "node twice": twice(3),
    "message twice": twice(2),
    "two messages in one place": at_the_same_place,
    "edge without a key": lambda parts: parts[4]["rows"].append([[], [ID], {}]),
    "edge with a map": lambda parts: parts[4]["rows"][0].__setitem__(2, {"a": {}}),
    "more nodes than there are": changed(5, "nodes", {"Message": 38, "Conversation": 6}),
    "fewer relationships": changed(5, "edges", {}),
    "more texts": changed(5, "texts", 2),
    "negative number of lost texts": changed(5, "lost", -1),
    "after the end": lambda parts: parts.append(parts[2]),
    "two ends": lambda parts: parts.append(parts[-1]),
    "no end": lambda parts: parts.pop(),
    "negative schema version": changed(0, "schema_version", -1),
    "negative format": changed(0, "format", -1),
    "newer format": changed(0, "format", 2),
    "dimension of 10^9": vectors(10**9),
    "dimension 0": vectors(0),
    "negative dimension": vectors(-512),
    "dimension as a statement": vectors("512}} CREATE (:Evil) //"),
    "dimension as a fraction": vectors(512.5),
    "dimension as a truth": vectors(True),
    "map in the version node": changed(0, "schema", {"a": {}}),
    "nothing but a header": lambda parts: parts.__delitem__(slice(1, None)),
    "nothing": lambda parts: parts.clear(),
}


def label_of(path: Path, label: str) -> Path:
    parts = good()
    parts[3]["label"] = label
    return write(path, encoded(parts))


def test_the_pattern_itself_is_accepted(tmp_path: Path) -> None:
    header, end = check(write(tmp_path / "good", encoded(good())))
    assert (header.schema_version, end.nodes) == (VERSION, {"Message": 1, "Conversation": 1})


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_in_words(tmp_path: Path, name: str) -> None:
    parts = good()
    HOSTILE[name](parts)
    with pytest.raises(GraphError) as refused:
        check(write(tmp_path / "bad", encoded(parts)))
    assert refused.value.info.kept == "The graph was not changed." and refused.value.info.todo
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("label", ["RagforgeSchema", "Evil", "Conversation) DETACH DELETE n //"])
def test_labels_of_others_are_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(GraphError, match="was changed"):
        check(label_of(tmp_path / "bad", label))


DEEP = b"\x91" * 100_000 + b"\xc0"
MANY = b"\x83\xa4type\xa5nodes\xa5label\xa7Message\xa4rows" + b"\xdd\x03\x00\x00\x00" + b"\x80" * 0x3000000


@pytest.mark.parametrize(
    "frame",
    [DEEP, MANY, bytes(65 * 2**20), b"", b"\xc1", b"\xdb\xff\xff\xff\xff"],
    ids=["deep", "many", "large", "", "c1", "cut"],
)
def test_frames_that_are_made_to_hurt(tmp_path: Path, frame: bytes) -> None:
    frames = encoded(good())
    for place in (0, 2):
        with pytest.raises(GraphError, match=r"was changed|cannot be restored"):
            check(write(tmp_path / "bad", [*frames[:place], frame, *frames[place + 1 :]]))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_a_bomb_takes_little_memory(tmp_path: Path) -> None:
    rows = b"\x83\xa4type\xa5nodes\xa5label\xa7Message\xa4rows\xdd\x03\xb0\x00\x00" + b"\x80" * 0x3B00000
    file = write(tmp_path / "bomb", [encoded(good())[0], rows, rows, bytes(300 * 2**20)])
    assert file.stat().st_size < 2_000_000
    script = (
        "import sys, pathlib\n"
        "from ragforge_tui.graph.backup.backup_file import check\n"
        "from ragforge_tui.shared.errors import GraphError\n"
        "try:\n check(pathlib.Path(sys.argv[1]))\n"
        "except GraphError as error:\n print(error)\n"
        "lines = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True)
    said, used = done.stdout.strip().splitlines()
    assert "cannot be restored" in said
    assert int(used) < 200 * 2**10


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_paths_that_are_not_files_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
    with pytest.raises(GraphError, match="is not a file"):
        check(path)
    header = msgspec.convert(good()[0], Header)
    with pytest.raises(GraphError, match="not a backup"), new_backup(path, header):
        pass


def test_a_part_that_a_killed_backup_left_is_removed(tmp_path: Path) -> None:
    left, busy, other = (tmp_path / name for name in ("a.backup.part", "b.backup.part", "c.part"))
    header = msgspec.convert(good()[0], Header)
    left.write_bytes(MAGIC + b"some")
    other.write_bytes(b"a download")
    with new_backup(tmp_path / "b.backup", header) as running, new_backup(tmp_path / "d.backup", header) as writer:
        assert not left.exists() and other.exists() and busy.exists()
        for each in (running, writer):
            each.finish(End(nodes={}, edges={}, texts=0, lost=0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.backup", "c.part", "d.backup"]


@ONE_BACKEND
async def test_the_graph_is_not_touched(graph: Graph, tmp_path: Path) -> None:
    await remembered(Store(graph))
    before = await contents_of(graph)
    for name in ("turn of 10^9", "reference to nothing", "message twice", "dimension of 10^9"):
        parts = good()
        HOSTILE[name](parts)
        with pytest.raises(GraphError, match="cannot be restored"):
            await restore(graph, write(tmp_path / "bad", encoded(parts)), replace=True, keep=tmp_path / "kept")
    assert await contents_of(graph) == before
    assert await graph.being_restored() == "" and not (tmp_path / "kept").exists()


@ONE_BACKEND
async def test_the_newest_of_what_restores_replaced_is_kept(graph: Graph, tmp_path: Path) -> None:
    kept, file = (
        tmp_path / "kept",
        write(
            tmp_path / "good", encoded([good()[0], {"type": "end", "nodes": {}, "edges": {}, "texts": 0, "lost": 0}])
        ),
    )
    kept.mkdir()
    for number in range(8):
        old = kept / f"before-restore-2026010{number}T000000.backup"
        old.write_bytes(file.read_bytes())
        os.utime(old, (number, number))
    oldest = kept / "before-restore-20260100T000000.backup"
    await Store(graph).conversations.create(conversation())
    done = await restore(graph, oldest, replace=True, keep=kept)
    names = sorted(path.name for path in kept.iterdir())
    assert len(names) == 6 and oldest.name in names and Path(done.kept).name in names
