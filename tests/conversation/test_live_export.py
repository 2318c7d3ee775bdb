"""Exports in real time: the bytes of `export`, cheaply, whole at any moment, and quiet about trouble but once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.live_export.writer import ExportWriter
from ragforge_tui.export import file_name, from_json, to_json, to_markdown
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import ExportSettings, Paths
from ragforge_tui.shared.errors import GraphUnavailableError, NotFoundError
from ragforge_tui.shared.events import Event, Notice
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport, Spoken, StoredContext
from ragforge_tui.shared.records import Conversation, Turn, now
from tests.support.records import conversation, message
from tests.support.stored_memory import remembered, summary, talk

MOMENT = datetime(2026, 3, 4, tzinfo=UTC)


class FakeStore:
    """A conversation in memory, read as the store is; it counts what is read."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.all: list[Turn] = []
        self.memory = MemoryExport()
        self.read = 0
        self.error: Exception | None = None
        self.conversations = SimpleNamespace(get=self.get_conversation)
        self.turns = SimpleNamespace(between=self.read_turns)
        self.memory_exporter = SimpleNamespace(
            stamp=self.memory_stamp, memory=self.export_memory, contexts=self.stored_contexts, spoken=self.spoken
        )

    def add(self, text: str, *, state: str = "complete") -> Turn:
        """A turn of two messages."""
        index = len(self.all) + 1
        fields: dict[str, Any] = {"turn_index": index, "timestamp": now()}
        asked = message(self.conversation.uuid, content=text, **fields)
        answer = message(
            self.conversation.uuid, role="assistant", position=1, content=f"so: {text}", state=state, **fields
        )
        self.all.append(Turn(turn_index=index, messages=[asked, answer]))
        self.conversation.next_turn = index + 1
        return self.all[-1]

    async def get_conversation(self, uuid: str) -> Conversation:
        if self.error is not None:
            raise self.error
        return self.conversation

    async def memory_stamp(self, uuid: str) -> str:
        return str(len(self.memory.summaries))

    async def export_memory(self, uuid: str) -> MemoryExport:
        return self.memory

    async def read_turns(self, uuid: str, *, start: int, end: int, changes: bool) -> list[Turn]:
        self.read += end - start
        return self.all[start - 1 : end - 1]

    async def stored_contexts(self, uuid: str, *, start: int, end: int) -> list[StoredContext]:
        return [
            StoredContext(uuid=f"x{n}", turn_index=n, messages=[f"m{n}"], items="{}", created_at=MOMENT)
            for n in range(start, end)
            if n % 2
        ]

    async def spoken(self, uuid: str, *, start: int, end: int) -> list[Spoken]:
        return [Spoken(turn_index=n, message=f"m{n}", persona="p") for n in range(start, end)]

    async def export(self) -> ConversationExport:
        end = self.conversation.next_turn
        return ConversationExport(
            conversation=self.conversation,
            turns=self.all,
            contexts=await self.stored_contexts("", start=1, end=end),
            spoken=await self.spoken("", start=1, end=end),
            memory=self.memory,
        )


