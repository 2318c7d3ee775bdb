"""Sessions of other agents in the graph, on both backends: a turn is stored once, and completed when it has grown."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.records import Usage

pytestmark = pytest.mark.asyncio


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def session(name: str, *turns: str, result: str = "", prefix: str = "u") -> ConversationExport:
    """A session whose turns have the ids of their words, as copies of them have."""
    transcript = Transcript(folder="/work")
    for words in turns:
        transcript.user(words, id=f"{prefix}-{words}")
        transcript.reply(f"On {words}.", model="m", usage=Usage(input_tokens=10, output_tokens=len(words)))
    if result:
        transcript.call("c", "bash", {"command": "make"})
        transcript.result("c", result, details={"exit": 3})
    export = transcript.export(FoundSession(agent="codex", id=name, path="/x"))
    assert export is not None
    return export


async def brought(store: Store, export: ConversationExport, version: str = "1") -> Imported:
    return await store.transfer.import_session(export, version)


async def said(store: Store, uuid: str) -> list[str]:
    conversation = await store.conversations.get(uuid)
    turns = await store.turns.between(uuid, start=1, end=conversation.next_turn)
    assert conversation.message_count == sum(len(turn.messages) for turn in turns)
    return [turn.messages[0].content for turn in turns]


async def test_a_fork_holds_its_own_turns_and_leads_to_its_parent(store: Store) -> None:
    parent = (await brought(store, session("p", "one", "two"))).conversation
    fork = await brought(store, session("f", "one", "two", "fork"))
    assert (fork.created, fork.conversation.branch_of, fork.conversation.title) == (True, parent.uuid, "fork")
    assert await said(store, fork.conversation.uuid) == ["fork"]
    assert not (await brought(store, session("f", "one", "two", "fork"), "2")).adds
    again = await brought(store, session("f", "one", "two", "fork", "more"), "3")
    assert (again.created, again.adds.turns, again.conversation.title) == (False, [2], "fork")
    assert await said(store, fork.conversation.uuid) == ["fork", "more"]
    assert await said(store, parent.uuid) == ["one", "two"]


async def test_a_copy_without_own_turns_is_here_already(store: Store) -> None:
    parent = (await brought(store, session("p", "one"))).conversation
    copy = session("c", "one")
    assert (await brought(store, copy, "7")).conversation.uuid == parent.uuid
    assert (await store.transfer.imported_versions())[copy.conversation.uuid] == "7"


async def test_a_turn_that_went_on_otherwise_in_a_copy_is_kept(store: Store) -> None:
    await brought(store, session("p", "one", "two"))
    other = session("f", "one", "two", result="no worker")
    fork = await brought(store, other)
    assert await said(store, fork.conversation.uuid) == ["two"]
    assert not (await brought(store, session("f", "one", "two", result="no worker"), "2")).adds


async def test_a_turn_that_has_grown_is_completed_and_read_again(store: Store, graph: Graph) -> None:
    uuid = (await brought(store, session("p", "one", "two"))).conversation.uuid
    await store.findings.set_read_until(uuid, 2)
    grown = session("p", "one", "two", result="no worker")
    grown.turns[1].messages[1].content = "A longer answer"
    assert (await brought(store, grown, "2")).adds.grown == [2]
    [turn] = await store.turns.between(uuid, start=2, end=3)
    [call] = turn.messages[1].tool_calls
    assert (turn.messages[1].content, call.success) == ("A longer answer", False)
    assert call.result is not None and call.result.error == "exit status 3"
    assert await store.findings.read_until(uuid) == 1 and await store.findings.unread(5) == [uuid]
    assert not (await brought(store, grown, "3")).adds


async def test_turns_of_ones_own_keep_their_place(store: Store) -> None:
    """A session that was continued here and there gets its new turns after one's own; parts may come by themselves."""
    uuid = (await brought(store, session("p", "one"))).conversation.uuid
    own = session("own", "mine").turns[0].messages[0]
    own.conversation_id = uuid
    await store.messages.begin_turn(own)
    assert (await brought(store, session("p", "two"), "2")).adds.turns == [3]
    assert await said(store, uuid) == ["one", "mine", "two"]


async def test_title_follows_the_agents_until_the_user_gives_one(store: Store) -> None:
    export = session("p", "one")
    uuid = (await brought(store, export)).conversation.uuid
    for title, expected in (("Better", "Better"), ("Best", "Best")):
        export.conversation.title = title
        await brought(store, export, title)
        assert (await store.conversations.get(uuid)).title == expected
    await store.conversations.update(uuid, title="Mine")
    export.conversation.title = "Another"
    await brought(store, export, "9")
    assert (await store.conversations.get(uuid)).title == "Mine"
