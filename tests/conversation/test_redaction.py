"""Secrets of files, commands and messages: neither sent to the model nor kept, in the turn they turn up in."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.export import to_json, to_markdown
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ToolCallOutput, ToolCallStarted
from ragforge_tui.shared.redaction import MASK
from tests.conftest import ONE_BACKEND
from tests.conversation.test_journaling import without_graph
from tests.support.key_shapes import GITHUB_KEY, filled
from tests.support.model_script import Script

# No statement is made here that tests/graph does not run on both backends.
pytestmark = ONE_BACKEND

PASSWORD = filled("postgres://app:<24>@db/x")


def calls(workspace: Path) -> list[dict[str, object]]:
    """A reply that reads a file and runs a command that both show secrets, and says one itself."""
    (workspace / "notes.txt").write_text(f"token\n{GITHUB_KEY}\n")
    command = {"command": f"cat notes.txt; echo {PASSWORD}", "reason": f"to see {GITHUB_KEY}"}
    read = {"name": "read_file", "arguments": {"path": "notes.txt"}}
    return [
        {"text": f"I look for {GITHUB_KEY}.", "tool_calls": [read, {"name": "run_command", "arguments": command}]},
        {"text": "Done."},
    ]


async def test_no_secret_reaches_the_model_the_graph_or_an_export(loaded: Loaded, server: Script) -> None:
    server.script(calls(Path(loaded.workspace)))
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(f"mine is {GITHUB_KEY}")
        export = await (await agent.store()).transfer.export(conversation.record.uuid)
    for kept in (str(export), to_json(export).decode(), to_markdown(export), str(server.chats())):
        assert MASK in kept
        assert GITHUB_KEY not in kept
        assert PASSWORD not in kept


async def test_no_secret_is_in_the_output_of_a_running_command(loaded: Loaded, server: Script) -> None:
    command = {"name": "run_command", "arguments": {"command": f"echo start; echo {GITHUB_KEY}; sleep 0.7"}}
    server.script([{"tool_calls": [command]}, {"text": "Done."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        events = [event async for event in conversation.stream("go")]
    (output,) = [event for event in events if isinstance(event, ToolCallOutput)]
    (started,) = [event for event in events if isinstance(event, ToolCallStarted)]
    assert output.call_id == started.call.uuid
    assert output.lines[0] == "start" and MASK in output.lines[1] and GITHUB_KEY not in output.lines[1]


async def test_no_secret_reaches_the_journal(loaded: Loaded, server: Script) -> None:
    server.script(calls(Path(loaded.workspace)))
    async with ConversationAgent(without_graph(loaded), approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(f"mine is {GITHUB_KEY}")
    (journal,) = (Path(loaded.paths.state) / "journal").rglob("*.jsonl")
    text = journal.read_text()
    assert MASK in text
    assert GITHUB_KEY not in text
    assert PASSWORD not in text
