"""Findings through the engine: noted at once, closed by word, by edits and by the summariser, then not sent again."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.settings.schema import Loaded, SummarizationSettings
from ragforge_tui.shared.records import Conversation as Record
from ragforge_tui.shared.requests.memory import FetchFindings
from ragforge_tui.shared.requests.past import ListInsights, MakeInsights, PastChoice
from ragforge_tui.shared.requests.turns import OpenConversation
from tests.support.agents import with_memory
from tests.support.model_script import Script
from tests.support.waiting import until

FEW = SummarizationSettings(every_turns=2, every_chars=100_000, keep_recent_turns=1, level_chars=100_000)
POINT = "naturaltime and precisedelta still raise OverflowError for huge values"
SPARE = "The locale files are complete."


def summary(**fields: Any) -> dict[str, Any]:
    """What a model answers that is asked for a summary."""
    told = {
        "conversation_summary": f"The library was reviewed. Still open: {POINT}.",
        "key_findings": [
            {"kind": "open", "text": POINT, "turns": [1]},
            {"kind": "fact", "text": SPARE, "turns": [2]},
        ],
        "topics": [],
    }
    return {"when": "plain", "text": json.dumps(told | fields)}


async def said(conversation: Conversation, server: Script, asked: str, *steps: dict[str, Any]) -> None:
    server.script([*steps, {"text": "Very well."}])
    await conversation.send_message(asked)
    await conversation.memory.settle()


def sent(server: Script) -> str:
    return json.dumps([message["content"] for message in server.chats()[-1]["messages"]])


async def states(agent: ConversationAgent, record: Record) -> dict[str, str]:
    store = await agent.store()
    return {one.text: one.state for one in await store.findings.of_conversation(record.uuid)}


async def reviewed(agent: ConversationAgent, server: Script) -> Conversation:
    """A conversation whose summary, by a model, leaves a point open."""
    conversation = await agent.create_conversation(title="Review of humanize")
    for asked in ("Review the library for overflows.", "And the locale files?", "Thank you, that is all."):
        await said(conversation, server, asked, summary())
    assert (await states(agent, conversation.record)).get(POINT) == "open"
    return conversation


async def test_a_fixed_point_is_never_sent_as_open_again(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        first = await reviewed(agent, server)
        before = await agent.create_conversation()
        await said(before, server, "Add tests for naturaltime and precisedelta.")
        assert f"still open: {POINT}" in sent(server)
        await said(first, server, "naturaltime and precisedelta no longer raise OverflowError for huge values.")
        assert (await states(agent, first.record))[POINT] == "done"
        later = await agent.create_conversation()
        await said(later, server, "Add tests for naturaltime and precisedelta.")
        assert f"still open: {POINT}" not in sent(server)
        assert f"Still open: {POINT}" not in sent(server)
        # Asked for the past, it is told with what became of it.
        await said(later, server, "What did we decide about naturaltime and OverflowError, what was left open?")
        assert f"was open: {POINT} (done on" in sent(server)


async def test_an_edit_with_its_passed_test_closes_a_point(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, summarization=FEW), approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await said(conversation, server, "TODO: `greet_all` in greeting.py loses the last name.")
        content = "def greet_all(names): ...  # with the last name"
        edit = {"name": "write_file", "arguments": {"path": "greeting.py", "content": content}}
        test = {"name": "run_command", "arguments": {"command": f"{shlex.quote(sys.executable)} -m pytest --version"}}
        asked = "Repair greet_all, it loses the last name."
        await said(conversation, server, asked, {"tool_calls": [edit]}, {"tool_calls": [test]})
        store = await agent.store()
        [point] = await store.findings.of_conversation(conversation.record.uuid)
        assert point.state == "done"
        assert point.closed_by == "t2: edited greeting.py; tests passed"
        assert point.files == ["greeting.py"]


async def test_the_summariser_closes_and_replaces_what_it_was_shown(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        first = await reviewed(agent, server)
        await said(first, server, "Decision: amounts are stored as floats.")
        changes = summary(
            conversation_summary="Both functions were mended; amounts are now decimals.",
            key_findings=[{"kind": "decision", "text": "Amounts are stored as decimals.", "turns": [5]}],
            closes=[{"known": 2, "turn": "t5"}, 99],
            replaces=[{"known": 1, "finding": 1}],
        )
        await said(first, server, "Both catch it, and the amounts that were stored as floats became decimals.")
        # Extracts of earlier turns are rewritten too, by the same answer.
        await said(first, server, "Good, the review goes on.", *[changes] * 6)

        async def changed() -> bool:
            return (await states(agent, first.record))["amounts are stored as floats."] != "valid"

        await until(changed)
        asked = [text for request in server.requests if "Known so far" in (text := json.dumps(request.body))]
        known = ("1: decision (t4): amounts are stored as floats.", f"2: open point (t1): {POINT}")
        assert any(all(point in text for point in known) for text in asked)
        found = await states(agent, first.record)
        assert found[POINT] == "done"
        assert found["amounts are stored as floats."] == "replaced"
        assert found["Amounts are stored as decimals."] == "valid"


async def test_decisions_are_noted_at_once_and_lead_on(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_memory(loaded, summarization=SummarizationSettings(every_turns=50)))
    try:
        conversation = await engine.agent.create_conversation(title="Sessions")
        uuid = conversation.record.uuid
        await engine.request(OpenConversation(ref=uuid))
        await said(conversation, server, "Decision: the worker waits 30 seconds before it retries.")
        await said(conversation, server, "Decision: the worker waits 60 seconds before it retries.")
        shown = await engine.request(FetchFindings(conversation_id=uuid))
        assert [(one.text, bool(one.became), one.leads_turn) for one in shown] == [
            ("the worker waits 60 seconds before it retries.", False, 0),
            ("the worker waits 30 seconds before it retries.", True, 2),
        ]
        await engine.request(MakeInsights(choice=PastChoice()))
        [entry] = await engine.request(ListInsights(choice=PastChoice()))
        points = [*entry.key_findings, *entry.action_items]
        gone = {points[at].text: one.leads_turn for at, one in entry.gone.items()}
        assert all("30 seconds" in text and turn == 2 for text, turn in gone.items())
    finally:
        await engine.close()


async def test_a_private_conversation_changes_nothing_elsewhere(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(with_memory(loaded, summarization=FEW)) as agent:
        first = await reviewed(agent, server)
        private = await agent.create_conversation(title="Private")
        await (await agent.store()).conversations.update(private.record.uuid, private=True)
        private.record.private = True
        await said(private, server, "naturaltime and precisedelta no longer raise OverflowError for huge values.")
        await said(private, server, "Decision: the vault is called Bluebird.")
        assert (await states(agent, first.record))[POINT] == "open"
        store = await agent.store()
        assert "Bluebird" not in str(await store.findings.of_folder(first.record.workspace))
