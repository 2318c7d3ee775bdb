"""The rows of the trace, without a screen: pages and events, filters, order, what is said of a call."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ragforge_tui.shared.events import (
    ApprovalRequested,
    ApprovalResolved,
    MessageFinished,
    ToolCallFinished,
    ToolCallStarted,
    TurnCancelled,
    TurnStarted,
)
from ragforge_tui.shared.records import ToolCall, ToolResult
from ragforge_tui.shared.requests.work import CallEntry
from ragforge_tui.tui.sidebar.trace_pane import Filter, Trace, lines_of, row_of, size_text
from tests.support.fake_engine import CLOCK, conversation, message

OWNER = conversation(1)


def call(
    key: str, name: str = "read_file", *, done: bool | None = True, message_id: str = "m", **more: Any
) -> ToolCall:
    """A call; `done` None: it runs."""
    result = None
    if done is not None:
        result = ToolResult(
            uuid=f"r{key}",
            tool_call_id=key,
            success=done,
            result=json.dumps({"text": "told"}),
            error=None if done else "no such file\nat all",
            timestamp=CLOCK,
            result_size_bytes=1234,
        )
    values: dict[str, Any] = {"arguments": json.dumps({"path": f"src/{key}.py"}), "duration_ms": 5, "timestamp": CLOCK}
    return ToolCall(uuid=key, message_id=message_id, tool_name=name, success=done, result=result, **(values | more))


def entry(turn: int, one: ToolCall, position: int = 1) -> CallEntry:
    return CallEntry(turn_index=turn, position=position, call=one)


def where(turn: int) -> dict[str, Any]:
    return {"conversation_id": OWNER.uuid, "turn_index": turn}


@pytest.fixture
def trace() -> Trace:
    """Five calls of three turns."""
    made = Trace()
    entries = [
        entry(3, call("a")),
        entry(3, call("b", "grep_files", done=False)),
        entry(4, call("c", "run_command", arguments=json.dumps({"command": "make Test"}))),
        entry(7, call("d")),
        entry(7, call("e", done=None)),
    ]
    made.add_page(entries, 3, running_turn=7)
    return made


def keys(trace: Trace, **wanted: Any) -> list[str]:
    return [row.key for row in trace.matching(Filter(**wanted))]


def test_filters_are_joined(trace: Trace) -> None:
    assert keys(trace) == ["a", "b", "c", "d", "e"]
    assert keys(trace, failed=True) == ["b"]
    assert keys(trace, turn=True) == ["d", "e"]
    assert keys(trace, tool="read_file", turn=True) == ["d", "e"]
    assert keys(trace, text="make test") == ["c"]
    assert keys(trace, text="no such FILE") == ["b"], "why a call failed is looked through too"
    assert keys(trace, text="t4") == ["c"]
    assert keys(trace, failed=True, text="make") == []
    assert not Filter() and Filter(text="x")


def test_refused_and_stopped_calls_are_found_and_are_no_failures(trace: Trace) -> None:
    for key, error in (("r", "refused by the person"), ("s", "stopped")):
        one = call(key, done=False)
        assert one.result is not None
        one.result.error = error
        trace.apply(ToolCallFinished(call=one, **where(6)))
    assert keys(trace, failed=True) == ["b"]
    assert keys(trace, refused=True) == ["r", "s"]
    assert keys(trace, text="stopped") == ["s"]


def test_counts(trace: Trace) -> None:
    assert trace.count() == (2, 5)
    trace.apply(TurnStarted(message=message(OWNER, 8, "user", "more"), **where(8)))
    assert trace.count() == (0, 5), "a turn that begins has made no call yet"
    assert Trace().count() == (0, 0)


def test_earlier_pages_go_before(trace: Trace) -> None:
    trace.add_page([entry(1, call("z")), entry(2, call("y"))], 1, running_turn=None)
    assert keys(trace) == ["z", "y", "a", "b", "c", "d", "e"]
    assert trace.first_turn == 1


def test_an_older_page_does_not_overwrite_live_calls() -> None:
    trace = Trace()
    trace.apply(ToolCallStarted(call=call("a", done=None), **where(2)))
    trace.apply(ToolCallFinished(call=call("a"), **where(2)))
    trace.add_page([entry(2, call("a", done=None))], 1, running_turn=2)
    assert [(row.key, row.state) for row in trace.rows] == [("a", "ok")]


def test_a_call_through_its_life() -> None:
    trace = Trace()
    running = call("a", "edit_file", done=None, message_id="m1")
    states = []
    for event in (
        ApprovalRequested(approval_id="p", call=running, kind="write", question="?", **where(1)),
        ApprovalResolved(approval_id="p", decision="once", **where(1)),
        ToolCallStarted(call=running, **where(1)),
        ToolCallFinished(call=call("a", "edit_file", message_id="m1"), **where(1)),
    ):
        trace.apply(event)
        states.append(trace.rows[0].state)
    assert states == ["waiting", "running", "running", "ok"]
    assert len(trace.rows) == 1
    assert (trace.rows[0].duration_ms, trace.rows[0].size) == (5, 1234)


def test_a_turn_that_ends_leaves_no_call_running(trace: Trace) -> None:
    assert trace.apply(TurnCancelled(**where(7)))
    assert [row.state for row in trace.rows] == ["ok", "failed", "ok", "ok", "unknown"]


def test_order_is_that_of_the_messages_not_of_the_clock() -> None:
    trace = Trace()
    for position, uuid in ((1, "first"), (2, "second")):
        reply = message(OWNER, 1, "assistant", "", position)
        reply.uuid = uuid
        trace.apply(MessageFinished(message=reply, **where(1)))
    late = call("x", message_id="first", ordinal=1, timestamp=CLOCK + timedelta(hours=1))
    for one in (call("z", message_id="second"), late, call("y", message_id="first")):
        trace.apply(ToolCallStarted(call=one, **where(1)))
    assert keys(trace) == ["y", "x", "z"]


def test_lines_have_a_heading_a_turn_and_the_reason_below(trace: Trace) -> None:
    told = [(line.turn, line.row.key if line.row else "", line.why) for line in lines_of(trace.matching(Filter()))]
    assert told[:5] == [(3, "", False), (3, "a", False), (3, "b", False), (3, "b", True), (4, "", False)]
    assert trace.rows[1].reason == "no such file"


def test_arguments_that_were_cut_still_show_the_main_one() -> None:
    cut = call("a", "write_file", arguments='{"path": "a/b.py", "content": "' + "x" * 1900)
    assert row_of(1, 1, cut).argument == "a/b.py"
    assert row_of(1, 1, call("a", arguments="{broken")).argument == "{broken"


def test_foreign_text_is_made_safe() -> None:
    row = row_of(1, 1, call("a", "x\x1b[31m\ny", arguments=json.dumps({"path": "\x1b]0;owned\x07p"})))
    assert (row.name, row.argument) == ("x y", "p")


def test_ten_thousand_rows_are_filtered_and_kept_in_order() -> None:
    trace = Trace()
    entries = [entry(turn, call(f"{turn}-{n}", ordinal=n)) for turn in range(1, 2501) for n in range(4)]
    for start in range(8000, -1, -2000):
        trace.add_page(entries[start : start + 2000], start // 4 + 1, running_turn=None)
    assert [row.key for row in trace.rows] == [one.call.uuid for one in entries]
    assert len(lines_of(trace.matching(Filter(text="src/2500-3")))) == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0k"),
        (57_300, "57k"),
        (999_900, "1.0M"),
        (5_000_000, "5.0M"),
        (2**40, "1100G"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_calls_of_a_message_whose_end_was_missed_are_before_those_of_later_ones() -> None:
    """The pane was made in between: the events before it went to nobody."""
    made = Trace()
    made.apply(TurnStarted(message=message(OWNER, 1, "user", "go"), **where(1)))
    for ordinal in (1, 0):
        started = call(f"early{ordinal}", done=None, message_id="m1", ordinal=ordinal)
        made.apply(ToolCallStarted(call=started, **where(1)))
    made.apply(MessageFinished(message=message(OWNER, 1, "assistant", "", 2), **where(1)))
    late = call("late", message_id=message(OWNER, 1, "assistant", "", 2).uuid, iteration=2)
    made.apply(ToolCallFinished(call=late, **where(1)))
    assert keys(made) == ["early0", "early1", "late"]


def test_stored_calls_correct_where_one_heard_of_was_put() -> None:
    """What was heard of may be the end of a turn whose beginning was not."""
    made = Trace()
    made.apply(ToolCallFinished(call=call("third", message_id="m3", iteration=3), **where(1)))
    first, second = call("first", message_id="m1"), call("second", message_id="m2", iteration=2)
    third = call("third", message_id="m3", iteration=3)
    made.add_page([entry(1, first, 1), entry(1, second, 2), entry(1, third, 3)], 1, running_turn=None)
    assert keys(made) == ["first", "second", "third"]


def test_a_stored_call_shows_where_its_reply_is() -> None:
    """What the same reply asks for next goes beside it, not where the reply was guessed to be."""
    made = Trace()
    middle = call("middle", message_id="m2", ordinal=1, iteration=2)
    made.apply(ToolCallFinished(call=middle, **where(1)))
    made.add_page([entry(1, call("first", message_id="m1"), 1), entry(1, middle, 2)], 1, running_turn=1)
    made.apply(ToolCallFinished(call=call("last", message_id="m2", ordinal=2, iteration=2), **where(1)))
    assert keys(made) == ["first", "middle", "last"]
