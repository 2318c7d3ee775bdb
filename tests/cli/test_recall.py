"""Finding from the command line: by topic, by likeness, and with the vectors of another model."""

from __future__ import annotations

import asyncio
import json

import pytest

from ragforge_tui.cli import output
from ragforge_tui.cli.sessions import highlighted
from ragforge_tui.shared.records import SearchHit, now
from tests.cli.conftest import Cli
from tests.support.fake_embedder import FakeEmbedder


def ask(cli: Cli, *arguments: str) -> str:
    return str(cli.ok("ask", "--json", *arguments).events[-1]["conversation_id"])


def test_reembed_and_similar(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragforge_tui.llm.embeddings.make_embedder", lambda *settings: None)
    refused = cli.run("graph", "reembed")
    assert refused.code == 1
    assert "No embedding model" in refused.err
    one, other = (ask(cli, f"Where does the zebra farm number {n} keep its fences?") for n in (1, 2))
    cli.ok("ask", "--json", "How does a compiler warn?")
    broken = FakeEmbedder()
    broken.broken = True
    monkeypatch.setattr("ragforge_tui.llm.embeddings.make_embedder", lambda *settings: broken)
    assert "away" in cli.run("graph", "reembed").err
    embedder = FakeEmbedder("other")
    monkeypatch.setattr("ragforge_tui.llm.embeddings.make_embedder", lambda *settings: embedder)
    ran = cli.ok("graph", "reembed")
    assert "vectors created with other" in ran.out
    assert embedder.texts[1:]
    assert " of " in ran.err
    assert cli.ok("graph", "reembed").out == "0 vectors created with other.\n"
    rows = cli.ok("graph", "query", "--json", "MATCH (v:RagforgeSchema) RETURN v.embedding_model AS model").json
    assert rows == [{"model": "other"}]
    # Without summaries, by their turns.
    assert other in {found["conversation"]["uuid"] for found in cli.ok("similar", one, "--json").json}
    assert "No similar conversations" in cli.ok("similar", one, "--min-score", "1").out
    asyncio.run(summarised(cli, one, other))
    cli.ok("graph", "reembed")
    [found, *_] = cli.ok("similar", one[:8], "--json").json
    assert found["conversation"]["uuid"] == other
    assert found["score"] > 0.9
    assert other[:8] in cli.ok("similar", one).out
    assert len(cli.ok("similar", one, "--limit", "1", "--json").json) == 1
    assert cli.run("similar", "nothing").code == 1


async def summarised(cli: Cli, *uuids: str) -> None:
    """Give conversations their summaries, as the summariser does."""
    from ragforge_tui.graph import Graph, Store, resolve_target
    from ragforge_tui.settings.load import load
    from tests.support.sizes import DIMENSION

    loaded = load(workspace=cli.workspace)
    target = resolve_target(loaded.settings.graph, loaded.origins)
    graph = await Graph.open(target, loaded.paths, embedding_dimension=DIMENSION)
    try:
        for uuid in uuids:
            await Store(graph).conversations.update(uuid, summary="They asked where the zebra farm keeps its fences.")
    finally:
        await graph.close()


def test_search_by_an_unknown_topic(cli: Cli) -> None:
    ask(cli, "Where do lanterns hang?")
    assert [hit["turn_index"] for hit in cli.ok("search", "lantern", "--json").json] == [1]
    ran = cli.run("search", "lantern", "--topic", "no such topic")
    assert ran.code == 1
    assert "topic" in ran.err


def test_matches_are_bold_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = SearchHit(
        conversation_id="c",
        title="t",
        turn_index=1,
        message_uuid="m",
        role="user",
        snippet="a dog\nand dogs \x1b[31m",
        highlights=[(2, 5), (10, 14)],
        timestamp=now(),
        score=1.0,
    )
    assert highlighted(hit) == "a dog and dogs"
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert highlighted(hit) == "a \x1b[1mdog\x1b[22m and \x1b[1mdogs\x1b[22m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert highlighted(hit) == "a dog and dogs"
    assert json.dumps(highlighted(hit))
