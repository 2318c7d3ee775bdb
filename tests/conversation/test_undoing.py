"""What the agent changed, shown and taken back: real files, real graph, told to the agent, stored as a turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.work import FileDiff
from ragforge_tui.shared.tool_calls import writing_tools
from ragforge_tui.tools.undo.plan import fitted
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script

READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}
EDIT = {"name": "edit_file", "arguments": {"path": "greeting.py", "old_string": '"hello"', "new_string": '"good day"'}}
CREATE = {"name": "create_file", "arguments": {"path": "docs/new.md", "content": "# New\n"}}


@ONE_BACKEND
async def test_diff_undo_and_redo(loaded: Loaded, server: Script) -> None:
    server.script(
        [{"tool_calls": [READ, EDIT]}, {"text": "one"}, {"tool_calls": [CREATE]}, {"text": "two"}, {"text": "I see."}]
    )
    workspace = Path(loaded.workspace)
    greeting, made = workspace / "greeting.py", workspace / "docs" / "new.md"
    before = greeting.read_text(encoding="utf-8")
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        with pytest.raises(NotFoundError):
            await conversation.plan_undo()
        await conversation.send_message("edit")
        await conversation.send_message("create")
        diffs = {one.path: one.diff for one in await conversation.diff()}
        assert set(diffs) == {"greeting.py", "docs/new.md"}
        writes = await (await agent.store()).files.writes(conversation.record.uuid, writing_tools(), loaded.workspace)
        assert [(write.turn_index, write.tool) for write in writes] == [(1, "edit_file"), (2, "create_file")]
        assert all('"after"' in write.result and "return" not in write.result for write in writes)
        assert '-    return "hello"\n+    return "good day"\n' in diffs["greeting.py"]
        assert "--- /dev/null" in diffs["docs/new.md"]

        plan = await conversation.plan_undo()
        assert (plan.turn_index, [one.path for one in plan.restored], plan.refused) == (2, ["docs/new.md"], [])
        assert "+++ /dev/null" in plan.restored[0].diff
        assert await conversation.undo(1, "m1") == 3
        await conversation.wait_idle()
        assert await conversation.undo(1, "m1") == 0, "the same id is taken once"
        assert greeting.read_text(encoding="utf-8") == before
        assert not made.exists()
        assert await conversation.diff() == []

        redo = await conversation.plan_undo(redo=True)
        assert (redo.turn_index, redo.redo, len(redo.restored)) == (3, True, 2)
        await conversation.undo(redo.turn_index)
        await conversation.wait_idle()
        assert "good day" in greeting.read_text(encoding="utf-8")
        assert made.exists()
        await conversation.send_message("what happened?")
        uuid = conversation.record.uuid
    sent = [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "user"]
    told = sent[-1]
    assert "[The user undid the edits of turn 1 and later (/undo): the files named" in told
    assert "[The user took back the undo of turn 3 (/redo): the files named" in told
    assert "\nRestored to the state before turn 1: docs/new.md, greeting.py.\n" in told and "\n/undo" not in told
    assert not any(m.get("tool_calls") and "restore_files" in str(m) for m in server.chats()[-1]["messages"])
    async with ConversationAgent(loaded) as again:
        resumed = await again.load_conversation(uuid)
        turn, redone = (await resumed.get_history())[2:4]
        assert redone.messages[0].content == "/redo"
        assert [m.role for m in turn.messages] == ["user", "system"]
        assert turn.messages[0].content == "/undo 1"
        assert turn.messages[1].tool_calls[0].tool_name == "restore_files"
        assert turn.messages[1].tool_calls[0].success


async def test_a_branch_undoes_the_turns_it_shares(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [READ, EDIT]}, {"text": "one"}, {"tool_calls": [CREATE]}, {"text": "two"}])
    workspace = Path(loaded.workspace)
    before = (workspace / "greeting.py").read_text(encoding="utf-8")
    async with ConversationAgent(loaded, approve_all=True) as agent:
        parent = await agent.create_conversation()
        await parent.send_message("edit")
        await parent.send_message("create")
        unshared = await parent.branch(turn=0)
        assert await unshared.diff() == []
        with pytest.raises(NotFoundError) as nothing:
            await unshared.plan_undo()
        assert (
            f"turn 2 of the conversation it branched off from. To undo them: /resume {parent.record.uuid[:8]}"
            in str(nothing.value)
        )
        branch = await parent.branch(turn=1)
        assert [one.path for one in await branch.diff()] == ["greeting.py"], "the later turn is the parent's alone"
        assert (await branch.plan_undo()).turn_index == 1
        with pytest.raises(NotFoundError) as wrong:
            await branch.plan_undo(7)
        assert str(wrong.value) == "Turn 7 changed no files. The last turn that did is 1: /undo 1."
        await branch.undo(1)
        await branch.wait_idle()
        assert (workspace / "greeting.py").read_text(encoding="utf-8") == before
        assert (workspace / "docs" / "new.md").exists()
        assert await branch.diff() == []
        with pytest.raises(NotFoundError) as done:
            await branch.plan_undo()
        assert "/diff" not in str(done.value)
        assert [one.path for one in await parent.diff()] == ["docs/new.md"]


@ONE_BACKEND
async def test_undo_names_and_leaves_files_changed_by_others(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [READ, EDIT, CREATE]}, {"text": "done"}])
    greeting = Path(loaded.workspace) / "greeting.py"
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("edit")
        greeting.write_text("mine\n", encoding="utf-8")
        (changed, _) = sorted(await conversation.diff(), key=lambda one: one.note, reverse=True)
        assert (changed.path, bool(changed.note)) == ("greeting.py", True)
        assert (changed.added, changed.removed) == (1, 1), "what was written here, not what is there now"
        plan = await conversation.plan_undo(1)
        assert [one.path for one in plan.restored] == ["docs/new.md"]
        assert [(one.path, "since" in one.note) for one in plan.refused] == [("greeting.py", True)]
        await conversation.undo(1)
        await conversation.wait_idle()
        assert greeting.read_text(encoding="utf-8") == "mine\n"
        with pytest.raises(NotFoundError):
            await conversation.undo(1)


def test_diffs_too_long_for_one_answer_are_cut_and_show_so() -> None:
    files = [FileDiff(path=name, diff="x" * 6) for name in "abc"]
    assert [one.diff for one in fitted(files, 20)] == ["x" * 6] * 3
    first, second, third = (one.diff for one in fitted(files, 8))
    assert first == "x" * 6
    assert second == "xx\n[diff cut, 6 characters]\n"
    assert third == "\n[diff cut, 6 characters]\n"
