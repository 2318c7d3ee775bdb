"""Commits of turns and the way back from a line to its turn, in real repositories and on both backends."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.blame import blame
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.records import Finding
from ragforge_tui.shared.requests.work import BlamedLines
from ragforge_tui.shared.tool_calls import commits_of
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script
from tests.support.records import rows_of
from tests.support.repositories import git, repository
from tests.support.stored_memory import summary


async def command(conversation: Conversation, text: str) -> None:
    await conversation.run_command(text)
    await conversation.wait_idle()


async def write(conversation: Conversation, server: Script, path: str, content: str) -> None:
    conversation.mode = "edits"
    arguments = {"path": path, "content": content}
    server.script([{"tool_calls": [{"name": "write_file", "arguments": arguments}]}, {"text": "Written."}])
    await conversation.send_message(f"Write {path}")


async def line_of(store: Store, folder: Path, path: str, line: int) -> BlamedLines:
    (found,) = (await blame(store, folder, path, line)).lines
    return found


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
        assert (await blame(store, folder, "a.txt", 2)).text == "two"
        two = await line_of(store, folder, "a.txt", 2)
        assert two.commit is not None and two.commit.subject == "Two"
        assert two.turn is None, "what a command writes is not followed"
        assert two.committed_by is not None and two.committed_by.turn_index == 2
        assert two.committed_by.question.startswith("!echo one")
        whole = (await blame(store, folder, "a.txt", 0)).lines
        assert [(each.first, each.last, each.commit and each.commit.subject) for each in whole] == [
            (1, 1, "One"),
            (2, 2, "Two"),
        ]
        start = await line_of(store, folder, "start.txt", 1)
        assert start.commit is not None and start.commit.subject == "Start" and start.committed_by is None
    assert await rows_of(graph, "MATCH (:Message)-[:PRODUCED]->(k:Commit) RETURN k") == 3
    await store.purges.purge(conversation.record.uuid)
    assert await rows_of(graph, "MATCH (k:Commit) RETURN k") == 0


async def test_the_writing_turn_whoever_commits(loaded: Loaded, graph: Graph, server: Script) -> None:
    folder = repository(Path(loaded.workspace))
    store = Store(graph)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await write(conversation, server, "a.txt", "one\ntwo\n")
        fresh = await line_of(store, folder, "a.txt", 1)
        assert fresh.commit is None and fresh.turn is not None and fresh.turn.turn_index == 1
        assert (fresh.turn.question, fresh.turn.decision) == ("Write a.txt", None)
        await write(conversation, server, "a.txt", "one\n2\n")
        await command(conversation, "git add . && git commit -qm 'Commit this'")
        found = [await line_of(store, folder, "a.txt", line) for line in (1, 2)]
        assert [each.turn and each.turn.turn_index for each in found] == [1, 2]
        assert [each.committed_by and each.committed_by.turn_index for each in found] == [3, 3]
        (folder / "start.txt").write_text("mine\n")
        git(folder, "commit", "--quiet", "-am", "My own")
        own = await line_of(store, folder, "start.txt", 1)
        assert own.commit is not None and own.commit.subject == "My own"
        assert own.turn is None and own.committed_by is None
        uuid = conversation.record.uuid
    decided = [Finding(text="Count in digits", turns=[2], kind="decision"), Finding(text="It is short", turns=[2])]
    await store.summaries.store(summary(uuid, 1, 1, 3, key_findings=decided), [])
    found = [await line_of(store, folder, "a.txt", line) for line in (1, 2)]
    assert [each.turn and each.turn.decision for each in found] == [None, "Count in digits"]
    await store.conversations.update(uuid, status="deleted")
    gone = await line_of(store, folder, "a.txt", 2)
    assert gone.commit is not None and gone.turn is None and gone.committed_by is None


async def test_commits_travel_with_their_conversation(loaded: Loaded, graph: Graph, server: Script) -> None:
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
    assert commit.commit.subject == "One" and commit.turn_index == 2
    (change,) = export.turns[0].messages[1].tool_calls[0].changes
    assert change.path == "a.txt" and "one" not in change.hunks
    await store.purges.purge(uuid)
    for _ in range(2):
        await store.transfer.import_(msgspec.json.decode(msgspec.json.encode(export), type=type(export)))
    assert await rows_of(graph, "MATCH (:Message)-[:PRODUCED]->(k:Commit) RETURN k") == 1
    assert await rows_of(graph, "MATCH (:ToolCall)-[h:CHANGED]->(:File) RETURN h") == 1
    git(folder, "checkout", "--quiet", "a.txt")
    found = await line_of(store, folder, "a.txt", 1)
    assert found.turn is not None and (found.turn.conversation_id, found.turn.turn_index) == (uuid, 1)
    assert found.committed_by is not None and found.committed_by.turn_index == 2


async def test_a_commit_of_an_odd_date_is_stored(loaded: Loaded, graph: Graph) -> None:
    folder = repository(Path(loaded.workspace))
    git(folder, "config", "i18n.logOutputEncoding", "UTF-16")
    odd = "GIT_COMMITTER_DATE='@99999999999999 +0000' git commit -qm Odd"
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await command(conversation, f"echo one > a.txt && git add . && {odd}")
        (turn,) = await conversation.get_history()
        call = turn.messages[1].tool_calls[0]
        assert call.success and [commit.subject for commit in commits_of(call)] == ["Odd"]
    found = await line_of(Store(graph), folder, "a.txt", 1)
    assert found.commit is not None and found.commit.subject == "Odd" and found.commit.committed_at.year == 9999
    assert found.committed_by is not None and found.committed_by.turn_index == 1
    assert await graph.rows("MATCH (k:Commit) RETURN k.committed_at.year AS year") == [{"year": 9999}]


@ONE_BACKEND
async def test_a_trailer_names_the_turn_where_the_graph_has_no_commit(
    loaded: Loaded, graph: Graph, server: Script
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
        named = await line_of(Store(graph), folder, "c.txt", 1)
        assert named.turn is None and named.committed_by is not None and named.committed_by.turn_index == 1
        git(folder, "commit", "--quiet", "--amend", "-m", "Elsewhere\n\nRagforge-Conversation: nobody t1")
        assert (await line_of(Store(graph), folder, "c.txt", 1)).committed_by is None


@ONE_BACKEND
async def test_questions_without_an_answer_say_so(
    loaded: Loaded, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = repository(Path(loaded.workspace)), Store(graph)
    (folder / "new.txt").write_text("new\n")
    assert await line_of(store, folder, "new.txt", 1) == BlamedLines(first=1, last=1)
    with pytest.raises(NotFoundError, match=r"start.txt has one line, so there is no line 2"):
        await blame(store, folder, "start.txt", 2)
    with pytest.raises(NotFoundError, match="no file"):
        await blame(store, folder, "gone.txt", 0)
    with pytest.raises(RagforgeError, match="outside"):
        await blame(store, folder, "../x.txt", 0)
    with pytest.raises(RagforgeError, match="not in a git repository"):
        await blame(store, tmp_path, "x.txt", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RagforgeError, match="git is not installed"):
        await blame(store, folder, "start.txt", 1)
