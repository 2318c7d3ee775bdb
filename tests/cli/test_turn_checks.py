"""`graph check`: answers under the wrong question are listed, and moved on request."""

from __future__ import annotations

import asyncio

from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import open_graph
from tests.graph.test_turn_checks import Talk
from tests.support.records import conversation


def test_an_answer_under_another_question_is_listed_and_moved(
    cli: Cli, graph_target: GraphTarget, graph_paths: Paths
) -> None:
    async def write() -> None:
        graph = await open_graph(graph_target, graph_paths)
        store = Store(graph)
        talk = Talk(store, (await store.conversations.create(conversation())).uuid)
        first = await talk.ask("one", "first question")
        await talk.reply("one", "first answer", first)
        await talk.ask("two", "second question")
        await talk.reply("two", "second answer", first)
        await graph.close()

    asyncio.run(write())
    ran = cli.run("graph", "check")
    assert ran.code == 1
    assert "several answers" in ran.out
    assert "--mend" in ran.out
    assert cli.run("graph", "check", "--json").json["answers_moved"] == 0
    mended = cli.ok("graph", "check", "--mend")
    assert "1 answer was moved to its question." in mended.out
    assert "Every turn has one answer" in mended.out
    assert cli.ok("graph", "check", "--json").json["turns"] == []
