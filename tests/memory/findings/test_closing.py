"""What turns close, replace and give up, by the user's word, by edits with passed tests, by corrections. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.memory.findings.closing import Change, changes_of
from ragforge_tui.memory.findings.marked import marked_findings
from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.records import FileAccess, Finding, ToolCall, ToolResult, Turn, now
from tests.support.records import call_of
from tests.support.stored_memory import summary
from tests.support.turns import turn_of

RAISES = "`naturaltime` and `precisedelta` still raise OverflowError for huge values."
DAY = datetime(2026, 10, 3, 9, 30, tzinfo=UTC)


def kept(text: str, kind: KeptKind = "open", turn: int = 3, **fields: Any) -> KeptFinding:
    return new_finding("c", "/w", turn, kind, text, since=DAY, **fields)


def changed(asked: str, answer: str = "", *current: KeptFinding, turn: int = 5) -> list[Change]:
    said = turn_of("c", turn, asked, answer)
    return changes_of(said, marked_findings(said), current)


def outcome(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.how, change.finding.text) for change in changes]


@pytest.mark.parametrize(
    ("asked", "point"),
    [
        ("naturaltime and precisedelta no longer raise OverflowError.", RAISES),
        ("The tests of the parser are written now.", "The tests of the parser are still to be written."),
        ("La page d'aide des pénalités est terminée.", "la page d'aide des pénalités"),
        ("Die Abrechnung der Winterlager ist erledigt.", "die Abrechnung der Winterlager"),
        ("That is fixed, thanks.", "The index on created_at is missing."),
        ("Fixed.", "The index on created_at is missing."),
    ],
)
def test_the_users_word_closes(asked: str, point: str) -> None:
    assert outcome(changed(asked, "", kept(point))) == [("done", point)]


@pytest.mark.parametrize(
    ("asked", "point"),
    [
        # A part of it is not the whole.
        ("The OverflowError in naturaltime is fixed.", RAISES),
        ("Is naturaltime fixed, and precisedelta too? OverflowError", RAISES),
        ("naturaltime and precisedelta would be fixed if OverflowError could be caught.", RAISES),
        ("The docs of the parser are written.", "The tests of the lexer are still to be written."),
        ("Make the tests of the parser.", "The tests of the parser are still to be written."),
        ("Drop the table created_at.", "The index on created_at is missing."),
        ("Done reading, now show me the next file.", "The index on created_at is missing."),
    ],
)
def test_what_only_sounds_like_it_closes_nothing(asked: str, point: str) -> None:
    assert changed(asked, "", kept(point)) == []


def test_done_closes_only_what_was_talked_about_last_and_only_one_thing() -> None:
    old, new = kept("The index is missing.", turn=1), kept("The docs are missing.", turn=4)
    assert outcome(changed("Done.", "", old, new)) == [("done", new.text)]
    assert changed("Done.", "", kept("One thing.", turn=4), new) == []
    assert changed("Done.", "", old, turn=9) == []


def test_what_is_scrapped_is_forgotten_or_replaced() -> None:
    wish = kept("Always use tabs", "wish", turn=4)
    assert outcome(changed("Forget that.", "", wish)) == [("forgotten", wish.text)]
    [change] = changed("Scrap that: always use four spaces", "", wish)
    assert (change.how, change.new) == ("replaced", ("wish", "always use four spaces"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Never use tabs in Makefiles.", "Always use tabs in Makefiles."),
        ("Mets toujours les montants en centimes.", "Ne mets jamais les montants en centimes."),
    ],
)
def test_the_opposite_of_a_wish_replaces_it(old: str, new: str) -> None:
    wish = kept(old, "wish")
    [change] = changed(new, "", wish)
    assert (change.finding, change.how, change.new) == (wish, "replaced", ("wish", new))
    assert changed(old, "", wish) == []


def test_instead_and_corrections_replace() -> None:
    sqlite = kept("The sessions are stored in SQLite", "decision")
    wait = kept("The worker waits 30 seconds before it retries", "decision")
    [change] = changed("We decided to use Postgres instead of SQLite.", "", sqlite, wait)
    assert (change.finding, change.how) == (sqlite, "replaced")
    [change] = changed("Decision: the worker waits 60 seconds before it retries.", "", sqlite, wait)
    assert change.finding == wait and change.new == ("decision", "the worker waits 60 seconds before it retries.")
    assert changed("Decision: the reader waits for the lock.", "", sqlite, wait) == []
    release = kept("Remember that the release is on 4 December.", "fact")
    [change] = changed("Correction: the release is on 11 December.", "", release, wait)
    assert change.finding == release and change.new == ("fact", "the release is on 11 December.")
    assert changed("Actually the release notes are long.", "", release) == []
    assert changed("Use loops instead of getattr.", "", kept("Never use getattr in tests", "wish")) == []
    [change] = changed("The sessions are no longer stored in SQLite.", "", sqlite, wait)
    assert (change.finding, change.how) == (sqlite, "replaced")
    assert changed("The scheduler does not wait 30 seconds.", "", wait) == []
    assert changed("The worker no longer waits 10 seconds before it retries.", "", wait) == []
    assert changed("Should we use Postgres instead of SQLite?", "", sqlite) == []


def _worked(asked: str, answer: str, *calls: ToolCall) -> Turn:
    turn = turn_of("c", 5, asked, answer)
    turn.messages[-1].tool_calls = list(calls)
    return turn


def _call(tool: str, arguments: dict[str, str], result: dict[str, Any], *paths: str) -> ToolCall:
    call = call_of("m", tool_name=tool, arguments=json.dumps(arguments))
    call.success = True
    call.files = [FileAccess(path=path, access="write") for path in paths]
    call.result = ToolResult(
        uuid=f"r{call.uuid}", tool_call_id=call.uuid, success=True, result=json.dumps(result), timestamp=now()
    )
    return call


EDIT = _call(
    "edit_file",
    {"path": "src/time.py", "new_string": "def naturaltime(): ...\ndef precisedelta(): ... # OverflowError"},
    {"text": "Wrote"},
    "src/time.py",
)
TESTS = _call("run_command", {"command": "python -m pytest -q"}, {"text": "3 passed", "exit_status": 0})
FAILING = _call("run_command", {"command": "python -m pytest -q"}, {"text": "1 failed", "exit_status": 1})


@pytest.mark.parametrize(
    ("answer", "calls", "closes"),
    [
        ("Both catch it now.", [EDIT, TESTS], True),
        ("`naturaltime` and `precisedelta` are fixed: no OverflowError any more.", [EDIT], True),
        ("I changed both.", [EDIT], False),
        ("I changed both.", [EDIT, FAILING], False),
        ("I ran the tests.", [TESTS], False),
    ],
)
def test_an_edit_closes_with_a_passed_test_or_the_answers_word(
    answer: str, calls: list[ToolCall], closes: bool
) -> None:
    turn = _worked("Handle the OverflowError for huge values.", answer, *calls)
    found = changes_of(turn, [], [kept(RAISES), kept("Docs for `naturaltime` are missing.")])
    assert [change.finding.text for change in found] == ([RAISES] if closes else [])
    if closes:
        assert found[0].words.startswith("t5: edited src/time.py") and found[0].by == EDIT.uuid


def test_lines_that_repeat_what_is_gone() -> None:
    point = kept(RAISES, state="done", until=DAY, closed_by="t5: edited src/time.py; tests passed")
    new = kept("the worker waits 60 s", "decision", turn=6)
    old = kept("the worker waits 30 s", "decision", state="replaced", until=DAY, replaced_by=new.uuid)
    gone = Settled.of([point, old, new])
    again = Finding(text="naturaltime and precisedelta still raise OverflowError", turns=[3], kind="open")
    assert gone.repeated_by(again, "c") == point
    assert gone.repeated_by(Finding(text="intword and naturaltime raise", turns=[3], kind="open"), "c") is None
    assert gone.repeated_by(Finding(text="The worker waits 60 s.", turns=[6], kind="decision"), "c") is None
    assert gone.repeated_by(Finding(text="The worker waits 30 s.", turns=[3], kind="decision"), "c") == old
    # Said again after it was closed, it is so again.
    assert gone.repeated_by(Finding(text=again.text, turns=[8], kind="open"), "c") is None
    told = summary(
        "c",
        1,
        1,
        4,
        conversation_summary=(
            "The user asked for a review. Still open: naturaltime and precisedelta raise OverflowError for huge values."
        ),
        key_findings=[again, Finding(text="The library has 12 functions.", turns=[2], kind="fact")],
    )
    sent = gone.current(told)
    assert sent.conversation_summary == "The user asked for a review."
    assert [one.text for one in sent.key_findings] == ["The library has 12 functions."]
    assert gone.current(sent) is sent
    assert gone.what_became(old) == "replaced by “the worker waits 60 s” on 3 October 2026"
    assert gone.what_became(point) == "done on 3 October 2026, t5: edited src/time.py; tests passed"
