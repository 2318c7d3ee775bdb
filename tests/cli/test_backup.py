"""`graph backup`, `restore`, `copy` and `compact` as users run them, on each backend."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.graph.content_files import Text
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.code_records import IndexedFile, Scope
from tests.cli.conftest import Cli
from tests.conftest import open_graph
from tests.support.records import conversation, one_turn


def test_a_backup_is_written_and_restored(cli: Cli, tmp_path: Path) -> None:
    cli.ok("ask", "Where do lanterns hang?")
    (said,) = cli.ok("sessions", "--json").json
    shown = cli.ok("show", said["uuid"]).out
    file = tmp_path / "mine.backup"
    ran = cli.ok("graph", "backup", str(file))
    assert ran.out.startswith("1 conversations (") and str(file) in ran.out
    assert "1 of 1" in ran.err
    info = cli.ok("graph", "backup", str(file), "--json").json
    assert info["nodes"]["Message"] == cli.ok("graph", "status", "--json").json["nodes"]["Message"]
    assert info["size_bytes"] == file.stat().st_size

    ran = cli.run("graph", "restore", str(file))
    assert ran.code == 1 and "is not empty" in ran.err and "--replace" in ran.err
    ran = cli.run("graph", "restore", str(file), "--replace")
    assert ran.code == 1 and "--yes" in ran.err
    cli.ok("ask", "And what burns in them?")
    done = cli.ok("graph", "restore", str(file), "--replace", "--yes", "--json").json
    assert done["backup"]["nodes"] == info["nodes"]
    assert [each["uuid"] for each in cli.ok("sessions", "--json").json] == [said["uuid"]]
    assert cli.ok("show", said["uuid"]).out == shown
    ran = cli.ok("graph", "restore", done["kept"], "--replace", "--yes")
    assert "restored into" in ran.out and "before-restore-" in ran.out
    assert len(cli.ok("sessions", "--json").json) == 2

    file.write_bytes(file.read_bytes()[:-40])
    ran = cli.run("graph", "restore", str(file), "--replace", "--yes")
    assert ran.code == 1 and "cut off or was changed" in ran.err and "The graph was not changed" in ran.err
    assert len(cli.ok("sessions", "--json").json) == 2
    assert cli.run("graph", "backup", str(tmp_path)).code == 1


@pytest.mark.slow
def test_a_graph_is_copied_to_another_one_only(
    cli: Cli, graph_target: GraphTarget, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("ask", "Where do lanterns hang?")
    own = "embedded" if graph_target.embedded else graph_target.uri
    ran = cli.run("graph", "copy", "--to", own)
    assert ran.code == 1 and "would be copied" in ran.err
    if not graph_target.embedded:
        return
    server = request.getfixturevalue("neo4j_server")
    monkeypatch.setenv("NEO4J_USERNAME", server.username)
    monkeypatch.setenv("NEO4J_PASSWORD", server.password)
    ran = cli.ok("graph", "copy", "--to", server.uri, "--replace", "--yes")
    assert f"restored into {server.uri}" in ran.out
    assert cli.ok("--graph", server.uri, "sessions", "--json").json == cli.ok("sessions", "--json").json
    assert "is not empty" in cli.run("graph", "copy", "--to", server.uri).err


@pytest.mark.slow
def test_compacting_drops_what_is_gone_and_keeps_the_rest(
    cli: Cli, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path
) -> None:
    here, gone, away = tmp_path / "here", tmp_path / "gone", Path("/no/such/disk/project")
    here.mkdir()

    async def fill() -> str:
        graph = await open_graph(graph_target, graph_paths, contents="hybrid")
        try:
            store = Store(graph)
            for workspace in map(str, (here, gone, away)):
                scope = Scope(uuid=workspace, name="f", kind="function", file="a.py", start_line=1, end_line=1)
                await store.code.replace_files(
                    workspace, [IndexedFile(path="a.py", digest="d", language="python", scopes=[scope])]
                )
                await store.code.store_totals(await store.code.count(workspace))
            kept = await store.conversations.create(conversation(workspace=str(here)))
            await one_turn(store, kept.uuid, "Where is the quokka?", "It sits in the garden.")
            await graph.contents.append(kept.uuid, [Text("replaced", "content", "an older answer " * 5_000)])
            await one_turn(store, kept.uuid, "And the wombat?", "It digs.")
            removed = await store.conversations.create(conversation(workspace=str(here)))
            for n in range(5):
                await one_turn(store, removed.uuid, f"platypus {n} " * 500)
            await store.purges.purge(removed.uuid)
            return kept.uuid
        finally:
            await graph.close()

    uuid = asyncio.run(fill())
    shown, found = cli.ok("show", uuid).out, cli.ok("search", "quokka garden", "--json").out
    before = cli.ok("graph", "contents", "--json").json
    done = cli.ok("graph", "compact", "--json").json
    assert done["indexes_dropped"] == [str(gone)]
    assert (done["in_use"], done["rebuilt"]) == (False, graph_target.embedded)
    assert done["contents_before"] == before["size_bytes"] > 80_000 > done["contents_after"] > 0
    assert not graph_target.embedded or 0 < done["database_after"] < done["database_before"]
    assert cli.ok("show", uuid).out == shown
    assert cli.ok("search", "quokka garden", "--json").out == found != "[]\n"
    assert cli.ok("graph", "check").out.splitlines() == ["All texts in files are there and unchanged."]
    ran = cli.ok("graph", "compact")
    assert "Code index dropped" not in ran.out and "Texts in files: " in ran.out
    assert ("the Neo4j server looks after its own files" in ran.out) != graph_target.embedded

    async def workspaces() -> list[str]:
        graph = await open_graph(graph_target, graph_paths)
        try:
            return [index.workspace for index in await Store(graph).code.totals()]
        finally:
            await graph.close()

    assert asyncio.run(workspaces()) == sorted([str(here), str(away)])
