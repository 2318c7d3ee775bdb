"""The journal: nothing acknowledged is lost, nothing is written in twice, and it needs no luck with processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Graph, Journal, Store
from ragforge_tui.shared.errors import GraphError, GraphUnavailableError
from ragforge_tui.shared.records import FileAccess, LineChange, Message, ToolResult, now
from tests.support.records import call_of, conversation, message, one_turn

ADDRESS = "a"
CHANGE = LineChange(path="a.py", before="", after="digest", hunks="{}")


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def files_in(folder: Path) -> list[Path]:
    """The records in a folder of journals."""
    return [path for path in folder.rglob("*") if path.suffix in (".jsonl", ".rejected", ".partial")]


class AwayStore:
    """A store whose graph goes away after a number of operations."""

    def __init__(self, store: Store, after: int) -> None:
        self._store = store
        self._left = after
        self.graph = store.graph

    def __getattr__(self, name: str) -> Any:
        return AwayRepository(self, getattr(self._store, name))

    def count(self) -> None:
        """Take one operation from those that are left."""
        if self._left == 0:
            raise GraphUnavailableError("away")
        self._left -= 1


class AwayRepository:
    """A repository of a store whose graph goes away."""

    def __init__(self, store: AwayStore, repository: Any) -> None:
        self._store = store
        self._repository = repository

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._store.count()
            return await getattr(self._repository, name)(*args, **kwargs)

        return call


def a_turn_in(journal: Journal, conversation_id: str, guessed: int) -> None:
    """Journal a turn as the engine does while the graph is away: the index is a guess."""
    asked = message(conversation_id, content="q \ud83d", turn_index=guessed)
    journal.append("begin_turn", asked)
    answer = message(conversation_id, role="assistant", turn_index=guessed, state="streaming")
    journal.append("add_message", answer, turn_id=asked.uuid)
    call = call_of(answer.uuid)
    journal.append("start_tool_call", call, conversation_id=conversation_id)
    call.result = ToolResult(uuid=call.uuid + "r", tool_call_id=call.uuid, success=True, result="{}", timestamp=now())
    call.files = [FileAccess(path="a.py", access="write")]
    call.changes = [CHANGE]
    journal.append("finish_tool_call", call, workspace="/w")
    journal.append("finish_message", msgspec.structs.replace(answer, content="a", state="complete"), turn_id=asked.uuid)


async def test_a_turn_is_written_in_once(store: Store, tmp_path: Path) -> None:
    c = conversation()
    journal = Journal(tmp_path / "journal", ADDRESS)
    assert journal.pending() == 0
    journal.append("create_conversation", c)
    a_turn_in(journal, c.uuid, 1)
    journal.append("update_conversation", uuid=c.uuid, status="deleted", deleted_at=now())
    journal.append("update_conversation", uuid=c.uuid, status="active", deleted_at=None, title="T")
    assert journal.pending() == 8
    assert await journal.drain(store) == 8
    assert await journal.drain(store) == journal.pending() == 0
    assert files_in(tmp_path / "journal") == []
    [turn] = await store.turns.between(c.uuid, start=1, end=9, changes=True)
    assert [(m.content, m.state) for m in turn.messages] == [("q �", "complete"), ("a", "complete")]
    assert turn.messages[1].tool_calls[0].files == [FileAccess(path="a.py", access="write")]
    assert turn.messages[1].tool_calls[0].changes == [CHANGE]
    assert (await store.conversations.get(c.uuid)).title == "T"


async def test_guessed_turn_indexes_move_to_where_there_is_room(store: Store, tmp_path: Path) -> None:
    c = await store.conversations.create(conversation())
    journal = Journal(tmp_path, ADDRESS)
    a_turn_in(journal, c.uuid, 1)
    a_turn_in(journal, c.uuid, 2)
    await one_turn(store, c.uuid, "somebody else was first")
    await journal.drain(store)
    turns = await store.turns.between(c.uuid, start=1, end=9)
    assert [(t.turn_index, [m.position for m in t.messages]) for t in turns] == [(1, [0, 1]), (2, [0, 1]), (3, [0, 1])]


async def test_cut_short_anywhere_it_still_stores_once(store: Store, tmp_path: Path) -> None:
    c = await store.conversations.create(conversation())
    journal = Journal(tmp_path, ADDRESS)
    a_turn_in(journal, c.uuid, 5)
    for after in range(5):
        with pytest.raises(GraphUnavailableError):
            await journal.drain(AwayStore(store, after))  # type: ignore[arg-type]
        assert journal.pending() == 5
    assert await journal.drain(store) == 5
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.next_turn) == (2, 2)


async def test_a_torn_last_line_is_left_out_and_a_refused_record_kept_aside(store: Store, tmp_path: Path) -> None:
    c = await store.conversations.create(conversation())
    journal = Journal(tmp_path, ADDRESS)
    journal.append("begin_turn", message(c.uuid, content="whole"))
    journal.append("begin_turn", message("no such conversation", content="lost home"))
    journal.append("begin_turn", message(c.uuid, content="whole too"))
    journal.close()
    [path] = files_in(tmp_path)
    with path.open("ab") as file:
        file.write(b'{"op":"begin_turn","rec')
    assert await journal.drain(store) == 2
    turns = await store.turns.between(c.uuid, start=1, end=9)
    assert [t.messages[0].content for t in turns] == ["whole", "whole too"]
    [rejected] = files_in(tmp_path)
    assert b"lost home" in rejected.read_bytes()


async def test_two_drain_side_by_side(store: Store, tmp_path: Path) -> None:
    c = await store.conversations.create(conversation())
    for n in range(4):
        one = Journal(tmp_path, ADDRESS)
        a_turn_in(one, c.uuid, n + 1)
        one.close()
    written = await asyncio.gather(Journal(tmp_path, ADDRESS).drain(store), Journal(tmp_path, ADDRESS).drain(store))
    assert sum(written) == 20
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.next_turn) == (8, 5)


_OTHER = """
import sys, time
from pathlib import Path
from ragforge_tui.graph import Journal
from tests.support.records import message
journal = Journal(Path(sys.argv[1]), "a")
journal.append("begin_turn", message(sys.argv[2], content="from another process"))
print("ready", flush=True)
time.sleep(600)
"""


async def test_the_file_of_a_living_process_is_its_own_and_of_a_dead_one_is_taken_over(
    store: Store, tmp_path: Path
) -> None:
    c = await store.conversations.create(conversation())
    command = [sys.executable, "-c", _OTHER, str(tmp_path), c.uuid]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:  # noqa: ASYNC220 - a test may wait
        assert other.stdout and other.stdout.readline() == b"ready\n"
        journal = Journal(tmp_path, ADDRESS)
        assert await journal.drain(store) == 0
        assert journal.pending() == 1
        other.kill()
        other.wait()
    assert await journal.drain(store) == 1
    assert (await store.turns.between(c.uuid, start=1, end=2))[0].messages[0].content == "from another process"


def test_records_that_cannot_be_journaled_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(GraphError, match="journal"):
        Journal(blocker, ADDRESS).append("create_conversation", conversation())
    with pytest.raises(ValueError, match="purge"):
        Journal(tmp_path, ADDRESS).append("purge", uuid="x")

    journal = Journal(tmp_path / "j", ADDRESS)
    journal.append("create_conversation", conversation())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(GraphError, match=r"journal cannot be written.*disk is full"):
        journal.append("create_conversation", conversation())
    monkeypatch.undo()
    assert journal.pending() == 1, "half a record must not stand before the next"
    journal.append("create_conversation", conversation())
    assert journal.pending() == 2


def test_journaled_records_of_a_purged_conversation_are_dropped(tmp_path: Path) -> None:
    one, two = conversation(), conversation()
    journal = Journal(tmp_path, ADDRESS)
    for each in (one, two):
        journal.append("create_conversation", each)
        a_turn_in(journal, each.uuid, 1)
        journal.append("update_conversation", uuid=each.uuid, title="secret")
    assert journal.forget(one.uuid) == 0, "still being written"
    journal.close()
    (file,) = files_in(tmp_path)
    file.with_suffix(".rejected").write_bytes(file.read_bytes() + b"torn")
    assert journal.forget(one.uuid) == 2 * 7
    kept = b"".join(path.read_bytes() for path in files_in(tmp_path))
    assert one.uuid.encode() not in kept
    assert kept.count(b"\n") == 2 * 7
    assert journal.forget(two.uuid) == 2 * 7
    assert files_in(tmp_path) == []


async def test_nobody_takes_the_file_of_a_process_that_drains_an_older_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, mine, other = (Journal(tmp_path, ADDRESS) for _ in range(3))
    older, newer = conversation(), conversation()
    for journal, each in ((dead, older), (mine, newer)):
        journal.append("create_conversation", each)
        a_turn_in(journal, each.uuid, 1)
    dead.close()
    begin, taken = store.messages.begin_turn, []

    async def meanwhile(record: Message) -> Message:
        if record.conversation_id == older.uuid:
            taken.append(await other.drain(store))
        return await begin(record)

    monkeypatch.setattr(store.messages, "begin_turn", meanwhile)
    assert await mine.drain(store) == 2 * 6
    assert taken == [0], "later records of the process that appended it could overtake those in the file"
    assert files_in(tmp_path) == []
