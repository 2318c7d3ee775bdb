"""The engine's answers about calls: listed without their results, one of them whole, on each backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.work import FetchCall, ListCalls
from tests.support.model_script import Script


def write(workspace: str, name: str, text: str) -> None:
    Path(workspace, name).write_text(text)


async def test_calls_are_listed_and_one_is_fetched_whole(loaded: Loaded, server: Script) -> None:
    write(loaded.workspace, "notes.txt", "remember the harbour\n" * 200)
    read = {"name": "read_file", "arguments": json.dumps({"path": "notes.txt", "reason": "it is asked for"})}
    gone = {"name": "read_file", "arguments": json.dumps({"path": "gone.txt"})}
    engine = InProcessEngine(loaded)
    try:
        conversation = await engine.agent.create_conversation()
        server.script([{"tool_calls": [read, gone]}, {"text": "done"}])
        await conversation.send_message("What do the notes say?")
        uuid = conversation.record.uuid
        page = await engine.request(ListCalls(conversation_id=uuid))
        assert page.first_turn == 1
        assert [(entry.turn_index, entry.call.success) for entry in page.calls] == [(1, True), (1, False)]
        listed, failed = (entry.call for entry in page.calls)
        assert listed.result is not None and failed.result is not None
        assert listed.result.result == ""
        assert listed.result.result_size_bytes > 4000
        assert failed.result.error
        whole = await engine.request(FetchCall(conversation_id=uuid, turn_index=1, call_id=listed.uuid))
        assert whole.result is not None
        assert "remember the harbour" in whole.result.result
        with pytest.raises(NotFoundError):
            await engine.request(FetchCall(conversation_id=uuid, turn_index=1, call_id="nope"))
    finally:
        await engine.close()
