"""Exports in real time, as the agent drives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.engine import connect_in_process
from ragforge_tui.export import from_json
from ragforge_tui.settings.schema import ExportSettings, Loaded
from ragforge_tui.shared.events import MessageFinished, TopicsChanged, TurnCompleted
from ragforge_tui.shared.requests.memory import MergeTopics, UnmergeTopic
from ragforge_tui.shared.requests.turns import OpenConversation
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_memory
from tests.support.model_script import Script
from tests.support.records import conversation
from tests.support.stored_memory import remembered


async def test_files_follow_the_conversation_and_go_with_it(loaded: Loaded, server: Script, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    exporting = with_memory(loaded, export=ExportSettings(enabled=True, path=str(folder), format="both"))
    server.script([{"text": "one"}, {"text": "two"}])
    async with ConversationAgent(exporting) as agent:
        conversation = await agent.create_conversation()
        uuid = conversation.record.uuid
        await conversation.send_message("first")
        await conversation.send_message("second")
    written = from_json((folder / f"conv-{uuid}.json").read_bytes())
    assert [m.content for turn in written.turns for m in turn.messages] == ["first", "one", "second", "two"]
    assert "second" in (folder / f"conv-{uuid}.md").read_text(encoding="utf-8")
    async with ConversationAgent(exporting) as again:
        await again.archive_conversation(uuid)
        assert (folder / f"conv-{uuid}.json").exists()
        await again.delete_conversation(uuid, immediately=True)
    assert list(folder.iterdir()) == []


@ONE_BACKEND
@pytest.mark.parametrize("every_message", [True, False])
async def test_the_file_is_complete_when_the_turn_ends(
    loaded: Loaded, server: Script, tmp_path: Path, every_message: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONVERSATION, "export_ended", 60.0)
    settings = ExportSettings(enabled=True, path=str(tmp_path / "exports"), on_every_message=every_message)
    exporting = with_memory(loaded, export=settings)
    server.script(
        [
            {"tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}]},
            {"text": "It says hello."},
            {"text": "Again."},
        ]
    )
    async with ConversationAgent(exporting) as agent:
        conversation = await agent.create_conversation()
        path = tmp_path / "exports" / f"conv-{conversation.record.uuid}.json"
        for asked, said in (("What does it say?", "It says hello."), ("And again?", "Again.")):
            async for event in conversation.stream(asked):
                if isinstance(event, MessageFinished) and not every_message:
                    assert said.encode() not in (path.read_bytes() if path.exists() else b"")
                if isinstance(event, TurnCompleted):
                    last = from_json(path.read_bytes()).turns[-1]
                    assert [m.content for m in last.messages if m.content] == [asked, said]
                    assert {m.state for m in last.messages} == {"complete"}
                    assert all(call.result for m in last.messages for call in m.tool_calls)
        await conversation.set_persona("")
        record = await conversation.memory.summarise_conversation()
        await agent.services.exports.flush()
        written = from_json(path.read_bytes())
        assert record
        assert (written.conversation.summary, written.conversation.title) == (record, conversation.record.title)


@ONE_BACKEND
async def test_an_outage_leaves_no_gap_in_the_file(loaded: Loaded, server: Script, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    exporting = with_memory(loaded, export=ExportSettings(enabled=True, path=str(folder)))
    server.script([{"text": "one"}])
    async with ConversationAgent(exporting) as agent:
        conversation = await agent.create_conversation()
        agent.services.recorder._journaling = True
        await conversation.send_message("first")
        await agent._on_graph_ready(await agent.store())
        assert agent._chores is not None
        await agent._chores
        await agent.services.exports.flush()
        written = from_json((folder / f"conv-{conversation.record.uuid}.json").read_bytes())
        assert [m.content for turn in written.turns for m in turn.messages] == ["first", "one"]


async def test_a_merge_of_topics_is_in_the_files_of_the_conversations_it_touches(
    loaded: Loaded, server: Script, tmp_path: Path
) -> None:
    folder = tmp_path / "exports"
    exporting = with_memory(loaded, export=ExportSettings(enabled=True, path=str(folder)))
    engine = await connect_in_process(exporting)
    try:
        async with ConversationAgent(exporting) as agent:
            store = await agent.store()
            one, other = [await remembered(store) for _ in range(2)]
            branch = await store.conversations.create(conversation(branch_of=one, branch_turn=4, workspace="/w"))
            untouched = await store.conversations.create(conversation(workspace="/w"))
            for uuid in (one, other, branch.uuid, untouched.uuid):
                agent.services.exports.turn_stored(uuid)
            await agent.services.exports.flush()
            (folder / f"conv-{other}.json").unlink()

        def merged() -> set[str]:
            def names(path: Path) -> set[tuple[str, str]]:
                memory = from_json(path.read_bytes()).memory
                known = {topic.uuid: topic.name for topic in memory.topics}
                return {(known[e.source], known[e.target]) for e in memory.topic_edges if e.kind == "merged"}

            return {
                path.stem.removeprefix("conv-") for path in folder.iterdir() if ("Shared", "Topic 1") in names(path)
            }

        times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        assert merged() == set()
        await engine.request(OpenConversation(ref=one))
        with engine.agent.subscribe() as events:
            await engine.request(MergeTopics(a="shared", b="topic 1"))
            told = [events.get_nowait() for _ in range(events.qsize())]
        changed = [event.conversation_id for event in told if isinstance(event, TopicsChanged)]
        assert changed == [one], "the others are not open here"
        await engine.agent.services.exports.flush()
        assert merged() == {one, branch.uuid}
        assert (folder / f"conv-{untouched.uuid}.json").stat().st_mtime_ns == times[f"conv-{untouched.uuid}.json"]
        await engine.request(UnmergeTopic(ref="Shared"))
        await engine.agent.services.exports.flush()
        assert merged() == set()
    finally:
        await engine.close()
