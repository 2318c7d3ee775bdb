"""Web pages in held conversations: asked about by host, stored as results, and found again after resuming."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalRequested
from ragforge_tui.tools.web import connection
from tests.support.model_script import Script


async def test_a_page_is_asked_about_stored_and_resumed(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n\r\nText of the page")
        writer.close()

    site = await asyncio.start_server(answer, "127.0.0.1", 0)
    monkeypatch.setattr(connection, "reached_by_tests", {"127.0.0.1"})
    url = f"http://127.0.0.1:{site.sockets[0].getsockname()[1]}/"
    fetch = {"name": "fetch_web_page", "arguments": {"url": url}}
    server.script([{"tool_calls": [fetch]}, {"text": "Read."}, {"tool_calls": [fetch]}, {"text": "Not read."}])
    asked: list[ApprovalRequested] = []

    def approve(question: ApprovalRequested) -> bool | str:
        asked.append(question)
        return True if len(asked) == 1 else "Not that page."

    async with ConversationAgent(loaded, approve=approve) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("Read the page.")
        await conversation.send_message("Read it again.")
        uuid = conversation.record.uuid
    assert [(question.kind, question.detail) for question in asked] == [("web", url)] * 2
    assert "Text of the page" in server.chats()[1]["messages"][-1]["content"]
    async with ConversationAgent(loaded) as agent:
        first, second = await (await agent.load_conversation(uuid)).get_history()
        assert "Text of the page" in str(first.messages[1].tool_calls[0].result)
        assert "Not that page." in str(second.messages[1].tool_calls[0].result)
    site.close()
