"""The requests a list of sessions makes, answered by a whole engine."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine import connect_in_process
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import now
from ragforge_tui.shared.requests.sessions import FollowConversations, PeekConversation, Search, UpdateConversation
from tests.support.model_script import Script


async def test_search_peek_and_follow(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "They eat leaves."}])
    began = now() - timedelta(seconds=1)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(title="Okapis")
        await conversation.send_message("What do okapis eat?")
        uuid = conversation.record.uuid
    engine = await connect_in_process(loaded)
    try:
        here, elsewhere = loaded.workspace, "/nowhere"
        (hit,) = await engine.request(Search(query="okapis", workspace=here))
        assert (hit.conversation_id, hit.turn_index) == (uuid, 1)
        assert not await engine.request(Search(query="okapis", workspace=elsewhere))
        assert await engine.request(Search(query="okapis", conversation_id=uuid))
        with pytest.raises(NotFoundError):
            await engine.request(Search(query="okapis", topic="giraffes", workspace=here))
        peek = await engine.request(PeekConversation(conversation_id=uuid))
        assert (peek.first, peek.last, peek.last_role) == ("What do okapis eat?", "They eat leaves.", "assistant")
        changes = await engine.request(FollowConversations(since=began, workspace=here))
        assert [one.uuid for one in changes.changed] == [uuid] and changes.count == 1
        since = now()
        assert not (await engine.request(FollowConversations(since=since, workspace=here))).changed
        await engine.request(UpdateConversation(conversation_id=uuid, title="Their food"))
        changes = await engine.request(FollowConversations(since=since))
        assert [one.title for one in changes.changed] == ["Their food"]
    finally:
        await engine.close()
