"""A day's work on files, held through the whole agent and resumed."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded
from tests.support.model_script import Script

LINES = "".join(f"VALUE_{number} = {number}\n" for number in range(60))


def results(server: Script) -> list[str]:
    """The results of calls in the last request, oldest first."""
    return [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "tool"]


async def test_what_the_model_has_seen_is_neither_refused_nor_sent_again(loaded: Loaded, server: Script) -> None:
    (Path(loaded.workspace) / "values.py").write_text(LINES)
    read = {"name": "read_file", "arguments": {"path": "values.py"}}
    grep = {"name": "grep_files", "arguments": {"pattern": "VALUE_7 "}}
    edit = {"path": "values.py", "old_string": "VALUE_7 = 7", "new_string": "VALUE_7 = 70"}
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script(
            [{"tool_calls": [grep]}, {"tool_calls": [{"name": "edit_file", "arguments": edit}]}, {"text": ""}]
        )
        await conversation.send_message("Make it 70.")
        assert "VALUE_7 = 70" in results(server)[-1]
        server.script([{"tool_calls": [read]}, {"text": "60 values."}])
        await conversation.send_message("How many are there?")
        assert "VALUE_59 = 59" in results(server)[-1]
        uuid = conversation.record.uuid
    async with ConversationAgent(loaded, approve_all=True) as again:
        conversation = await again.load_conversation(uuid)
        back = {"name": "edit_file", "arguments": {**edit, "old_string": "VALUE_7 = 70", "new_string": "VALUE_7 = 7"}}
        server.script([{"tool_calls": [read]}, {"tool_calls": [back]}, {"tool_calls": [read]}, {"text": "Done."}])
        await conversation.send_message("Look again, then make it 7.")
        *_, unchanged, edited, changed = results(server)
        assert unchanged.startswith("Unchanged since t2:")
        assert "VALUE_7 = 7\n" in edited
        assert "VALUE_59 = 59" in changed
        server.script([{"tool_calls": [read]}, {"tool_calls": [read]}, {"text": "Still."}])
        await conversation.send_message("And now?")
        assert [result[:20] for result in results(server)[-2:]] == ["Unchanged since t3: "] * 2


async def test_calls_under_names_of_earlier_versions_run_and_stay_in_the_past(loaded: Loaded, server: Script) -> None:
    old = [
        {"name": "list_directory", "arguments": {"path": "."}},
        {"name": "create_file", "arguments": {"path": "new.txt", "content": "x\n"}},
    ]
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": old}, {"text": "Made."}])
        await conversation.send_message("List, then make a file.")
    async with ConversationAgent(loaded, approve_all=True) as again:
        conversation = await again.load_conversation(conversation.record.uuid)
        opened = {"name": "open_turn", "arguments": {"turn": 1, "call": 1}}
        server.script([{"tool_calls": [opened]}, {"text": "As before."}])
        await conversation.send_message("What was there?")
    listed, created, whole = results(server)
    assert "greeting.py" in listed and "Created new.txt" in created
    assert "Tool list_directory" in whole and "greeting.py" in whole
    assert not {tool["function"]["name"] for tool in server.chats()[-1]["tools"]} & {"list_directory", "create_file"}


async def test_a_patch_with_a_move_and_a_deletion_is_undone_and_redone(loaded: Loaded, server: Script) -> None:
    folder = Path(loaded.workspace)
    (folder / "old.py").write_text(LINES)
    (folder / "gone.txt").write_text("bye\n")

    def state() -> dict[str, str]:
        return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}

    before = state()
    patch = (
        "*** Begin Patch\n*** Update File: old.py\n*** Move to: lib/new.py\n-VALUE_7 = 7\n+VALUE_7 = 70\n"
        "*** Delete File: gone.txt\n*** Add File: made.txt\n+new\n*** End Patch"
    )
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": [{"name": "edit_file", "arguments": {"patch": patch}}]}, {"text": "Done."}])
        await conversation.send_message("Reorganise.")
        after = state()
        assert set(after) == {"greeting.py", "lib/new.py", "made.txt"}
    async with ConversationAgent(loaded, approve_all=True) as again:
        conversation = await again.load_conversation(conversation.record.uuid)
        assert {one.path for one in await conversation.diff()} == {"old.py", "lib/new.py", "gone.txt", "made.txt"}
        await conversation.undo(1)
        await conversation.wait_idle()
        assert state() == before
        redo = await conversation.plan_undo(redo=True)
        await conversation.undo(redo.turn_index)
        await conversation.wait_idle()
        assert state() == after
        moved = {"name": "edit_file", "arguments": {"path": "made.txt", "move_to": "kept.txt"}}
        server.script([{"tool_calls": [moved]}, {"text": "Moved."}])
        await conversation.send_message("Rename it.")
        assert results(server)[-1] == "Moved made.txt to kept.txt."