def names(folder: Path) -> list[str]:
    """Names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


class Scene:
    """A writer over a fake store."""

    def __init__(self, folder: Path, store: Any, **settings: Any) -> None:
        self.store = store
        self.events: list[Event] = []
        self.folder = folder

        async def give() -> Store:
            return store  # type: ignore[no-any-return]

        given: dict[str, Any] = {"enabled": True, "path": str(folder), "format": "both", **settings}
        paths = Paths(config=str(folder), data=str(folder), state=str(folder))
        self.writer = ExportWriter(ExportSettings(**given), paths, give, self.events.append)

    async def stored(self, uuid: str) -> None:
        """A turn was stored, and its files are written."""
        self.writer.turn_stored(uuid)
        await self.writer.flush()

    def json(self, uuid: str) -> bytes:
        return (self.folder / file_name(uuid, "json")).read_bytes()

    def markdown(self, uuid: str) -> str:
        return (self.folder / file_name(uuid, "markdown")).read_text()

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def fake() -> FakeStore:
    return FakeStore(conversation(title="T"))


async def same(scene: Scene, fake: FakeStore) -> None:
    """The files are what an export would be."""
    export = await fake.export()
    uuid = fake.conversation.uuid
    assert scene.json(uuid) == to_json(export)
    assert scene.markdown(uuid) == to_markdown(export)


async def test_files_are_the_export_after_every_turn(tmp_path: Path, fake: FakeStore) -> None:
    scene = Scene(tmp_path / "exports", fake)
    uuid = fake.conversation.uuid
    await scene.stored(uuid)
    await same(scene, fake)
    for n in range(8):
        fake.add(f"q{n} {'é' * n}")
        if n == 5:
            fake.memory.summaries = [summary(uuid, 1, 1, 2)]
        await scene.stored(uuid)
        await same(scene, fake)
    fake.conversation.title = "Another"
    fake.all[-1].messages[1].content = "Retried."
    await scene.stored(uuid)
    await same(scene, fake)
    assert from_json(scene.json(uuid)).conversation.title == "Another"
    assert names(scene.folder) == [f"conv-{uuid}.json", f"conv-{uuid}.md"]
    await scene.writer.close()


async def test_a_turn_costs_the_same_late_as_early(tmp_path: Path, fake: FakeStore) -> None:
    scene = Scene(tmp_path, fake)
    for n in range(200):
        fake.add(f"q{n}")
        await scene.stored(fake.conversation.uuid)
    assert fake.read < 200 * 4
    await same(scene, fake)


async def test_a_streaming_turn_is_not_final(tmp_path: Path, fake: FakeStore) -> None:
    scene = Scene(tmp_path, fake)
    first = fake.add("slow", state="streaming")
    for n in range(4):
        fake.add(f"q{n}")
    await scene.stored(fake.conversation.uuid)
    first.messages[1] = msgspec.structs.replace(first.messages[1], state="complete", content="at last")
    await scene.stored(fake.conversation.uuid)
    await same(scene, fake)


async def test_a_file_somebody_changed_is_made_whole(tmp_path: Path, fake: FakeStore) -> None:
    scene = Scene(tmp_path, fake)
    for n in range(5):
        fake.add(f"q{n}")
    await scene.stored(fake.conversation.uuid)
    for harm in (lambda path: path.unlink(), lambda path: path.write_text("{}")):
        harm(tmp_path / file_name(fake.conversation.uuid, "json"))
        fake.add("more")
        await scene.stored(fake.conversation.uuid)
        await same(scene, fake)


async def test_messages_of_a_turn_are_written_together(
    tmp_path: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONVERSATION, "export_running", 600.0)
    scene = Scene(tmp_path, fake)
    fake.add("q")
    await scene.stored(fake.conversation.uuid)
    read = fake.read
    for _ in range(50):
        scene.writer.message_stored(fake.conversation.uuid)
        await asyncio.sleep(0)
    assert fake.read == read
    await scene.stored(fake.conversation.uuid)
    assert fake.read == read + 1
    scene.writer.message_stored(fake.conversation.uuid)
    await scene.writer.close()
    await same(scene, fake)


async def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path: Path, fake: FakeStore) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    scene = Scene(blocked, fake)
    for n in range(3):
        fake.add(f"q{n}")
        await scene.stored(fake.conversation.uuid)
    assert len(scene.notices) == 1
    assert "could not be exported" in scene.notices[0]
    blocked.unlink()
    await scene.stored(fake.conversation.uuid)
    await same(scene, fake)


async def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, fake)
    fake.add("q")
    await scene.stored(fake.conversation.uuid)
    before = scene.json(fake.conversation.uuid)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragforge_tui.conversation.live_export.growing_file.os.write", full)
        fake.add("r")
        await scene.stored(fake.conversation.uuid)
    assert scene.json(fake.conversation.uuid) == before
    assert len(scene.notices) == 1 and "disk is full" in scene.notices[0]
    assert len(names(tmp_path)) == 2
    await scene.stored(fake.conversation.uuid)
    await same(scene, fake)


@pytest.mark.parametrize("error", [NotFoundError("gone"), GraphUnavailableError("away"), RuntimeError("bug")])
async def test_trouble_with_the_graph_is_no_trouble_of_the_turn(
    tmp_path: Path, fake: FakeStore, error: Exception
) -> None:
    scene = Scene(tmp_path, fake)
    fake.add("q")
    fake.error = error
    await scene.stored(fake.conversation.uuid)
    assert names(tmp_path) == [] and scene.notices == []
    fake.error = None
    await scene.stored(fake.conversation.uuid)
    await same(scene, fake)


async def test_removed_and_switched_off(tmp_path: Path, fake: FakeStore) -> None:
    scene = Scene(tmp_path, fake, format="json")
    fake.add("q")
    await scene.stored(fake.conversation.uuid)
    assert names(tmp_path) == [file_name(fake.conversation.uuid, "json")]
    (tmp_path / f".{file_name(fake.conversation.uuid, 'json')}.left.partial").touch()
    off = Scene(tmp_path, fake, enabled=False)
    await off.writer.removed(fake.conversation.uuid, "/w")
    assert names(tmp_path) == []
    await off.stored(fake.conversation.uuid)
    assert names(tmp_path) == []


def test_where_files_go() -> None:
    async def never() -> Store:
        raise AssertionError

    paths = Paths(config="/c", data="/data", state="/s")

    def make(path: str) -> Path:
        return ExportWriter(ExportSettings(path=path), paths, never, print, workspace="/work space").folder

    assert make("") == Path("/data/exports")
    assert make("out") == Path("/work space/out")
    assert make("/abs") == Path("/abs")


async def test_with_the_real_store(graph: Graph, tmp_path: Path) -> None:
    store = Store(graph)
    uuid = await remembered(store)
    scene = Scene(tmp_path, store)
    for n in range(4):
        await scene.stored(uuid)
        export = await store.transfer.export(uuid)
        assert scene.json(uuid) == to_json(export)
        assert scene.markdown(uuid) == to_markdown(export)
        await talk(store, uuid, f"more {n}", (f"new{n}.py", "write"))
        if n == 2:
            assert await store.summaries.store(summary(uuid, 1, 5, 6)) is not None
    await scene.writer.close()


async def test_an_id_that_is_a_path_writes_and_deletes_nothing_outside_the_folder(tmp_path: Path) -> None:
    victim = tmp_path / "victim.json"
    victim.write_text("mine")
    folder = tmp_path / "exports"
    (folder / "conv-x").mkdir(parents=True)
    fake = FakeStore(conversation(uuid="x/../../victim"))
    fake.add("q")
    scene = Scene(folder, fake)
    await scene.stored(fake.conversation.uuid)
    await scene.writer.removed(fake.conversation.uuid, "/w")
    assert victim.read_text() == "mine"
    assert names(tmp_path) == ["exports", "victim.json"]
    assert scene.notices == []
