"""The memory asked for piece by piece, of a real conversation through the engine."""

from __future__ import annotations

import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.settings.schema import Loaded, SummarizationSettings
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.memory import (
    FetchDue,
    FetchFindings,
    FetchSent,
    FetchSummary,
    FetchTopicPlaces,
    FetchTree,
    FetchTurnLines,
    FetchWhy,
)
from ragforge_tui.shared.requests.turns import BranchConversation
from tests.conversation.test_memory import FEW, talk
from tests.support.agents import with_memory
from tests.support.model_script import Script


async def test_the_tree_and_what_is_under_it(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded, summarization=FEW))
    try:
        conversation = await engine.agent.create_conversation()
        uuid = conversation.record.uuid
        await talk(conversation, server, 8)
        await conversation.memory.settle()
        tree = await engine.request(FetchTree(conversation_id=uuid))
        assert tree.last_turn == 8
        assert tree.summary
        firsts = [(node.level, node.start_turn_index, node.end_turn_index) for node in tree.nodes if node.level == 1]
        assert firsts == [(1, 1, 2), (1, 3, 4), (1, 5, 6)]
        assert tree.due == await engine.request(FetchDue(conversation_id=uuid))
        assert tree.due.next_turns == 1
        assert tree.due.enabled
        whole = await engine.request(FetchSummary(uuid=tree.nodes[0].uuid))
        assert whole.conversation_summary.startswith(tree.nodes[0].headline)
        assert all(node.title and node.created_at for node in tree.nodes)
        findings = await engine.request(FetchFindings(conversation_id=uuid))
        assert findings and all(finding.turns for finding in findings)
        lines = await engine.request(FetchTurnLines(conversation_id=uuid, first=7, last=9))
        assert [(line.turn_index, line.text[:22]) for line in lines] == [
            (7, "Tell me about harbour "),
            (8, "Tell me about harbour "),
        ]
        assert tree.topics
        places = await engine.request(FetchTopicPlaces(ref=tree.topics[0].name, conversation_id=uuid))
        assert {place.conversation_id for place in places} == {uuid}
        assert places[0].first in (1, 3, 5)
        with pytest.raises(NotFoundError):
            await engine.request(FetchSummary(uuid="nobody"))
        with pytest.raises(NotFoundError):
            await engine.request(FetchTopicPlaces(ref="no such topic", conversation_id=uuid))
        with pytest.raises(NotFoundError):
            await engine.request(FetchTree(conversation_id="nobody"))
    finally:
        await engine.close()


async def test_topics_of_others_unless_they_are_private(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded, summarization=FEW))
    try:
        ids = []
        for private in (False, False, True):
            conversation = await engine.agent.create_conversation()
            if private:
                store = await engine.agent.store()
                await store.conversations.update(conversation.record.uuid, private=True)
            await talk(conversation, server, 5)
            await conversation.memory.settle()
            ids.append(conversation.record.uuid)
        own = await engine.request(FetchTree(conversation_id=ids[0]))
        places = await engine.request(FetchTopicPlaces(ref=own.topics[0].uuid, conversation_id=ids[0]))
        found = [place.conversation_id for place in places]
        assert found[0] == ids[0]
        assert set(found) == set(ids[:2])
        assert len({(place.conversation_id, place.first) for place in places}) == len(places)
    finally:
        await engine.close()


async def test_every_request_of_a_turn(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded, summarization=SummarizationSettings(enabled=False)))
    try:
        conversation = await engine.agent.create_conversation()
        uuid = conversation.record.uuid
        await talk(conversation, server, 3)
        sent = await engine.request(FetchSent(conversation_id=uuid))
        assert (sent.record.turn_index, sent.number, sent.count, sent.last_turn) == (3, 1, 1, 3)
        assert sent.record.verified
        assert (await engine.request(FetchSent(conversation_id=uuid, turn_index=2, number=9))).number == 1
        assert not (await engine.request(FetchTree(conversation_id=uuid))).due.enabled
        branch = await engine.request(BranchConversation(conversation_id=uuid, turn_index=2))
        shared = await engine.request(FetchSent(conversation_id=branch.uuid, turn_index=1))
        assert (shared.record.turn_index, shared.last_turn) == (1, 2)
        with pytest.raises(NotFoundError):
            await engine.request(FetchSent(conversation_id=uuid, turn_index=4))
    finally:
        await engine.close()


async def test_what_an_answer_used_of_what_was_recalled(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded))
    try:
        first = await engine.agent.create_conversation("Labels")
        server.script([{"text": "Noted: 88 columns, the label printer cuts at 90."}])
        await first.send_message("The report is 88 columns wide because the label printer cuts at 90.")
        await first.memory.settle()
        second = await engine.agent.create_conversation("Another day")
        server.script([{"text": "88 columns, since the printer cuts there [Labels · t1]."}, {"text": "Hello."}])
        await second.send_message("How wide is the report for the label printer?")
        found = await engine.request(FetchWhy(conversation_id=second.record.uuid))
        assert [(item.kind, item.turn_index, item.title, item.used, item.reason) for item in found.items] == [
            ("turn", 1, "Labels", True, "cites t1")
        ]
        await second.send_message("Thanks!")
        assert (await engine.request(FetchWhy(conversation_id=second.record.uuid, turn_index=1))) == found
        with pytest.raises(NotFoundError):
            await engine.request(FetchWhy(conversation_id=second.record.uuid, turn_index=9))
    finally:
        await engine.close()
