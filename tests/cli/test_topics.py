"""Topics from the command line: listed, searched, merged and taken apart."""

from __future__ import annotations

import asyncio

from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND, open_graph
from tests.support.stored_memory import remembered


@ONE_BACKEND
def test_topics_are_listed_merged_and_taken_apart(cli: Cli, graph_target: GraphTarget, graph_paths: Paths) -> None:
    async def fill() -> None:
        graph = await open_graph(graph_target, graph_paths)
        try:
            await remembered(Store(graph))
            await remembered(Store(graph), private=True)
        finally:
            await graph.close()

    assert cli.ok("topics", "--json").json == []
    assert "No topics." in cli.ok("topics").out
    asyncio.run(fill())
    found = {topic["name"]: topic for topic in cli.ok("topics", "--json").json}
    assert set(found) == {"Topic 1", "Shared"}
    assert found["Topic 1"]["aliases"] == ["Topic 3"]
    assert found["Shared"]["conversations"] == 1
    assert [topic["name"] for topic in cli.ok("topics", "SHARED", "--json").json] == ["Shared"]
    assert cli.ok("topics", "--workspace", ".", "--json").json == []
    assert "Topic 3" in cli.ok("topics").out

    assert "Merged into" in cli.ok("topics", "--merge", "shared", "topic 3").out
    [merged] = cli.ok("topics", "--json").json
    assert {merged["name"], *merged["aliases"]} == {"Topic 1", "Topic 3", "Shared"}
    [apart] = cli.ok("topics", "--undo", "Topic 3", "--json").json
    assert apart["name"] == "Topic 3"
    assert cli.run("topics", "--undo", "Topic 3").code == 1
    assert cli.run("topics", "--merge", "Topic 3", "nothing").code == 1
    assert cli.run("topics", "--merge", "a", "b", "--undo", "c").code == 2
