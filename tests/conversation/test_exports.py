"""Exports in real time, as the agent drives them."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.export import from_json
from ragforge_tui.settings.schema import ExportSettings, Loaded
from tests.support.agents import with_memory
from tests.support.openai_server import OpenAIServer


async def test_files_follow_the_conversation_and_go_with_it(
    loaded: Loaded, server: OpenAIServer, tmp_path: Path
) -> None:
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
