"""Commits, files and open points of a stretch of turns, from real calls."""

from __future__ import annotations

import json

import msgspec

from ragforge_tui.graph.store.activity import ActiveTurns
from ragforge_tui.memory.past.standup import _work
from ragforge_tui.shared.records import Commit, Finding, ToolResult, Turn, now
from tests.memory.test_insights import insight_of, planned, talked
from tests.support.records import call_of
from tests.support.stored_memory import summary
from tests.support.turns import turn_of


def committed(index: int, *commits: Commit) -> Turn:
    """A turn that ran a command, which made these commits."""
    turn = turn_of("c", index, "Commit it.", "Committed.")
    call = call_of(turn.messages[1].uuid, tool_name="run_command", arguments=json.dumps({"command": "git commit"}))
    text = json.dumps({"text": "", "commits": msgspec.to_builtins(commits)})
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result=text, timestamp=now())
    turn.messages[1].tool_calls = [call]
    return turn


def active(first: int, last: int) -> ActiveTurns:
    moment = now()
    return ActiveTurns(conversation=talked(), first=first, last=last, started=moment, ended=moment)


def test_commits_are_those_of_the_commands() -> None:
    first = Commit(hash="1a2b3c4d5e", subject="store: one retry", committed_at=now())
    second = Commit(hash="9f8e7d6c5b", subject="tests: first", committed_at=now())
    work = _work(active(1, 3), [committed(1, first), committed(2), committed(3, second, first)], [], None)
    assert work.commits == ["1a2b3c4d store: one retry", "9f8e7d6c tests: first"]


def test_summaries_tell_what_they_cover_and_the_turns_the_rest() -> None:
    inside = summary("c", 1, 2, 4, key_findings=[Finding(text="Leases last 30 s.", turns=[2], kind="decision")])
    across = summary("c", 1, 1, 3, conversation_summary="Began before.")
    turns = [turn_of("c", n, f"Ask {n} about lanterns?", f"Lantern {n} hangs by the quay.") for n in range(2, 6)]
    work = _work(active(2, 5), turns, [inside, across], None)
    assert "What turns 2 to 4 were about." in work.text
    assert "Ask 5" in work.text and "Ask 3" not in work.text
    assert "Began before." not in work.text
    assert work.findings[0].text == "Leases last 30 s."


def test_open_points_come_from_the_plan_and_the_newest_source() -> None:
    still = summary("c", 1, 1, 1, key_findings=[Finding(text="The backup is missing.", turns=[1], kind="open")])
    turns = [turn_of("c", 1, "Go on.", "Done."), planned(2, ("Write it", "pending"), ("Read it", "completed"))]
    where = active(1, 2)
    assert [item.text for item in _work(where, turns, [still], None).open_points] == [
        "Write it",
        "The backup is missing.",
    ]
    told = insight_of(where.conversation, action_items=[Finding(text="Ask Ada."), Finding(text="write it")])
    assert [item.text for item in _work(where, turns, [still], told).open_points] == ["write it", "Ask Ada."]
    told.fingerprint = "old"
    assert "The backup is missing." in [item.text for item in _work(where, turns, [still], told).open_points]
