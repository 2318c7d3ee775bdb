"""What counts as a failed, undone or refused attempt, and when memory says so: pure functions on calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.memory.attempts.commands import difference
from ragforge_tui.memory.attempts.contradiction import Contradiction, contradicts
from ragforge_tui.memory.attempts.edits import Change, changes_in
from ragforge_tui.memory.attempts.finder import find_attempts
from ragforge_tui.memory.attempts.reminder import Decision, Place, Tried, before_command, before_edit
from ragforge_tui.memory.attempts.revert_words import wants_back
from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.command_words import command_of
from ragforge_tui.shared.records import REFUSED, Message, ToolCall, ToolResult, Turn
from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tools.registry import TOOLS

assert TOOLS, "describes the tools, which the finder looks up by name"

START = datetime(2026, 10, 3, 9, tzinfo=UTC)
HERE = Place("other", 9, lambda moment: f"on {moment.day} October")


def call(
    tool: str, arguments: dict[str, Any], data: dict[str, Any] | None = None, error: str | None = None
) -> ToolCall:
    result = ToolResult(
        uuid="r",
        tool_call_id="c",
        success=error is None,
        result=msgspec.json.encode({"text": error or "", **(data or {})}).decode(),
        error=error,
        timestamp=START,
    )
    body = msgspec.json.encode(arguments).decode()
    return ToolCall(
        uuid="c", message_id="m", tool_name=tool, arguments=body, timestamp=START, success=error is None, result=result
    )


def ran(command: str, status: int = 0, output: str = "") -> ToolCall:
    error = f"{output}\n[Exit status {status}]" if status else None
    return call("run_command", {"command": command}, {"exit_status": status}, error)


def edited(old: str, new: str, path: str = "kit.py") -> ToolCall:
    before = f"def width():\n    pad = 2\n    {old}\n    return pad\n"
    diff = unified_diff(before, before.replace(old, new), path)
    return call("edit_file", {"path": path, "old_string": old, "new_string": new}, {"diff": diff})


def refused(tool: str, arguments: dict[str, Any], why: str) -> ToolCall:
    return call(tool, arguments, error=f"{REFUSED}: {why}" if why else REFUSED)


def talk(*turns: tuple[str, list[ToolCall]]) -> list[Turn]:
    made = []
    for index, (said, calls) in enumerate(turns, start=1):
        at = START + timedelta(minutes=index)
        for ordinal, one in enumerate(calls):
            one.timestamp, one.ordinal = at + timedelta(seconds=ordinal), ordinal
        own = {"conversation_id": "talk", "turn_index": index, "timestamp": at}
        user = Message(uuid=f"u{index}", role="user", content=said, **own)
        reply = Message(uuid=f"a{index}", role="assistant", position=1, tool_calls=calls, **own)
        made.append(Turn(turn_index=index, messages=[user, reply]))
    return made


def found(*turns: tuple[str, list[ToolCall]], after: int = 0) -> list[Attempt]:
    return find_attempts(talk(*turns), "/w", after=after).attempts


def said(attempts: list[Attempt], command: str) -> str:
    return before_command(command, [Tried(one, "kit") for one in attempts], HERE)


@pytest.mark.parametrize(
    ("failed", "worked", "output", "status", "wanted"),
    [
        ("pytest -q tests", "pytest -q -p no:randomly tests", "1 failed", 1, ("needed", "-p no:randomly")),
        ("make test", "PY=python3 make test", "", 2, ("needed", "PY=python3")),
        ("cd app && npm install", "npm install --legacy-peer-deps", "ERESOLVE", 1, ("needed", "--legacy-peer-deps")),
        (
            "pytest",
            ".venv/bin/python -m pytest",
            "sh: pytest: not found",
            127,
            ("missing", ".venv/bin/python -m pytest"),
        ),
        (
            "python -m pytest",
            ".venv/bin/python -m pytest",
            "No module named pytest",
            1,
            ("missing", ".venv/bin/python"),
        ),
        ("pytest -n 4", "pytest", "error: unrecognized arguments: -n", 4, ("extra", "-n 4")),
        (
            "ruff --fix .",
            "ruff check --fix .",
            "error: unexpected argument '--fix'",
            2,
            ("other", "ruff check --fix ."),
        ),
        ("pytest", "pytest -k parser", "3 failed", 1, None),
        ("pytest tests/a.py", "pytest tests/b.py", "3 failed", 1, None),
        ("tool --run", "tool --help", "error", 2, None),
        ("grep -q x a", "grep -q -r x .", "", 1, None),
        ("git push", "git push -u origin main", "no upstream", 128, None),
        ("curl http://a", "curl -k http://a", "", 60, None),
        ("pytest -q", "pytest -v", "1 failed", 1, None),
    ],
)
def test_what_made_a_command_work(
    failed: str, worked: str, output: str, status: int, wanted: tuple[str, str] | None
) -> None:
    before, after = command_of(failed), command_of(worked)
    assert before is not None
    assert after is not None
    made = difference(before, after, output=output, status=status)
    assert (made and (made.outcome, made.words)) == wanted


def test_a_chain_is_no_attempt() -> None:
    for text in ("pytest | tail -3", "make; echo done", "a && b", "pytest || true", "(cd a; make)", "echo 'x"):
        assert command_of(text) is None


def test_a_command_that_needed_more_is_said_until_it_works_without() -> None:
    failed, worked = ran("pytest -q tests/a.py", 1, "random order"), ran("pytest -q -p no:randomly tests/a.py")
    attempts = found(("test it", [failed, worked]))
    assert [(one.outcome, one.key, one.instead) for one in attempts] == [("needed", "pytest", "-p no:randomly")]
    assert said(attempts, "pytest tests/b.py") == "This command needed `-p no:randomly` last time (t1 of “kit”)"
    assert said(attempts, "cd x && pytest tests/b.py | tail -5")
    assert not said(attempts, "pytest -p no:randomly tests/b.py")
    assert not said(attempts, "make test")
    later = find_attempts(talk(("a", []), ("b", [ran("pytest tests")])), "/w", after=1)
    assert later.settles(attempts[0])
    other = find_attempts(talk(("a", []), ("b", [ran("pytest -p no:randomly")])), "/w", after=1)
    assert not other.settles(attempts[0])


def test_what_was_written_in_between_may_be_why_it_works() -> None:
    failed, worked = ran("pytest -q", 1, "1 failed"), ran("pytest -q --forked")
    assert not found(("fix", [failed, edited("a = 1", "a = 2"), worked]))
    assert not found(("fix", [failed, ran("pip install forked"), worked]))
    assert len(found(("fix", [failed, ran("cat a.py"), worked]))) == 1
    assert not found(("fix", [failed, ran("pytest -q")]))


def test_undone_edits_by_the_user_by_git_and_by_words() -> None:
    edit = ("make it 90", [edited("wide = 88", "wide = 90")])
    undo = call("restore_files", {"turn": 1}, {"undone": 1, "changes": [{"path": "kit.py"}]})
    by_user = found(edit, ("/undo 1", [undo]))
    by_git = found(edit, ("hm", [ran("git checkout -- kit.py")]))
    words = "no, revert that: the printer cuts at 88"
    by_words = found(edit, (words, [edited("wide = 90", "wide = 88")]))
    for attempts in (by_user, by_git, by_words):
        assert [(one.outcome, one.key, one.turn_index, one.end_turn) for one in attempts] == [
            ("undone", "kit.py", 1, 2)
        ]
        assert attempts[0].what == "wide = 88 → wide = 90"
    assert by_words[0].why == words
    later = "The accountant greps for it, hence the undo."
    assert found(edit, ("/undo 1", [undo]), (later, []), after=2)[0].why == later
    assert not found(edit, ("/undo 1", [undo]), ("And now the docs.", []), after=2)
    redo = call("restore_files", {"turn": 2}, {"undone": 2, "changes": [{"path": "kit.py"}]})
    assert not found(edit, ("/undo 1", [undo]), ("/redo", [redo]))
    assert find_attempts(talk(edit, ("/undo 1", [undo]), ("/redo", [redo])), "/w", after=2).redone == [2]
    assert not found(edit, ("next", [edited("wide = 90", "wide = 92")])), "a change of mind is no undo"
    committed = ran("git commit -am x")
    committed.result = msgspec.structs.replace(
        committed.result,  # type: ignore[arg-type]
        result='{"text": "", "commits": [{"hash": "abc1234", "committed_at": "2026-10-03T09:00:00Z"}]}',
    )
    assert not found(edit, ("commit", [committed]), ("x", [ran("git checkout .")])), "what is committed stays"
    assert len(found(edit, ("commit", [committed]), ("x", [ran("git revert --no-edit HEAD")]))) == 1


def test_the_same_edit_again_is_said_and_another_one_is_not() -> None:
    attempts = found(
        ("make it 90", [edited("wide = 88", "wide = 90")]),
        ("no, revert that: the printer cuts at 88", [edited("wide = 90", "wide = 88")]),
    )
    tried = [Tried(one, "kit") for one in attempts]

    def about(change: ToolCall, place: Place = HERE) -> str:
        diff = msgspec.json.decode(change.result.result)["diff"] if change.result else ""
        return before_edit(changes_in(diff), tried, [], place)

    again = edited("wide = 88", "wide = 90")
    line = "Tried on 3 October and undone (t1 of “kit”): no, revert that: the printer cuts at 88"
    assert about(again) == line
    assert not about(edited("wide = 88", "wide = 89"))
    assert not about(edited("wide = 88", "wide = 90", path="other.py"))
    assert about(again, Place("talk", 9, HERE.when)).startswith("Tried on 3 October and undone (t1)")
    assert not about(again, Place("talk", 3, HERE.when)), "the user has just seen it"


def test_refusals_with_a_reason() -> None:
    asked = {"path": "kit.py", "old_string": "    wide = 88", "new_string": "    wide = 90"}
    attempts = found(
        (
            "x",
            [
                refused("edit_file", asked, "ask Priya first"),
                refused("run_command", {"command": "make ship"}, "Friday"),
            ],
        )
    )
    assert [(one.outcome, one.key, one.why) for one in attempts] == [
        ("refused", "kit.py", "ask Priya first"),
        ("refused", "make ship", "Friday"),
    ]
    assert said(attempts, "make ship") == "You refused this on 3 October (t1 of “kit”): Friday"
    assert not said(attempts, "make ship DRY=1")
    assert not found(("x", [refused("run_command", {"command": "make ship"}, "")])), "nobody knows why"
    same = [refused("edit_file", asked, "both forms"), refused("run_command", {"command": "make ship"}, "both forms")]
    assert [one.key for one in found(("x", same))] == ["kit.py"], "the reason is about the first call of the reply"
    assert not found(("x", [*same, edited("wide = 88", "wide = 90")])), "done in the end"


@pytest.mark.parametrize(
    "message",
    ["No, revert that.", "undo this please", "annule ça", "remets comme avant", "mach das rückgängig", "deshaz eso",
     "annulla questo", "maak dat ongedaan", "desfaz isso", "откати это"],
)  # fmt: skip
def test_words_that_take_back(message: str) -> None:
    assert wants_back(message)


@pytest.mark.parametrize(
    "message", ["How does undo work?", "Add a revert button", "what was before?", "back up the file"]
)
def test_words_that_do_not(message: str) -> None:
    assert not wants_back(message)


@pytest.mark.parametrize(
    ("decision", "old", "new", "wanted"),
    [
        (
            "The Sniffer is not used, because it guessed wrong",
            "d = x",
            "d = csv.Sniffer().sniff(x)",
            ("adds", "Sniffer"),
        ),
        ("Use httpx rather than requests", "import httpx", "import requests", ("adds", "requests")),
        ("Use httpx rather than requests", "import requests", "import httpx", None),
        ("Kein pandas im Import", "import csv", "import pandas as pd", ("adds", "pandas")),
        ("On n'utilise pas pandas", "import csv", "import pandas as pd", ("adds", "pandas")),
        ('naturalsize("abc") keeps raising ValueError', "raise ValueError(x)", "return 0", ("removes", "ValueError")),
        ("Keep `strict=True` in zip", "zip(a, b, strict=True)", "zip(a, b)", ("removes", "strict=True")),
        ("MAX_DEPTH stays 4", "MAX_DEPTH = 4", "MAX_DEPTH = 10", ("changes", "4")),
        ("The default width is 88", "def f(width=88):", "def f(width=90):", ("changes", "88")),
        ("The default width is 88", "def f(height=88):", "def f(height=90):", None),
        ("NIGHTLY runs at 02:30, as the bank is late", 'NIGHTLY = "02:30"', 'NIGHTLY = "04:15"', ("changes", "02:30")),
        ("Answers come without bullet lists", "rows = read()", "rows = list(read())", None),
        ("It raises for text without a time period", "x = 1", "x = 1  # time is short", None),
        ("No third-party packages", "x = 1", "packages = 2", None),
        ("Tests stay in one file", "x = file", "y = other", None),
        ("Return the default value, not None", "return default", "return None", None),
        ("We talked about the width", "width = 1", "width = 2", None),
    ],
)
def test_decisions_that_an_edit_contradicts(decision: str, old: str, new: str, wanted: tuple[str, str] | None) -> None:
    found_now = contradicts(decision, [Change("a.py", (old,), (new,))])
    assert found_now == (Contradiction(*wanted) if wanted else None)


def test_a_decision_is_said_with_its_turn() -> None:
    decision = Decision("MAX_DEPTH stays 4.", "talk", 3, "naturalsize", START)
    change = Change("a.py", ("MAX_DEPTH = 4",), ("MAX_DEPTH = 10",))
    line = before_edit([change], [], [decision], HERE)
    assert line == "T3 of “naturalsize” decided: MAX_DEPTH stays 4. This edit changes `4`"
    assert not before_edit([change], [], [decision], Place("talk", 4, HERE.when)), "the user has just decided it"
