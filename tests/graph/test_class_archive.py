"""The archive of the server's classes: made when nobody waits, used by the next start, never in the way of one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ragforge_tui.graph import Graph, GraphTarget, server_status, stop_server
from ragforge_tui.graph.embedded import attach
from ragforge_tui.graph.embedded.class_archive import ClassArchive
from ragforge_tui.graph.embedded.files import ServerFiles
from ragforge_tui.settings.schema import Paths
from tests.support.sizes import DIMENSION, HEAP_MB, paths_under

REAL_SUPERVISOR = ["-m", "ragforge_tui.graph.embedded.supervisor"]
DUMPS = """#!/bin/sh
for each in "$@"; do case "$each" in -XX:SharedArchiveFile=*) echo classes > "${each#*=}";; esac; done
"""
FAILS = DUMPS + "exit 1\n"


@pytest.fixture
def files(tmp_path: Path) -> ServerFiles:
    made = ServerFiles(tmp_path / "graph", tmp_path / "logs")
    made.create_folders()
    return made


@pytest.fixture(autouse=True)
def usual_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the priority of the tests."""
    monkeypatch.setattr(os, "nice", lambda increment: increment)


def archive(files: ServerFiles, folder: Path, java: str = DUMPS, heap: str = "-Xmx1m") -> ClassArchive:
    """An archive for a Java that is a script."""
    program = folder / "jre" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(java)
    program.chmod(0o700)
    for name in ("jre/release", "a.jar"):
        if not (folder / name).exists():
            (folder / name).touch()
    return ClassArchive(files, program, folder, [heap])


def names(files: ServerFiles) -> list[str]:
    return sorted(path.suffix for path in files.home.iterdir())


def list_of(made: ClassArchive) -> Path:
    (_, option) = made.server_options()
    return Path(option.removeprefix("-XX:DumpLoadedClassList="))


def test_an_archive_is_made_of_the_listed_classes(files: ServerFiles, tmp_path: Path) -> None:
    made = archive(files, tmp_path)
    made.make()
    assert names(files) == [], "no server has listed its classes yet"
    list_of(made).write_text("java/lang/Object\n")
    made.make()
    assert names(files) == [".jsa"]
    (option,) = made.server_options()
    assert Path(option.removeprefix("-XX:SharedArchiveFile=")).read_text() == "classes\n"
    made.discard()
    assert names(files) == []


def test_a_failure_leaves_no_archive(files: ServerFiles, tmp_path: Path) -> None:
    made = archive(files, tmp_path, FAILS)
    list_of(made).touch()
    made.make()
    assert names(files) == [".list"]


def test_another_installation_has_another_archive(files: ServerFiles, tmp_path: Path) -> None:
    first = archive(files, tmp_path)
    assert list_of(archive(files, tmp_path)) == list_of(first)
    assert list_of(archive(files, tmp_path, heap="-Xmx2m")) != list_of(first)
    list_of(first).touch()
    first.make()
    (tmp_path / "a.jar").write_text("upgraded")
    second = archive(files, tmp_path)
    list_of(second).touch()
    second.make()
    assert names(files) == [".jsa"], "the old one is removed"
    assert second.server_options() != first.server_options()


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """Folders of a server that is started as users start it."""
    monkeypatch.setattr(attach, "SUPERVISOR", REAL_SUPERVISOR)
    yield (paths := paths_under(tmp_path / "home"))
    stop_server(paths)


async def use(paths: Paths) -> str:
    """Open and close the graph, and wait for the end of its supervisor; what the server had mapped."""
    graph = await Graph.open(
        GraphTarget(embedded=True), paths, heap_mb=HEAP_MB, linger_seconds=0, embedding_dimension=DIMENSION
    )
    address = server_status(paths)
    assert address is not None
    mapped = await asyncio.to_thread(Path(f"/proc/{address.pid}/maps").read_text, "utf-8")
    supervisor = psutil.Process(address.supervisor)
    await graph.close()
    supervisor.wait(120)
    return mapped


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads the server's mappings from /proc")
async def test_the_next_server_starts_from_the_archive(paths: Paths) -> None:
    home = ServerFiles.of(paths).home
    assert ".jsa" not in await use(paths)
    (made,) = home.glob("classes-*")
    assert made.suffix == ".jsa"
    assert made.stat().st_mode & 0o077 == 0
    assert str(made) in await use(paths)
    made.write_bytes(made.read_bytes()[:100_000])
    assert await use(paths), "a damaged archive is ignored"
