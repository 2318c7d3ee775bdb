"""Commits of turns and the way back from a line to its turn, in real repositories and on both backends."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.blame import blame
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.conversation.turn.commits import LaterCommits
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.records import now
from ragforge_tui.shared.requests.work import BlameEntry
from ragforge_tui.shared.tool_calls import commits_of
from tests.conftest import ONE_BACKEND
from tests.support.openai_server import OpenAIServer
from tests.support.records import rows_of
from tests.support.repositories import git, repository


async def command(conversation: Conversation, text: str) -> None:
    await conversation.run_command(text)
    await conversation.wait_idle()


async def write(conversation: Conversation, server: OpenAIServer, path: str, content: str) -> None:
    conversation.mode = "edits"
    arguments = {"path": path, "content": content}
    server.script([{"tool_calls": [{"name": "write_file", "arguments": arguments}]}, {"text": "Written."}])
    await conversation.send_message(f"Write {path}")


async def entry(store: Store, folder: Path, path: str, line: int = 0) -> BlameEntry:
    return (await blame(store, folder, path, line, 10)).entries[0]


async def test_commits_of_a_command_lead_back_to_its_turn(loaded: Loaded, graph: Graph) -> None:
    folder = repository(Path(loaded.workspace))
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await command(conversation, "echo only looking")
        await command(
            conversation,
            "echo one > a.txt && git add . && git commit -qm 'One' && echo two >> a.txt && git commit -qam 'Twoo'"
            " && git commit -q --amend -m 'Two' && git checkout -qb side && echo s > s.txt && git add s.txt"
            " && git commit -qm 'Side' && git checkout -q main",
        )
        looked, made = await conversation.get_history()
        assert commits_of(looked.messages[1].tool_calls[0]) == []
        commits = commits_of(made.messages[1].tool_calls[0])
        assert {commit.subject for commit in commits} == {"One", "Two", "Side"}
        assert {commit.author for commit in commits} == {"Ada"}
        store = Store(graph)
        found = await blame(store, folder, "a.txt", 2, 10)
        assert found.text == "two"
        assert found.entries[0].commit is not None and found.entries[0].commit.subject == "Two"
        turn = found.entries[0].turn
        assert turn is not None and (turn.turn_index, turn.relation) == (2, "committed")
        assert turn.question.startswith("!echo one")
        whole = (await blame(store, folder, "a.txt", 0, 10)).entries
        assert [item.commit.subject for item in whole if item.commit] == ["Two", "One"]
        start = await entry(store, folder, "start.txt", 1)
        assert start.commit is not None and start.commit.subject == "Start" and start.turn is None
    assert await rows_of(graph, "MATCH (:Message)-[:PRODUCED]->(k:Commit) RETURN k") == 3
    await store.conversations.purge(conversation.record.uuid)
    assert await rows_of(graph, "MATCH (k:Commit) RETURN k") == 0


async def test_the_user_commits_afterwards(loaded: Loaded, graph: Graph, server: OpenAIServer) -> None:
    folder = repository(Path(loaded.workspace))
    store = Store(graph)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await write(conversation, server, "a.txt", "one\ntwo\n")
        fresh = await entry(store, folder, "a.txt", 1)
        assert fresh.commit is None and fresh.turn is not None and fresh.turn.relation == "written"
        git(folder, "add", "a.txt")
        git(folder, "commit", "--quiet", "-m", "By hand")
        (folder / "start.txt").write_text("mine\n")
        git(folder, "commit", "--quiet", "-am", "My own")
        await command(conversation, "true")  # the next turn finds the commit of what the first one wrote
        assert await rows_of(graph, "MATCH (:Message)-[p:PRODUCED {found: true}]->(k:Commit) RETURN k") == 1
        later = await entry(store, folder, "a.txt", 2)
        assert later.turn is not None and (later.turn.turn_index, later.turn.relation) == (1, "committed later")
        assert later.turn.question == "Write a.txt"
        own = await entry(store, folder, "start.txt", 1)
        assert own.commit is not None and own.commit.subject == "My own" and own.turn is None
        await write(conversation, server, "b.txt", "b\n")
    git(folder, "add", "b.txt")
    git(folder, "commit", "--quiet", "-m", "After the chat")
    closed = await entry(store, folder, "b.txt", 1)
    assert closed.turn is not None and (closed.turn.turn_index, closed.turn.relation) == (3, "committed later")


async def test_commits_of_the_pause_are_looked_up_while_the_model_is_asked(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[datetime] = []

    async def slow(_: LaterCommits, __: Store) -> None:
        while not server.chats():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        stored.append(now())

    monkeypatch.setattr(LaterCommits, "store_new", slow)
    server.script([{"tool_calls": [{"name": "list_directory", "arguments": {"path": "."}}]}, {"text": "Done."}])
    async with ConversationAgent(loaded) as agent:
        answer = await (await agent.create_conversation()).send_message("List the files")
    assert len(stored) == 1
    assert answer.tool_calls[0].timestamp >= stored[0], "a tool could commit too"


async def test_commits_travel_with_their_conversation(loaded: Loaded, graph: Graph, server: OpenAIServer) -> None:
    folder = repository(Path(loaded.workspace))
    store = Store(graph)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await write(conversation, server, "a.txt", "one\n")
        await command(conversation, "git add . && git commit -qm 'One'")
        (folder / "a.txt").write_text("two\n")
        uuid = conversation.record.uuid
    export = await store.transfer.export(uuid)
    (commit,) = export.memory.commits
    assert commit.commit.subject == "One" and not commit.found and commit.turn_index == 2
    await store.conversations.purge(uuid)
    for _ in range(2):
        await store.transfer.import_(msgspec.json.decode(msgspec.json.encode(export), type=type(export)))
    assert await rows_of(graph, "MATCH (:Message)-[:PRODUCED]->(k:Commit) RETURN k") == 1
    turn = await store.commits.turn_of(commit.commit.hash, str(folder))
    assert turn is not None and (turn.conversation_id, turn.turn_index) == (uuid, 2)
    assert await store.commits.turn_of(commit.commit.hash, "/elsewhere") is None


@ONE_BACKEND
async def test_a_trailer_names_the_turn_where_the_graph_has_no_commit(
    loaded: Loaded, graph: Graph, server: OpenAIServer
) -> None:
    folder = repository(Path(loaded.workspace))
    tools = msgspec.structs.replace(loaded.settings.tools, commit_trailer=True)
    loaded = msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, tools=tools))
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        server.script([{"text": "Hello."}])
        await conversation.send_message("Hello")
        uuid = conversation.record.uuid
        trailer = f"Ragforge-Conversation: {uuid} t1"
        assert trailer in str(server.chats()[0]["messages"])
        (folder / "c.txt").write_text("c\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"Elsewhere\n\n{trailer}")
        named = await entry(Store(graph), folder, "c.txt", 1)
        assert named.turn is not None and (named.turn.turn_index, named.turn.relation) == (1, "named by the commit")
        git(folder, "commit", "--quiet", "--amend", "-m", "Elsewhere\n\nRagforge-Conversation: nobody t1")
        assert (await entry(Store(graph), folder, "c.txt", 1)).turn is None


@ONE_BACKEND
async def test_what_cannot_be_answered_is_said(
    loaded: Loaded, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = repository(Path(loaded.workspace)), Store(graph)
    (folder / "new.txt").write_text("new\n")
    assert await entry(store, folder, "new.txt", 1) == BlameEntry()
    with pytest.raises(NotFoundError, match=r"start.txt has one line, so there is no line 2"):
        await blame(store, folder, "start.txt", 2, 10)
    with pytest.raises(NotFoundError, match="no file"):
        await blame(store, folder, "gone.txt", 0, 10)
    with pytest.raises(RagforgeError, match="outside"):
        await blame(store, folder, "../x.txt", 0, 10)
    with pytest.raises(RagforgeError, match="not in a git repository"):
        await blame(store, tmp_path, "x.txt", 0, 10)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RagforgeError, match="git is not installed"):
        await blame(store, folder, "start.txt", 1, 10)
