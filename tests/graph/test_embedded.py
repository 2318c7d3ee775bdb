"""The embedded server's data folder: password, versions, backups, leftovers. Starts no server."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import msgspec
import psutil
import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.graph.embedded import data as embedded
from ragforge_tui.graph.embedded import heap
from ragforge_tui.graph.embedded.attach import ServerHold, server_status, stop_server
from ragforge_tui.graph.embedded.files import ServerFiles
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.files import FileLock
from tests.conftest import open_graph, paths_under


@pytest.fixture
def files(home: Path) -> ServerFiles:
    files = ServerFiles.of(paths_under(home))
    files.create_folders()
    return files


def write_version(files: ServerFiles, version: str) -> None:
    files.version.write_bytes(msgspec.json.encode({"arcadedb": version}))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_password_is_a_file_of_its_owner(files: ServerFiles) -> None:
    embedded.prepare(files, "26.10.2")
    password = files.read_password()
    assert len(password) > 30
    assert mode(files.password) == 0o600
    assert mode(files.home) == 0o700
    embedded.prepare(files, "26.10.2")
    assert files.read_password() == password


def test_a_lost_password_is_made_again_with_the_list_of_users(files: ServerFiles) -> None:
    users = files.root / "config" / "server-users.jsonl"
    users.parent.mkdir(parents=True)
    users.write_text("{}")
    embedded.prepare(files, "26.10.2")
    assert not users.exists()
    assert files.read_password()


def test_data_of_a_newer_server_is_refused_and_untouched(files: ServerFiles) -> None:
    write_version(files, "27.1.1")
    with pytest.raises(GraphUnavailableError) as caught:
        embedded.prepare(files, "26.10.2.post1")
    assert caught.value.info.kind == "graph_newer"
    assert "27.1.1" in caught.value.info.what
    assert msgspec.json.decode(files.version.read_bytes()) == {"arcadedb": "27.1.1"}


async def test_a_chat_is_reported_of_newer_data(home: Path) -> None:
    paths = paths_under(home)
    files = ServerFiles.of(paths)
    files.create_folders()
    write_version(files, "999.1")
    with pytest.raises(GraphUnavailableError) as caught:
        await open_graph(GraphTarget(embedded=True), paths)
    assert caught.value.info.kind == "graph_newer"


def test_data_is_backed_up_before_an_upgrade(files: ServerFiles) -> None:
    data = files.root / "databases" / "ragforge" / "schema.json"
    data.parent.mkdir(parents=True)
    data.write_text("old")
    write_version(files, "26.10.1")
    embedded.prepare(files, "26.10.2")
    (backup,) = files.backups.iterdir()
    assert backup.name.startswith("26.10.1-")
    assert (backup / "databases" / "ragforge" / "schema.json").read_text() == "old"
    embedded.record_version(files, "26.10.2")
    embedded.prepare(files, "26.10.2")
    assert list(files.backups.iterdir()) == [backup]


def test_only_the_newest_backups_are_kept(files: ServerFiles) -> None:
    files.root.mkdir(parents=True)
    for number in range(4):
        write_version(files, f"26.{number}")
        embedded.prepare(files, "26.10.2")
    assert sorted(path.name.partition("-")[0] for path in files.backups.iterdir()) == ["26.2", "26.3"]


def test_leftovers_of_a_crash_are_cleaned(files: ServerFiles) -> None:
    (files.home / "server.json.123.partial").write_text("{")
    (files.backups / "26.1-x.partial").mkdir(parents=True)
    embedded.prepare(files, "26.10.2")
    assert not list(files.home.glob("**/*.partial"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"phase":"ready"}', b"\xff\x00"])
def test_an_address_file_that_cannot_be_read_is_none(files: ServerFiles, content: bytes) -> None:
    files.address.write_bytes(content)
    assert files.read_address() is None


def test_versions_compare_by_number() -> None:
    assert embedded.version_key("26.10.2") < embedded.version_key("26.10.2.post1") < embedded.version_key("26.11.1")
    assert embedded.version_key("unreadable") < embedded.version_key("0.1")
    assert embedded.version_key("26.9") < embedded.version_key("26.10")
    early = ["26.11.1.dev2", "26.11.1.dev10", "26.11.1a1", "26.11.1rc1", "26.11.1"]
    assert sorted(early, key=embedded.version_key) == early


async def test_where_there_is_no_embedded_server_a_uri_is_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "installed_version", lambda: None)
    with pytest.raises(GraphUnavailableError) as caught:
        await open_graph(GraphTarget(embedded=True), paths_under(home))
    assert "NEO4J_URI" in caught.value.info.todo


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, not a folder")
    paths = Paths(config=str(tmp_path), data=str(tmp_path / "data"), state=str(tmp_path / "state"))
    with pytest.raises(GraphUnavailableError):
        await ServerHold(paths, heap_mb=256, linger_seconds=0).ensure_server()


def test_nothing_to_stop(home: Path) -> None:
    assert server_status(paths_under(home)) is None
    assert stop_server(paths_under(home)) is False


def test_locks_count_users(tmp_path: Path) -> None:
    one, two, alone = (FileLock(tmp_path / "lock") for _ in range(3))
    assert one.try_acquire(shared=True)
    assert two.try_acquire(shared=True)
    assert not alone.try_acquire()
    one.release()
    assert not alone.try_acquire()
    two.release()
    assert alone.try_acquire()


def test_a_large_graph_gets_a_larger_heap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ServerFiles(tmp_path, tmp_path / "logs")
    files.root.mkdir(parents=True)
    monkeypatch.setattr(heap, "HEAP_STEP", 1_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=4 * 900 * 2**20))
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(heap, "CONTAINER_LIMITS", [limit])
    heaps = []
    for size in (0, 999, 1_000, 50_000):
        (files.root / "data").write_bytes(b"x" * size)
        heaps.append(heap.heap_for(files, 256))
    assert heaps == [256, 256, 512, 900]
    assert heap.heap_for(files, 2_000) == 2_000, "what the user set is never lowered"
    for text, most in (("max\n", 900), (f"{4 * 700 * 2**20}\n", 700)):
        limit.write_text(text)
        assert heap.heap_for(files, 256) == most
