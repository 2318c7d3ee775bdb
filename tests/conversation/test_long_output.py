"""Long output: a tenth of the window, the rest a call away, also after resuming."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.export.markdown import turn_text
from ragforge_tui.settings.schema import Loaded
from tests.support.agents import with_model
from tests.support.model_script import Script

WINDOW = 16_000


def result(server: Script) -> str:
    """The last result in the last request."""
    return str([m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "tool"][-1])


async def test_the_whole_is_kept_where_the_agent_can_page_and_search_it(loaded: Loaded, server: Script) -> None:
    lines = [f"entry {number} of the log, which is as long as a line of a log is" for number in range(900)]
    passed = [f"tests/test_a.py::test_{number} PASSED" for number in range(300)]
    (Path(loaded.workspace) / "log.txt").write_text("\n".join([*lines[:450], *passed, *lines[450:]]))
    run = {"name": "run_command", "arguments": {"command": "cat log.txt"}}
    read = {"name": "read_file", "arguments": {"path": "log.txt"}}
    settings = with_model(loaded, context_window=WINDOW)
    async with ConversationAgent(settings, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": [run]}, {"tool_calls": [read]}, {"text": "Long."}])
        await conversation.send_message("Show the log.")
        ran, shown = (m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "tool")
        assert len(ran) <= WINDOW * 4 // 10 + 1_200
        assert ran.startswith("entry 0 of") and "[Exit status 0.]" in ran and " lines left out …]" in ran
        assert ran.endswith(
            "[open_turn(turn=1, call=1) returns all of it in pages, with find the lines that hold a text]"
        )
        assert "continue with start_line=" in shown and len(shown) <= WINDOW * 4 // 10 + 1_200
    async with ConversationAgent(settings, approve_all=True) as again:
        conversation = await again.load_conversation(conversation.record.uuid)
        page = {"name": "open_turn", "arguments": {"turn": 1, "call": 1, "offset": 30_000}}
        find = {"name": "open_turn", "arguments": {"turn": 1, "call": 1, "find": "ENTRY 512 "}}
        nothing = {"name": "open_turn", "arguments": {"turn": 1, "call": 1, "find": "ENTRY 1512 "}}
        server.script([{"tool_calls": [find, nothing]}, {"tool_calls": [page]}, {"text": "Found."}])
        await conversation.send_message("What is in entry 512?")
        found = [m["content"] for m in server.chats()[-2]["messages"] if m["role"] == "tool"][-2:]
        assert "\tentry 512 of the log" in found[0] and "entry 511" not in found[0]
        assert "No line of 1 " in found[1]
        assert "continue with offset=" in result(server) or "entry 899" in result(server)
        (turn, _) = await conversation.get_history()
        assert "test_150 PASSED" in turn.messages[1].tool_calls[0].result.result  # type: ignore[union-attr]
        assert "test_150 PASSED" not in turn_text(turn), "exports hold what the model got"
