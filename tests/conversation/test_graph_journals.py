"""What was said to one graph while it was away is never written into another one, in whole chats."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import Graph, GraphTarget, JournalFolders
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Notice
from ragforge_tui.shared.records import ConversationFilter
from tests.conftest import empty, open_graph
from tests.support.agents import loaded_for, settings_for
from tests.support.model_script import Script
from tests.support.records import rows_of
from tests.support.sizes import paths_under
from tests.support.unreachable_graph import Away

_MINE = "MATCH (m:Message) WHERE m.content CONTAINS 'said to A' RETURN m.uuid"


@pytest.fixture
async def away(loaded: Loaded, tmp_path: Path) -> AsyncIterator[Away]:
    """Graph A: the one of the test, away until it is opened."""
    made = Away(loaded, tmp_path)
    yield made
    await made.shut()


@pytest.fixture
async def other(
    loaded: Loaded, graph_target: GraphTarget, request: pytest.FixtureRequest, home: Path, tmp_path: Path
) -> AsyncIterator[tuple[Loaded, Graph]]:
    """Graph B on the other backend, with the same state folder."""
    if graph_target.embedded:
        server = request.getfixturevalue("neo4j_server")
        target = GraphTarget(uri=server.uri, username=server.username, password=server.password, adopt=True)
        paths = paths_under(home)
    else:
        target, paths = GraphTarget(embedded=True), request.getfixturevalue("embedded_paths")
    opened = await open_graph(target, paths)
    await empty(opened)
    settings = settings_for(target, api_base=loaded.settings.model.api_base)
    paths = msgspec.structs.replace(paths, state=loaded.paths.state)
    yield loaded_for(settings, paths, tmp_path / "workspace"), opened
    await opened.close()


async def say(loaded: Loaded, text: str, *, ref: str = "") -> tuple[str, list[str]]:
    """Say something in a chat of its own; the conversation's id, and the notices."""
    async with ConversationAgent(loaded) as agent:
        with agent.subscribe() as events:
            found = await agent.load_conversation(ref) if ref else await agent.create_conversation()
            await found.send_message(text)
            notices = []
            while not events.empty():
                if isinstance(event := events.get_nowait(), Notice):
                    notices.append(event.text)
    return found.record.uuid, notices


@pytest.mark.neo4j
async def test_records_for_a_stopped_graph_reach_it_once_and_no_other(
    away: Away, other: tuple[Loaded, Graph], graph: Graph, server: Script
) -> None:
    server.script([{"text": f"answer {n}"} for n in range(4)])
    loaded_b, graph_b = other
    said, _ = await say(away.gone, "said to A, never reached")
    await say(loaded_b, "said to B")
    assert await rows_of(graph_b, _MINE) == 0
    (info,) = JournalFolders(Path(loaded_b.paths.state, "journal")).waiting()
    assert (info.identity, info.refused) == ("", 0)
    await away.open()
    async with ConversationAgent(away.back) as back:
        turns = await (await back.load_conversation(said)).get_history()
        assert [m.content for m in turns[0].messages] == ["said to A, never reached", "answer 0"]
    await away.shut()

    again, _ = await say(away.gone, "said to A, known by now")
    (info,) = JournalFolders(Path(loaded_b.paths.state, "journal")).waiting()
    assert info.identity == graph.identity
    await say(loaded_b, "said to B again")
    assert await rows_of(graph_b, _MINE) == 0
    await away.open()
    for _ in range(2):
        async with ConversationAgent(away.back) as back:
            assert len(await (await back.load_conversation(again)).get_history()) == 1
    assert await rows_of(graph, _MINE) == 2
    assert await rows_of(graph_b, _MINE) == 0
    assert JournalFolders(Path(loaded_b.paths.state, "journal")).waiting() == []


async def become_another(graph: Graph, identity: str) -> None:
    """Put another graph where this one was: empty, with an identity of its own."""
    await empty(graph)

    async def work(tx) -> None:  # type: ignore[no-untyped-def]
        await tx.run("MATCH (v:RagforgeSchema {name: 'schema'}) SET v.identity = $identity", identity=identity)

    await graph.write(work)


async def test_a_replaced_graph_is_reported_and_gets_nothing_of_its_predecessor(
    away: Away, graph: Graph, server: Script
) -> None:
    server.script([{"text": f"answer {n}"} for n in range(3)])
    await away.open()
    await say(away.back, "there")
    await away.shut()
    await say(away.gone, "said to A, then replaced")
    await become_another(graph, uuid.uuid4().hex)
    await away.open()
    _, notices = await say(away.back, "said to the new one")
    assert await rows_of(graph, _MINE) == 0
    (text,) = [text for text in notices if "journal" in text]
    assert "was replaced by another graph" in text
    assert "ragforge-chat graph journal" in text


async def test_a_graph_replaced_under_a_running_chat_gets_nothing_of_it(
    loaded: Loaded, graph: Graph, server: Script
) -> None:
    server.script([{"text": f"answer {n}"} for n in range(3)])
    first = graph.identity
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("one")
        await become_another(graph, uuid.uuid4().hex)
        assert (await conversation.send_message("said to A, which is gone")).content == "answer 1"
        async with asyncio.timeout(60):
            while (error := agent.graph_state.error) is None or error.kind != "graph_replaced":
                await asyncio.sleep(0.05)
        assert "Restart the chat" in error.todo
    assert await rows_of(graph, _MINE) == 0
    (info,) = JournalFolders(Path(loaded.paths.state, "journal")).waiting()
    assert info.identity == first
    async with ConversationAgent(loaded) as agent:
        assert await (await agent.store()).conversations.matching(ConversationFilter()) == []
