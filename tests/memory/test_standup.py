"""Commits, files and open points of a stretch of turns, from real calls."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ragforge_tui.graph.store.activity import ActiveTurns
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.memory.past.standup import _work
from ragforge_tui.memory.past.told import TOLD_CHARS, asked_and_answered, told_by, whole_sentences
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.records import Commit, Finding, ToolCall, ToolResult, Turn, now
from tests.memory.test_insights import insight_of, planned, talked
from tests.support.records import call_of
from tests.support.stored_memory import summary
from tests.support.turns import turn_of


def committed(index: int, *commits: Commit) -> Turn:
    """A turn that ran a command, which made these commits."""
    turn = turn_of("c", index, "Commit it.", "Committed.")
    turn.messages[1].tool_calls = [command("git commit", commits=msgspec.to_builtins(commits))]
    return turn


def command(line: str, status: int = 0, text: str = "", **more: object) -> ToolCall:
    """A call that ran a command."""
    call = call_of("m", tool_name="run_command", arguments=json.dumps({"command": line}))
    data = json.dumps({"text": text, "exit_status": status, **more})
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result=data, timestamp=now())
    return call


def ran(index: int, *calls: ToolCall) -> Turn:
    """A turn that ran these commands."""
    turn = turn_of("c", index, f"Do part {index} of the harbour.", "Done.")
    turn.messages[0].tool_calls = list(calls)
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
    inside = summary(
        "c", 1, 2, 4, made_by="model", key_findings=[Finding(text="Leases last 30 s.", turns=[2], kind="decision")]
    )
    across = summary("c", 1, 1, 3, made_by="model", conversation_summary="Began before.")
    turns = [turn_of("c", n, f"Ask {n} about lanterns?", f"Lantern {n} hangs by the quay.") for n in range(2, 6)]
    work = _work(active(2, 5), turns, [inside, across], None)
    assert "What turns 2 to 4 were about." in work.text
    assert "Ask 5" in work.text and "Ask 3" not in work.text
    assert "Began before." not in work.text
    assert work.findings[0].text == "Leases last 30 s."


def test_open_points_come_from_the_plan_and_the_newest_source() -> None:
    still = summary(
        "c", 1, 1, 1, made_by="model", key_findings=[Finding(text="The backup is missing.", turns=[1], kind="open")]
    )
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


def test_what_was_put_right_is_no_failure() -> None:
    turns = [
        ran(1, command(".venv/bin/python -m pytest -q", 1, "3 failed"), command("grep -n lease a.py", 1)),
        ran(2, command("python -m pytest tests/test_a.py"), command("ruff check .", 1, "Found 2 errors.")),
        ran(3, command("make docs", 2, "make: *** [docs] Error 1")),
    ]
    turns[2].messages[1].state = "interrupted"
    work = _work(active(1, 3), turns, [], None)
    assert [(one.text, one.turns) for one in work.failures] == [
        ("`ruff check .` ended with exit status 1: Found 2 errors.", [2]),
        ("`make docs` ended with exit status 2: make: *** [docs] Error 1", [3]),
        ("The last answer was stopped before its end", [3]),
    ]
    assert work.actions == "Ran `python -m pytest tests/test_a.py`."


def test_no_sentence_is_cut() -> None:
    endless = "Explain " + "the harbour and the quay and " * 20 + "the pier."
    answer = "Let me look. The pier is north of the quay. It is long."
    turns = [turn_of("c", 1, f"{endless} Where is the pier?", answer)]
    assert asked_and_answered(turns) == "Asked: Where is the pier? Result: The pier is north of the quay."
    assert whole_sentences(f"{endless} A short one. It was stored in pa…", 40) == "A short one."
    told = told_by([f"Turn {n} was about lanterns. " * 9 for n in range(12)])
    assert told.startswith("Turn 0 was") and told.endswith("Turn 11 was about lanterns.")
    assert len(told) <= TOLD_CHARS


def test_decisions_and_open_points_are_those_that_still_hold() -> None:
    def kept(kind: KeptKind, text: str, turn: int, **fields: Any) -> KeptFinding:
        return new_finding("c", "/w", turn, kind, text, **fields)

    where = active(2, 3)
    closed = {"state": "done", "until": now(), "closed_by": "t3: edited lease.py"}
    findings = [
        kept("decision", "Leases last 30 s.", 2),
        kept("decision", "Leases last 10 s.", 2, state="replaced"),
        kept("decision", "Long ago.", 1),
        kept("open", "The backup is missing.", 1),
        kept("open", "Leases are not renewed.", 1, **closed),
    ]
    turns = [turn_of("c", 2, "We decided on thirty seconds.", "Good."), turn_of("c", 3, "Renew them.", "Done.")]
    work = _work(where, turns, [], None, findings)
    assert [one.text for one in work.findings] == ["Leases last 30 s."]
    assert [one.text for one in work.open_points] == ["The backup is missing."]
    assert [one.text for one in work.closed] == ["Leases are not renewed. (t3: edited lease.py)"]
