"""Rules are listed and changed through the engine, and hold from the next call on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ragforge_tui.engine import connect_in_process
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ApprovalRequested, ToolCallFinished, TurnCompleted
from ragforge_tui.shared.records import call_end
from ragforge_tui.shared.requests.rules import ChangeRule, ListRules
from ragforge_tui.shared.requests.turns import CreateConversation, SendMessage
from ragforge_tui.shared.rules import Rule
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script


@ONE_BACKEND
async def test_rules_are_changed_and_hold_from_the_next_call(loaded: Loaded, server: Script, tmp_path: Path) -> None:
    write = {"name": "write_file", "arguments": {"path": "src/a.txt", "content": "x\n"}}
    push = {"name": "run_command", "arguments": {"command": "git push --force"}}
    read = {"name": "read_file", "arguments": {"path": "src/a.txt"}}
    server.script([{"tool_calls": [write, push]}, {"tool_calls": [read]}, {"text": "Done."}])
    loaded = msgspec.structs.replace(loaded, config_file=str(tmp_path / "config.yaml"))
    engine = await connect_in_process(loaded)
    try:
        assert (await engine.request(ListRules())).rules == []
        await engine.request(ChangeRule(new=Rule("deny", "git push *")))
        await engine.request(ChangeRule(new=Rule("ask", "read_file(src/)")))
        with pytest.raises(RagforgeError, match="would have no effect"):
            await engine.request(ChangeRule(new=Rule("allow", "*")))
        found = await engine.request(ChangeRule(new=Rule("allow", "write(src/)", loaded.workspace)))
        assert [str(entry.rule) for entry in found.rules][-1] == f"allow write(src/) in {loaded.workspace}"
        view = await engine.request(CreateConversation())
        owner = view.conversation.uuid
        await engine.request(SendMessage(conversation_id=owner, message_id="m1", text="Do it."))
        ends, asked = [], []
        async for event in engine.events():
            if isinstance(event, ToolCallFinished):
                ends.append(call_end(event.call))
            if isinstance(event, ApprovalRequested):
                asked.append(event.question)
            if isinstance(event, TurnCompleted):
                break
    finally:
        await engine.close()
    assert ends == ["ok", "refused", "refused"]
    assert asked == ["Read this? Your rule is: ask read_file(src/)."]
    told = [message["content"] for message in server.chats()[1]["messages"] if message["role"] == "tool"]
    assert "A rule of the user's forbids this call: deny git push *." in told[1]
