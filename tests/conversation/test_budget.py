"""Limits on cost: the arithmetic, the question, and the turn that stops with what came stored."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.conversation.approvals.rules import Rules
from ragforge_tui.conversation.budget import CostDeclined, CostStopped, Limit, SessionBudget, TurnBudget
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalDecision, CostLimitReached, Event, Notice, TurnCancelled, TurnFailed
from ragforge_tui.shared.records import Turn, Usage
from ragforge_tui.tools.sensitive import Guard
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_model
from tests.support.model_script import Script
from tests.support.records import message

RULES = Rules(Guard(Path.cwd()))
READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}
PRICED = {"prompt_tokens": 2_000, "completion_tokens": 20, "cost_usd": 0.01}
TURN = Turn(turn_index=1, messages=[message("x")])


def test_a_limit_counts_the_next_request_as_the_last() -> None:
    limit = Limit(1.0)
    assert not limit.reached
    limit.note(0.5)
    assert not limit.reached, "0.50 more is exactly the limit"
    limit.note(0.4)
    assert limit.reached
    assert limit.raised == 2.0
    limit.note(3.0)
    assert limit.raised == 7.0
    free = Limit(None)
    free.note(1e9)
    assert not free.reached


class Person:
    """Approvals with somebody who answers from a list."""

    def __init__(self, *decisions: ApprovalDecision) -> None:
        self.decisions = list(decisions)
        self.approvals = Approvals(rules=RULES)
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, CostLimitReached):
            self.approvals.answer(event.approval_id, self.decisions.pop(0))

    def turn(self, budget: SessionBudget) -> TurnBudget:
        return TurnBudget(budget, self.approvals, self.emit, TURN)


def paid(dollars: float) -> Usage:
    return Usage(input_tokens=10, cost_usd=dollars)


async def test_once_more_then_raised_then_stopped() -> None:
    person, budget = Person("once", "session", "no"), SessionBudget(1.0, None)
    turn = person.turn(budget)
    await turn.before_request()
    turn.note(paid(0.6), "m")
    await turn.before_request()
    turn.note(paid(0.3), "m")
    await turn.before_request()
    assert len(person.decisions) == 1
    turn.note(paid(0.3), "m")
    await turn.before_request()
    assert budget.turn_limit == 2.0
    assert person.turn(budget)._turn.dollars == 2.0
    turn.note(paid(0.9), "m")
    with pytest.raises(CostDeclined):
        await turn.before_request()


async def test_the_session_goes_over_all_turns() -> None:
    person, budget = Person("no"), SessionBudget(None, 1.0)
    first = person.turn(budget)
    first.note(paid(0.6), "m")
    with pytest.raises(CostDeclined):
        await person.turn(budget).before_request()
    nobody = TurnBudget(budget, Approvals(rules=RULES, interactive=False), person.events.append, TURN)
    with pytest.raises(CostStopped, match=r"model\.max_session_cost"):
        await nobody.before_request()


async def test_an_unknown_price_is_reported_once() -> None:
    person = Person()
    turn = person.turn(SessionBudget(1.0, None))
    turn.note(Usage(input_tokens=5), "m")
    turn.note(Usage(input_tokens=5), "m")
    turn.note(None, "m")
    assert [type(event) for event in person.events] == [Notice]
    unlimited = person.turn(SessionBudget(None, None))
    unlimited.note(Usage(input_tokens=5), "m")
    assert len(person.events) == 1


@ONE_BACKEND
async def test_a_turn_no_one_watches_stops_with_what_came_stored(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "I look.", "tool_calls": [READ], "usage": PRICED}, {"text": "never sent"}])
    loaded = with_model(loaded, max_cost=1e-9)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("look")]
        end = seen[-1]
        assert isinstance(end, TurnFailed) and end.error.kind == "max_cost"
        assert "model.max_cost" in end.error.sentence()
        asked = [event for event in seen if isinstance(event, CostLimitReached)]
        assert [event.scope for event in asked] == ["turn"]
        assert msgspec.json.decode(msgspec.json.encode(asked[0]), type=Event) == asked[0]
        (turn,) = await conversation.get_history()
        assert (turn.messages[1].content, turn.messages[1].state) == ("I look.", "failed")
        assert turn.messages[1].tool_calls[0].success
    assert len(server.chats()) == 1


@ONE_BACKEND
async def test_a_no_stops_the_turn_as_escape_does(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "I look.", "tool_calls": [READ], "usage": PRICED}, {"text": "never sent"}])
    loaded = with_model(loaded, max_session_cost=1e-9)
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        for text in ("look", "again"):  # the second is stopped before its first request
            async for event in conversation.stream(text):
                if isinstance(event, CostLimitReached):
                    agent.services.approvals.answer(event.approval_id, "no")
            assert isinstance(event, TurnCancelled)
        replies = [turn.messages[-1] for turn in await conversation.get_history()]
    assert [(reply.content, reply.state, reply.error) for reply in replies] == [
        ("I look.", "interrupted", ""),
        ("", "interrupted", ""),
    ]
    assert replies[0].tool_calls[0].success
    assert len(server.chats()) == 1
