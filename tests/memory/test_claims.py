"""Claims about own acts against the record of calls: marked where it contradicts them, silent where it may not."""

from __future__ import annotations

import pytest

from ragforge_tui.memory.claims import contradicted
from ragforge_tui.shared.records import REFUSED, FileAccess, ToolCall, Turn
from tests.memory.test_attempts import call, edited, ran, refused, talk

FAILED = ran("pytest -q", 1, "FAILED tests/a.py\n1 failed, 3 passed")
PASSED = ran("pytest -q", 0, "4 passed")
PIPED = ran("pytest -q 2>&1 | tail -1", 0)
PIPED.result.result = '{"text": "1 failed, 3 passed", "exit_status": 0}'  # type: ignore[union-attr]
TESTS = "says the tests pass; the last run failed [t2]"


def wrote(path: str) -> ToolCall:
    made = edited("a = 1", "a = 2", path)
    made.files = [FileAccess(path=path, access="write")]
    return made


def doubts(answer: str, calls: list[ToolCall], *before: list[ToolCall]) -> list[str]:
    turns: list[Turn] = talk(*(("x", one) for one in (*(before or ([],)), calls)))
    return contradicted(answer, turns[-1], turns[:-1])


@pytest.mark.parametrize(
    "answer",
    [
        "Done. All tests pass now.",
        "Fixed it, the tests are green.",
        "**Result:** 12 tests passed",
        "Tous les tests passent.",
        "Alle Tests laufen jetzt durch.",
        "Die Tests sind grün.",
        "Todas as correções feitas. Os testes passam.",
    ],
)
def test_passing_tests_that_failed(answer: str) -> None:
    assert doubts(answer, [FAILED]) == [TESTS]
    assert doubts(answer, [PIPED]) == [TESTS]
    assert doubts(answer, [FAILED, PASSED]) == []
    assert doubts(answer, [PASSED, FAILED]) == [TESTS]


@pytest.mark.parametrize(
    "answer",
    [
        "The tests do not pass yet.",
        "One test fails, the other tests pass.",
        "All tests should pass now.",
        "Run it again once the tests pass.",
        "Do all tests pass?",
        "Les tests ne passent pas.",
        "Die Tests laufen noch nicht durch.",
        "```\n12 tests passed\n```\nThat is what it should print.",
        "> all tests pass\n\nThat is what you wrote.",
        "I added three passing grades.",
    ],
)
def test_no_claim_that_tests_pass(answer: str) -> None:
    assert doubts(answer, [FAILED]) == []


def test_the_last_run_may_be_of_an_earlier_turn() -> None:
    assert doubts("All tests pass.", [wrote("kit.py")], [FAILED]) == ["says the tests pass; the last run failed [t1]"]
    assert doubts("All tests pass.", [ran("./check")], [FAILED]) == [], "another command may have run them"
    assert doubts("All tests pass.", [], [ran("ruff check", 1, "2 errors")]) == []
    assert doubts("All tests pass.", []) == [], "nobody knows"


@pytest.mark.parametrize(
    ("answer", "calls", "wanted"),
    [
        ("I updated `kit/wrap.py`.", [], ["says it changed kit/wrap.py; no call did"]),
        ("I've created docs/new.md for it.", [], ["says it created docs/new.md; no call did"]),
        ("J'ai modifié `kit.py`.", [], ["says it changed kit.py; no call did"]),
        ("Ich habe `kit.py` geändert.", [], ["says it changed kit.py; no call did"]),
        ("I updated `kit/wrap.py`.", [wrote("kit/wrap.py")], []),
        ("I updated `wrap.py`.", [wrote("kit/wrap.py")], []),
        ("I updated `wrap.py`.", [ran("sed -i s/a/b/ wrap.py")], []),
        (
            "Updated `kit.py` as you asked.",
            [refused("edit_file", {"path": "kit.py", "old_string": "a", "new_string": "b"}, "no")],
            ["says it changed kit.py; that call was refused [t2]"],
        ),
        ("Updated `kit.py`.", [], []),
        ("I have not changed `kit.py`.", [], []),
        ("I would have deleted `kit.py`.", [], []),
        ("You created `kit.py` yesterday.", [], []),
        ("I read `kit.py` and updated nothing.", [], []),
        ("The value in `kit.py` was changed by Ana.", [], []),
    ],
)
def test_files(answer: str, calls: list[ToolCall], wanted: list[str]) -> None:
    assert doubts(answer, calls) == wanted


def test_a_file_written_before_may_be_meant() -> None:
    assert doubts("I updated `kit.py`.", [], [wrote("kit.py")]) == []
    later = talk(("x", []), ("x", []), ("x", []))
    assert contradicted("I updated `kit.py`.", later[2], later[1:2]) == [], "the turns before are not at hand"


def test_commits() -> None:
    assert doubts("I committed the change.", []) == ["says it committed; no call did"]
    assert doubts("Committed as abc1234.", [ran("git commit -m x", 1, "nothing to commit")]) == [
        "says it committed; git commit failed [t2]"
    ]
    assert doubts("I committed the change.", [ran("git commit -qm x")]) == []
    assert doubts("I am committed to quality.", []) == []
    assert doubts("I have not committed anything.", []) == []
    stopped = call("run_command", {"command": "git commit -m x"}, error=REFUSED)
    assert doubts("I've committed it.", [stopped]) == ["says it committed; git commit was refused [t2]"]
