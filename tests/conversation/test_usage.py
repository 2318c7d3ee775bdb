"""What requests to models took: counted by the provider, stored with each reply, added up, and divided by cause."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import Graph, Store
from ragforge_tui.memory.context.sections import BEFORE_PAST, PAST_SECTION
from ragforge_tui.memory.spending import causes
from ragforge_tui.memory.spending.causes import Causes
from ragforge_tui.memory.spending.sent_parts import Piece, SentParts, read_parts
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection, Message, Usage, now
from ragforge_tui.shared.usage_records import GROUPINGS, SpentRequest, UsageReport, UsageRow
from tests.support.agents import with_model
from tests.support.openai_server import OpenAIServer
from tests.support.records import conversation, message
from tests.support.waiting import PATIENCE

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}


def counted(sent: int, received: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """What a provider counts for one request."""
    return {
        "prompt_tokens": sent,
        "completion_tokens": received,
        "total_tokens": sent + received,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def named(report: UsageReport) -> dict[str, UsageRow]:
    return {row.name: row for row in report.rows}


async def imported_talk(store: Store, reply: Message) -> str:
    """A session of another agent, whose replies have counts of their own."""
    record = conversation(tags=["from:claude-code"])
    await store.conversations.create(record)
    asked = await store.messages.begin_turn(message(record.uuid, content="Hello"))
    given = {"uuid": str(uuid4()), "conversation_id": record.uuid, "turn_index": 1}
    await store.messages.add(msgspec.structs.replace(reply, **given), asked.uuid)
    return record.uuid


@pytest.mark.http
async def test_a_held_conversation_is_added_up(graph: Graph, loaded: Loaded, server: OpenAIServer) -> None:
    delegate = {"name": "delegate", "arguments": {"kind": "search", "task": "find alpha"}}
    server.script(
        [
            {"match": "Survey", "status": 503, "message": "busy"},
            {"match": "Survey", "tool_calls": [delegate], "usage": counted(20_000, 100, reasoning=40)},
            {"match": "find alpha", "text": "Alpha is in greeting.py.", "usage": counted(9_000, 30)},
            {"match": "Survey", "text": "One.", "usage": counted(20_500, 200, cached=20_000)},
            {"match": "Again", "tool_calls": [READ], "usage": counted(21_000, 50, cached=5_000)},
            {"match": "Again", "text": "Two.", "usage": counted(22_000, 60, cached=21_000)},
            {"match": "Again", "text": "Three.", "usage": counted(21_000, 60, cached=21_000)},
        ]
    )
    async with ConversationAgent(with_model(loaded, retries=2), approve_all=True) as agent:
        talk = await agent.create_conversation()
        answer = await talk.send_message("Survey the code.")
        assert answer.usage.reasoning_tokens == 40
        await talk.send_message("Again")
        await talk.retry()
        await talk.memory.settle()
        uuid = talk.record.uuid
        async with asyncio.timeout(PATIENCE):  # The last answer's tokens are stored behind the answer.
            while (await agent.past.usage("day")).total.cached_tokens < 67_000:
                await asyncio.sleep(0.05)
        reports = {by: await agent.past.usage(by) for by in GROUPINGS}
        of_this = await agent.past.usage("model", conversation_id=uuid)
        elsewhere = await agent.past.usage("model", workspace="/elsewhere")
        later = await agent.past.usage("cause", since=now() + timedelta(days=1))
        assert await Store(graph).spending.requests(None) == await Store(graph).spending.requests(START)
        reply = Message(uuid="r", conversation_id="i", role="assistant", model="theirs", timestamp=now())
        reply.usage = Usage(input_tokens=50_000)
        talked = await imported_talk(Store(graph), reply)
        assert await agent.past.usage("cause") == reports["cause"]
        theirs = {row.name: row.input_tokens for row in (await agent.past.usage("persona")).rows}
        assert theirs["(claude-code)"] == 50_000
        await agent.delete_conversation(talked, immediately=True)
        await agent.delete_conversation(uuid, immediately=True)
        gone = await agent.past.usage("day")
    total = reports["day"].total
    assert all(report.total == total for report in reports.values())
    assert of_this.rows == reports["model"].rows and of_this.rows[0].name == "openai/scripted"
    assert not elsewhere.rows and not later.rows and not gone.rows
    by_cause = named(reports["cause"])
    background = by_cause["titles"]
    assert background.requests >= 1 and background.group == causes.BACKGROUND
    sent = 20_000 + 9_000 + 20_500 + 21_000 + 22_000 + 21_000
    in_turns = total.input_tokens - sum(r.input_tokens for r in by_cause.values() if r.group == causes.BACKGROUND)
    assert in_turns == sent and total.cached_tokens == 67_000 and total.reasoning_tokens == 40
    assert sum(row.input_tokens for row in by_cause.values() if row.group == causes.PARTS) == pytest.approx(
        sent, abs=60
    )
    assert by_cause["Tools"].input_tokens > 1_000
    assert by_cause["in the same turn"].input_tokens == 400 + 950
    assert by_cause["tasks given to helpers"].input_tokens == 9_000
    assert by_cause["sent again after a failure"].retries == 1
    assert by_cause["answers replaced by /retry"].requests == 2
    (missed,) = [row for row in reports["cause"].rows if row.group == causes.MISSES]
    assert (missed.name, missed.input_tokens) == ("a new message moves the memory looked up for it", 15_500)


def reply(turn: int, sent: int, *, cached: int = 0, minutes: float = 0, **fields: Any) -> SpentRequest:
    values: dict[str, Any] = {"model": "m", "context": f"x{turn}", "conversation_id": "c", **fields}
    when = START + timedelta(minutes=minutes or turn)
    usage = Usage(input_tokens=sent, output_tokens=10, cached_tokens=cached)
    return SpentRequest(turn_index=turn, timestamp=when, usage=usage, **values)


def sent_parts(*turns: tuple[int, int, str], tools: str = "a") -> SentParts:
    """Parts of a request with tools and past turns: index, tokens and form of each."""
    return SentParts(
        sections=[("Tools", 1_000), ("Earlier turns, word for word", sum(tokens for _, tokens, _ in turns))],
        past=[(turn, tokens) for turn, tokens, _ in turns],
        pieces=[Piece("tools", "Tools", (tools,)), *(Piece("past", "", (turn, form)) for turn, _, form in turns)],
    )


def test_every_section_before_the_past_is_a_part() -> None:
    names = [*BEFORE_PAST, PAST_SECTION]
    sections = [
        ContextSection(name=name, title=name, tokens=1, items=[ContextItem(kind="note", text=name)]) for name in names
    ]
    record = ContextRecord(conversation_id="c", turn_index=1, created_at=START, sections=sections)
    (parts,) = read_parts({"x": msgspec.json.encode(record).decode()}).values()
    assert sorted(piece.section for piece in parts.pieces) == sorted(names)
    assert (parts.pieces[0].section, parts.pieces[-1].section) == ("tools", PAST_SECTION)


@pytest.mark.parametrize(
    ("why", "change", "later"),
    [
        ("another model was asked", {"model": "n"}, sent_parts((1, 5_000, "whole"))),
        ("changed: Tools", {}, sent_parts((1, 5_000, "whole"), tools="b")),
        ("a pause of more than five minutes", {"minutes": 30}, sent_parts((1, 5_000, "short"))),
        ("earlier turns were shortened or left out", {}, sent_parts((1, 5_000, "short"))),
        ("a new message moves the memory looked up for it", {}, sent_parts((1, 5_000, "whole"), (2, 5_000, "whole"))),
    ],
)
def test_why_a_cache_was_missed(why: str, change: dict[str, Any], later: SentParts) -> None:
    requests = [reply(2, 8_000, cached=4_000), reply(3, 9_000, cached=1_000, **change)]
    parts = {"x2": sent_parts((1, 5_000, "whole")), "x3": later}
    (row,) = [row for row in Causes(requests, parts, None).rows() if row.group == causes.MISSES]
    assert (row.name, row.input_tokens) == (why, 7_000)


def test_a_provider_without_a_cache_misses_nothing() -> None:
    rows = Causes([reply(1, 9_000), reply(2, 9_000)], {}, None).rows()
    assert not [row for row in rows if row.group == causes.MISSES]


def test_results_are_followed_through_later_turns() -> None:
    turn = [reply(1, 2_000), reply(1, 12_010)]  # ten tokens of reply, ten thousand of results
    later = [reply(2, 13_000), reply(4, 13_500), reply(9, 14_000)]
    parts = {"x1": sent_parts(), **{f"x{n}": sent_parts((1, 11_030, "whole")) for n in (2, 4, 9)}}
    rows = {row.name: row for row in Causes([*turn, *later], parts, None).rows() if row.group == causes.RESULTS}
    assert rows["in the same turn"].input_tokens == 10_000
    assert all(rows[age].requests == 1 for age in rows)
    later_ones = ("one turn later", "two to four turns later", "five turns later and more")
    assert [rows[age].input_tokens for age in later_ones] == [10_000] * 3
    since = Causes([*turn, *later], parts, START + timedelta(minutes=9)).rows()
    assert [row.name for row in since if row.group == causes.RESULTS] == ["five turns later and more"]
