"""The memory of a conversation as its agent uses it: contexts kept, recall, summaries, titles, switches."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import Conversation, ConversationAgent, memory
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.graph.store.other_conversations import OtherConversations, OtherTurn
from ragforge_tui.memory.context import builder, look_up, to_stored
from ragforge_tui.memory.context.sections import CLOSING, OPENING
from ragforge_tui.settings.schema import (
    EmbeddingSettings,
    Loaded,
    PersistenceSettings,
    RecallSettings,
    SummarizationSettings,
)
from ragforge_tui.shared.events import MemoryProgress, Notice, SummaryCreated, SummaryStarted, TurnsCondensed
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import EXTRACTIVE, ContextRecord, Message, now
from ragforge_tui.shared.requests.memory import FetchDue, FetchSent
from ragforge_tui.shared.requests.turns import OpenConversation
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_memory, with_model
from tests.support.fake_embedder import FakeEmbedder
from tests.support.model_script import Script
from tests.support.sizes import DIMENSION
from tests.support.turns import imported

SECRET = "The deploy key is kept in the vault called Bluebird."
SMALL = 6_000
"""Characters of context: a handful of turns fit."""
FEW = SummarizationSettings(every_turns=3, every_chars=100_000, keep_recent_turns=1, level_chars=600)


SUMMARY = {
    "when": "plain",
    "text": json.dumps(
        {
            "conversation_summary": "Harbours were told of.",
            "key_findings": [{"text": "A harbour has cranes.", "turns": [1]}],
            "topics": ["Harbours", "Piers"],
        }
    ),
}
"""What a model answers that is asked for a summary."""


def filler(n: int) -> str:
    return f"Tell me about harbour {n}. " + f"The harbour number {n} has cranes, ropes and tides. " * 8


async def talk(conversation: Conversation, server: Script, count: int, start: int = 1) -> None:
    server.script([{"text": f"Harbour {n} has two piers."} for n in range(start, start + count)])
    for n in range(start, start + count):
        await conversation.send_message(filler(n))


def block(server: Script) -> str:
    """The memory block of the last request, which stands before the question; empty when there was none."""
    asked: str = [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "user"][-1]
    before, closing, _ = asked.rpartition(CLOSING)
    return before[before.index(OPENING) :] + closing if closing else ""


async def test_old_turns_are_recalled_without_being_asked_for(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, max_context_chars=SMALL, summarization=FEW)) as agent:
        conversation = await agent.create_conversation()
        await talk(conversation, server, 3)
        server.script([{"text": "Noted."}])
        await conversation.send_message(SECRET)
        await talk(conversation, server, 14, start=4)
        await conversation.memory.settle()
        server.script([{"text": "In Bluebird."}])
        await conversation.send_message("Where is the deploy key kept?")
    messages = server.chats()[-1]["messages"]
    assert messages[-1]["content"] == f"{block(server)}\n\nWhere is the deploy key kept?"
    assert SECRET not in "".join(m["content"] for m in messages[:-1])
    assert SECRET in block(server)
    assert "[t4] " in block(server)
    assert "How this conversation began" in block(server) or "[t1] " in block(server)
    assert "What happened before, summarised" in block(server)


async def test_it_returns_after_a_restart_too(loaded: Loaded, server: Script) -> None:
    small = with_memory(loaded, max_context_chars=SMALL)
    async with ConversationAgent(small) as agent:
        conversation = await agent.create_conversation()
        server.script([{"text": "Noted."}])
        await conversation.send_message(SECRET)
        await talk(conversation, server, 12)
    async with ConversationAgent(small) as again:
        resumed = await again.load_conversation(conversation.record.uuid)
        server.script([{"text": "In Bluebird."}])
        await resumed.send_message("Where is the deploy key kept?")
    assert SECRET in block(server)


async def test_other_conversations_of_the_folder_are_recalled_with_their_name(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(loaded) as agent:
        earlier = await agent.create_conversation(title="Where things are")
        server.script([{"text": "Noted."}])
        await earlier.send_message(SECRET)
        await earlier.memory.settle()
        server.script([{"text": "In Bluebird."}, {"text": "Nowhere."}])
        later = await agent.create_conversation()
        await later.send_message("Where is the deploy key kept?")
        assert SECRET in block(server)
        assert f"in conversation {earlier.record.uuid[:8]} “Where things are”" in block(server)
        await (await agent.store()).conversations.update(earlier.record.uuid, private=True)
        another = await agent.create_conversation()
        await another.send_message("Where is the deploy key of the vault kept?")
        assert SECRET not in block(server)


@ONE_BACKEND
async def test_one_message_searches_other_conversations_once(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_only = with_memory(loaded, embeddings=EmbeddingSettings(enabled=False))
    async with ConversationAgent(words_only) as agent:
        earlier = await agent.create_conversation()
        server.script([{"text": "Noted."}, {"text": "Hello."}, {"text": "In Bluebird."}, {"text": "Nowhere."}])
        await earlier.send_message(SECRET)
        await earlier.memory.settle()
        later = await agent.create_conversation()
        await later.send_message("Hello there.")
        await later.memory.settle()
        asked: list[str] = []
        turns = OtherConversations.turns

        async def counted(self: OtherConversations, *arguments: Any, **options: Any) -> list[OtherTurn]:
            asked.append("others")
            return await turns(self, *arguments, **options)

        monkeypatch.setattr(OtherConversations, "turns", counted)
        await later.send_message("Where is the deploy key kept?")
        assert SECRET in block(server)
        assert len(asked) == 1
        await later.send_message("Where is the deploy key kept?")
        assert len(asked) == 2


async def test_scope_none_stays_within_the_conversation(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, recall=RecallSettings(scope="none"))) as agent:
        earlier = await agent.create_conversation()
        server.script([{"text": "Noted."}, {"text": "Nowhere."}])
        await earlier.send_message(SECRET)
        await earlier.memory.settle()
        later = await agent.create_conversation()
        await later.send_message("Where is the deploy key kept?")
    assert block(server) == ""


async def test_the_exact_request_can_be_shown(loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = InProcessEngine(with_memory(loaded, max_context_chars=SMALL, summarization=FEW))
    try:
        conversation = await engine.agent.create_conversation()
        await talk(conversation, server, 12)
        await conversation.memory.settle()
        server.script(
            [
                {"tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}]},
                {"text": "It greets."},
            ]
        )
        await conversation.send_message("What does greeting.py do?")
        uuid = conversation.record.uuid
        for turn in (1, 7, 13, 0):
            record = (await engine.request(FetchSent(conversation_id=uuid[:10], turn_index=turn))).record
            assert record.verified
            assert record.turn_index == (turn or 13)
            assert all(section.tokens == sum(item.tokens for item in section.items) for section in record.sections)
            asked = record.sections[-1]
            assert (asked.title, asked.items[0].turn_index) == ("Your message", turn or 13)
            before_past = ("system", "tools", "environment", "note", "message")
            past = sum(section.tokens for section in record.sections if section.name not in before_past)
            assert past == record.tokens and record.sent_tokens > past
        sent = server.chats()[-1]["messages"]
        sections = {section.name: section for section in record.sections}
        before = ("system", "tools", "environment", "past", "message")
        texts = [item.text for name, section in sections.items() if name not in before for item in section.items]
        assert texts
        assert all(text in block(server) for text in texts)
        parts = [item.text for item in record.sections[0].items]
        assert len(parts) == 4 and all(part in sent[0]["content"] for part in parts)
        # Looking again is not what was sent; the context of a turn to come can be asked for.
        built = await conversation.build_context("And the harbour?")
        assert built.render()[0] == sent[0]
        # Tomorrow the turns of today are told with their day.
        monkeypatch.setattr(builder, "now", lambda: now() + timedelta(days=1))
        built = await conversation.build_context("And the harbour?")
        (day,) = {item.title for item in built.sections[3].items if item.title}
        assert f"[{day}]" in [message["content"] for message in built.past]
        looked_up = msgspec.json.decode(to_stored(built).items, type=ContextRecord)
        assert (await look_up(looked_up, await engine.agent.store())).verified
    finally:
        await engine.close()


async def test_a_retried_turn_still_shows_what_an_earlier_request_held(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(loaded)
    try:
        conversation = await engine.agent.create_conversation()
        server.script([{"text": "one"}, {"text": "two"}])
        await conversation.send_message("first")
        await conversation.send_message("second")
        server.script([{"text": "two again", "reasoning": "Better."}, {"text": "three"}])
        await conversation.retry()
        await conversation.wait_idle()
        await conversation.send_message("third")
        for turn in (2, 3):
            record = (await engine.request(FetchSent(conversation_id=conversation.record.uuid, turn_index=turn))).record
            assert record.verified
        past = next(section for section in record.sections if section.name == "past")
        assert past.items[1].text == "second\nBetter.\ntwo again"
        assert [m.get("reasoning_content") for m in server.chats()[-1]["messages"] if m["role"] == "assistant"] == [
            None,
            "Better.",
        ]
    finally:
        await engine.close()


@pytest.mark.parametrize(("stuck_after", "turns"), [(0, 300), pytest.param(64, 1_000, marks=pytest.mark.slow)])
async def test_an_import_is_recalled_by_its_words_while_its_vectors_are_made(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch, stuck_after: int, turns: int
) -> None:
    """Bounded by construction: the model of vectors never answers again, not for the question either."""
    monkeypatch.setattr(LIMITS, "recall", 0.1)
    small = with_memory(loaded, max_context_chars=SMALL, summarization=SummarizationSettings(enabled=False))
    embedder = FakeEmbedder()
    embedder.stuck_after = stuck_after
    async with ConversationAgent(small) as agent:
        agent.services.memory.questions.model.embedder = embedder
        store = await agent.store()
        await record_embedding(store.graph, "", DIMENSION)
        talked = [(f"What of tide {n}?", f"Tide {n} is low.") for n in range(turns)]
        talked[turns - 150] = (SECRET, "Noted.")
        uuid = await imported(store, talked, workspace=str(agent.workspace))
        conversation = await agent.load_conversation(uuid)
        server.script([{"text": "Hello."}, {"text": "In Bluebird."}])
        try:
            with agent.subscribe() as events:
                await conversation.send_message("Hello again.")
                async with asyncio.timeout(120):
                    while turns - 149 not in conversation.memory.recall.index:
                        await asyncio.sleep(0.01)
                answer = await conversation.send_message("Where is the deploy key kept?")
                assert SECRET in block(server)
                assert answer.context_used is not None
                assert any("found by words" in sentence for sentence in answer.context_used.missing)
                # The turns that end meanwhile are remembered too, and how far it is can be seen.
                async with asyncio.timeout(120):
                    while conversation.memory.recall.progress() != (stuck_after, turns + 2):
                        await asyncio.sleep(0.01)
                await asyncio.sleep(2 * memory.PROGRESS_SECONDS)
                emitted = [events.get_nowait() for _ in range(events.qsize())]
            to_do, all_turns = turns + 2 - stuck_after, turns + 2
            left = f"Vectors of {counted(to_do)} of {counted(all_turns)} turns are still being made: found by words."
            assert conversation.memory.recall.left() == left
            assert left in [event.left for event in emitted if isinstance(event, MemoryProgress)]
            said = [event.text for event in emitted if isinstance(event, Notice)]
            assert [text for text in said if "for search by meaning" in text]
        finally:
            await record_embedding(store.graph, "", DIMENSION)
            await agent.close(settle_seconds=0.0)


async def test_extracts_are_written_again_by_a_model_that_is_free(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        conversation = await agent.create_conversation(title="Mine")
        await talk(conversation, server, 8)
        await conversation.memory.settle()
        store, uuid = await agent.store(), conversation.record.uuid
        assert {s.made_by for s in await store.summaries.of(uuid)} == {EXTRACTIVE}
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as again:
        resumed = await again.load_conversation(uuid)
        server.script([SUMMARY] * 40)
        resumed.memory.start()
        async with asyncio.timeout(120):
            while EXTRACTIVE in {s.made_by for s in resumed.memory.summaries} or not resumed.memory.summaries:
                await resumed.memory.settle()
                await asyncio.sleep(0.1)
                if not resumed.memory._upgrades.running:
                    resumed.memory._due.ask()
        stored = await (await again.store()).summaries.of(uuid)
        assert {s.made_by for s in stored} == {"openai/scripted"}


@ONE_BACKEND
async def test_a_model_that_failed_is_left_alone_for_a_while(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Five turns may take a minute where much else runs.
    monkeypatch.setattr(CONVERSATION, "first_pause", 3_600.0)
    monkeypatch.setattr(CONVERSATION, "longest_pause", 3_600.0)

    def plain() -> int:
        return len([body for body in server.chats() if not body.get("tools")])

    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        backoff = agent.services.memory.backoff
        conversation = await agent.create_conversation(title="Mine")
        backoff.failed()
        await talk(conversation, server, 5)
        await conversation.memory.settle()
        store, uuid = await agent.store(), conversation.record.uuid
        assert (await store.summaries.of(uuid), plain()) == ([], 0)
        # Given up for now: extracts stand in, and the model is still not asked.
        backoff.failed()
        backoff.failed()
        await talk(conversation, server, 1, start=6)
        await conversation.memory.settle()
        assert ({s.made_by for s in await store.summaries.of(uuid)}, plain()) == ({EXTRACTIVE}, 0)


@ONE_BACKEND
async def test_a_title_made_without_the_model_is_made_again_by_it(loaded: Loaded, server: Script) -> None:
    off = with_memory(loaded, summarization=SummarizationSettings(enabled=False))
    async with ConversationAgent(off) as agent:
        conversation = await agent.create_conversation()
        agent.services.memory.backoff.failed()
        server.script([{"text": "Hi."}])
        await conversation.send_message("Hello there. And how deep is it?\nMore of this.")
        await conversation.memory.settle()
        assert conversation.record.title == "And how deep is it?"
        agent.services.memory.backoff.succeeded()
        for title in ("Depth of the harbour", "Not this"):
            server.script([{"text": "Deep."}, {"when": "plain", "text": title}])
            await conversation.send_message("Well?")
            await conversation.memory.settle()
            # The model's own stays.
            assert conversation.record.title == "Depth of the harbour"


async def test_summaries_are_made_behind_the_prompt_and_given(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded, summarization=FEW))
    try:
        conversation = await engine.agent.create_conversation()
        with engine.agent.subscribe() as events:
            await talk(conversation, server, 8)
            await conversation.memory.settle()
        told = [events.get_nowait() for _ in range(events.qsize())]
        started = [(e.level, e.start_turn_index) for e in told if isinstance(e, SummaryStarted)]
        created = [(e.summary.level, e.summary.start_turn_index) for e in told if isinstance(e, SummaryCreated)]
        assert created
        assert set(created) <= set(started)
        summaries = await (await engine.agent.store()).summaries.of(conversation.record.uuid)
        assert [(s.level, s.start_turn_index) for s in summaries if s.level == 1] == sorted(
            place for place in created if place[0] == 1
        )
        assert conversation.record.summary
        assert (await engine.request(FetchDue(conversation_id=conversation.record.uuid))).behind == ""
        # No model wrote them here: the server answers requests without tools with nothing of use.
        assert {s.made_by for s in summaries} == {"extractive"}
    finally:
        await engine.close()


async def test_summaries_that_were_due_are_made_when_the_conversation_is_opened_again(
    loaded: Loaded, server: Script
) -> None:
    off = with_memory(loaded, summarization=SummarizationSettings(enabled=False))
    async with ConversationAgent(off) as agent:
        conversation = await agent.create_conversation()
        await talk(conversation, server, 8)
        assert await (await agent.store()).summaries.of(conversation.record.uuid) == []
    engine = InProcessEngine(with_memory(loaded, summarization=FEW), interactive=True)
    try:
        await engine.request(OpenConversation(ref=conversation.record.uuid))
        resumed = engine.agent.opened(conversation.record.uuid)
        assert resumed is not None
        await resumed.memory.settle()
        assert resumed.memory.summaries
    finally:
        await engine.close()


@ONE_BACKEND
async def test_the_title_is_the_models_unless_the_user_gave_one(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(loaded) as agent:
        server.script([{"text": "Hi."}, {"when": "plain", "text": '"Greeting the harbour"'}])
        conversation = await agent.create_conversation()
        await conversation.send_message("hello there, harbour")
        await conversation.memory.settle()
        assert conversation.record.title == "Greeting the harbour"
        named = await agent.create_conversation(title="Mine")
        server.script([{"text": "Hi."}, {"when": "plain", "text": "Not this"}])
        await named.send_message("hello there, harbour")
        await named.memory.settle()
        assert named.record.title == "Mine"
        stored = await (await agent.store()).conversations.get(conversation.record.uuid)
        assert stored.title == "Greeting the harbour"


async def test_switched_off_only_the_newest_messages_are_sent_and_search_still_finds(
    loaded: Loaded, server: Script
) -> None:
    async with ConversationAgent(
        with_memory(loaded, enabled=False, max_context_chars=SMALL, summarization=FEW)
    ) as agent:
        conversation = await agent.create_conversation()
        server.script([{"text": "Noted."}])
        await conversation.send_message(SECRET)
        await talk(conversation, server, 16)
        await conversation.memory.settle()
        store = await agent.store()
        assert await store.summaries.of(conversation.record.uuid) == []
        assert [hit.turn_index for hit in await store.search.turns("Bluebird")] == [1]
    body = server.chats()[-1]
    assert SECRET not in str(body["messages"])
    assert not {"search_history", "open_turn"} & {tool["function"]["name"] for tool in body["tools"]}
    assert body["messages"][-1]["content"].startswith("Tell me about harbour 16")


async def test_without_auto_save_text_is_stored_when_it_is_whole(loaded: Loaded, server: Script) -> None:
    whole = with_memory(loaded, persistence=PersistenceSettings(auto_save=False))
    server.script([{"text": "one two three four five six", "chunk": 4, "gate": "go", "gate_at": 3}])
    async with ConversationAgent(whole) as agent:
        conversation = await agent.create_conversation(title="Mine")
        store = await agent.store()
        await conversation.submit("count")

        async def stored() -> Message | None:
            turns = await store.turns.between(conversation.record.uuid, start=1, end=2)
            return next((m for turn in turns for m in turn.messages if m.role == "assistant"), None)

        async with asyncio.timeout(60):
            while (first := await stored()) is None:
                await asyncio.sleep(0.05)
            while (later := await stored()) is None or later.lease_until == first.lease_until:
                await asyncio.sleep(0.05)
        assert (later.state, later.content) == ("streaming", "")
        server.release("go")
        await conversation.wait_idle()
        done = await stored()
        assert done is not None
        assert (done.state, done.content) == ("complete", "one two three four five six")


@ONE_BACKEND
async def test_summaries_are_written_by_the_model_that_is_set_for_them(loaded: Loaded, server: Script) -> None:
    own = msgspec.structs.replace(FEW, model="openai/for-summaries")
    async with ConversationAgent(with_memory(loaded, summarization=own)) as agent:
        conversation = await agent.create_conversation(title="Mine")
        # Due after the third turn: a request that the fourth interrupts has taken an answer.
        server.script([*[SUMMARY] * 4, *[{"text": f"Pier {n}."} for n in range(4)]])
        for n in range(4):
            await conversation.send_message(filler(n))
        await conversation.memory.settle()
        made = await (await agent.store()).summaries.of(conversation.record.uuid)
        assert made[0].made_by == "openai/for-summaries"
    asked = [request.body for request in server.requests if request.path.endswith("/chat/completions")]
    by_model = {body["model"]: bool(body.get("tools")) for body in asked}
    assert by_model == {"scripted": True, "for-summaries": False}


@ONE_BACKEND
async def test_a_summary_gives_way_to_a_turn_and_is_written_after_it(loaded: Loaded, server: Script) -> None:
    """The scripted server is on this machine, as a local model is: that might answer one request after another."""
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        conversation = await agent.create_conversation(title="Mine")
        server.script([{"when": "plain", "stall": True}, SUMMARY, *[{"text": f"Pier {n}."} for n in range(5)]])
        for n in range(4):
            await conversation.send_message(filler(n))
        async with asyncio.timeout(60):
            while len(server.requests) < 5:
                await asyncio.sleep(0.02)
        assert (await conversation.send_message(filler(5))).content == "Pier 4."
        async with asyncio.timeout(60):
            await conversation.memory.settle()
        made = await (await agent.store()).summaries.of(conversation.record.uuid)
        assert made[0].made_by == "openai/scripted"


async def test_a_summary_that_is_due_is_written_before_its_turns_are_cut(
    loaded: Loaded, server: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is busy with turns, as a local one is, so the summary is extracted; the model may rewrite it later."""
    small = with_memory(loaded, max_context_chars=SMALL, summarization=FEW)
    async with ConversationAgent(with_model(small, first_token_timeout=600.0)) as agent:
        conversation = await agent.create_conversation(title="Mine")
        server.script([*[{"when": "plain", "stall": True}] * 12, *[{"text": f"Answer {n}."} for n in range(12)]])
        with agent.subscribe() as events:
            for n in range(12):
                await conversation.send_message(filler(n))
                await conversation.memory.ready()
            told = [events.get_nowait() for _ in range(events.qsize())]
        assert "## What happened before, summarised" in block(server)
        assert "turns are cut before" not in caplog.text, "background work is not held back by the turn that needs it"
        # The user is told once for each summary that takes the place of turns, and not with each message.
        condensed = [event for event in told if isinstance(event, TurnsCondensed)]
        assert condensed and len(condensed) <= len(conversation.memory.summaries)
        assert [event.last_turn for event in condensed] == sorted({event.last_turn for event in condensed})
        assert 1 <= condensed[-1].last_turn < 12 and condensed[-1].summaries >= 1
        assert {summary.made_by for summary in conversation.memory.summaries} == {EXTRACTIVE}
        await agent.close(settle_seconds=0.0)


@ONE_BACKEND
async def test_quitting_waits_for_no_summary_and_the_next_start_makes_it(loaded: Loaded, server: Script) -> None:
    patient = with_model(with_memory(loaded, summarization=FEW), first_token_timeout=600.0)
    async with ConversationAgent(patient) as agent:
        conversation = await agent.create_conversation(title="Mine")
        server.script([{"when": "plain", "stall": True}, *[{"text": f"Answer {n}."} for n in range(4)]])
        for n in range(4):
            await conversation.send_message(filler(n))
        async with asyncio.timeout(60):
            while len(server.requests) < 5:
                await asyncio.sleep(0.02)
            # It would wait ten minutes otherwise.
            await agent.close(settle_seconds=600.0, summaries=False)
    async with ConversationAgent(patient) as again:
        server.script([SUMMARY])
        resumed = await again.load_conversation(conversation.record.uuid)
        await resumed.memory.ready()
        await resumed.memory.settle()
        assert [one.made_by for one in resumed.memory.summaries] == ["openai/scripted"]


@ONE_BACKEND
async def test_a_stalled_summary_delays_no_turn(loaded: Loaded, server: Script) -> None:
    patient = with_model(with_memory(loaded, summarization=FEW), first_token_timeout=600.0)
    async with ConversationAgent(patient) as agent:
        conversation = await agent.create_conversation(title="Mine")
        server.script([{"when": "plain", "stall": True}, *[{"text": f"Answer {n}."} for n in range(6)]])
        for n in range(6):
            async with asyncio.timeout(60):
                await conversation.send_message(filler(n))
        await agent.close(settle_seconds=0.0)


@ONE_BACKEND
async def test_a_failing_embedding_model_is_reported_once_and_words_find(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, max_context_chars=SMALL)) as agent:
        embedder = FakeEmbedder()
        embedder.broken = True
        agent.services.memory.questions.model.embedder = embedder
        await record_embedding((await agent.store()).graph, "", DIMENSION)
        conversation = await agent.create_conversation()
        server.script([{"text": "Noted."}])
        try:
            with agent.subscribe() as events:
                await conversation.send_message(SECRET)
                await talk(conversation, server, 4)
                await conversation.memory.settle()
                emitted = [events.get_nowait() for _ in range(events.qsize())]
            told = [event.text for event in emitted if isinstance(event, Notice)]
            assert sum("embedding model is away" in text for text in told) == 1
            found = await conversation.memory.recall.recall("Where is the deploy key kept?")
            assert SECRET in found.text
            embedder.broken = False
            server.script([{"text": "It is."}])
            await conversation.send_message("Is it still Bluebird?")
            await conversation.memory.settle()
            assert conversation.memory.recall.reason == ""
            assert any(SECRET in text for text in embedder.texts)
        finally:
            await record_embedding((await agent.store()).graph, "", DIMENSION)
