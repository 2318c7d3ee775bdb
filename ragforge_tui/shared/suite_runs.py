"""Runs of tests: which command lines are one, and the outcome that their output reports.

Behind a pipe or at the end of a chain the exit status is another program's, so the outcome is read from the summary
that every test program prints: a line made of numbers, of words such as "failed" and "passed", and of nothing else
but the words around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ragforge_tui.shared.command_words import Command, commands_in

PROGRAMS = """
    pytest, py.test, unittest, nose2, tox, nox, manage.py test, hatch test, jest, vitest, vitest run, mocha, ava,
    playwright test, bun test, deno test, cargo test, cargo nextest run, go test, mvn test, mvnw test, gradle test,
    gradlew test, sbt test, mix test, rspec, rake test, phpunit, pest, ctest, dotnet test, swift test, dart test,
    flutter test, zig build test, bats, prove
"""
"""Programs that run tests, with the words that make them do so."""
_SCRIPT = re.compile(r"(t|tests?|unit-?tests?|pytest|spec|check)([:-][\w:-]+)?")
"""Names of a project's own scripts and targets that run tests."""
_PROGRAMS = frozenset(name.strip() for name in PROGRAMS.split(","))
_TASKS = frozenset(["npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "task"])
_OWN = re.compile(r"(?:run[-_]?tests?|tests?)(?:\.(?:sh|py))?")
"""Scripts of a project by their file name."""
_SHELLS = frozenset(["bash", "sh", "zsh"])

_FAILED = r"failed|failures?|failing|fail|errors?|errored|broken"
_PASSED = r"passed|passing|pass|succeeded|successes|ok"
_NOUN = r"(?:(?:tests?|examples?|runs?|specs?|checks?|cases?|suites?)\s+)?"
_COUNT_FIRST = re.compile(rf"(?<![\w.%:=-])(\d+)\s+{_NOUN}({_FAILED}|{_PASSED})\b", re.I)
_WORD_FIRST = re.compile(rf"\b({_FAILED}|{_PASSED})\s*[:=]?\s*(\d+)\b", re.I)
_PLUS_MINUS = re.compile(r"\+(\d+)(?: ~\d+)? -(\d+): ")
_FALLEN = re.compile(r"^\s*(?:--- FAIL: |not ok \d)", re.M)
"""Lines of programs that print one line a test and no sum: go, and all that speak TAP."""
_FELL = re.compile(r"^FAIL(?:\s|$)", re.M)
_WORDS = frozenset(
    f"""
    {_FAILED} {_PASSED} test tests suite suites result results run runs ran executed summary total file files in of out
    with and s ms sec secs second seconds m min minutes h time elapsed duration finished collected completed warning
    warnings skipped skip skips pending todo ignored measured filtered cancelled deselected selected xfailed xpassed
    rerun reruns subtests example examples assertion assertions expectations risky incomplete unexpected flaky not
    done failure error success fatal info unhandled snapshot snapshots collection cases specs scenarios steps
    interrupted
    """.replace("|", " ")
    .replace("?", "")
    .split()
)
_NAMED = re.compile(r"\S+\.[A-Za-z]\w*|\([a-z]+[\d.]+\)|\x1b\[[\d;]*m")
"""Names of files and frameworks, and colors, in a summary."""
_MOST_LINE = 300
_MOST_CHARS = 400_000


class SuiteRun(msgspec.Struct, frozen=True):
    """Outcome of a run of tests, as its summary reports it.

    Attributes:
        words: Such as ``1 failed, 673 passed``.
    """

    passed: bool
    words: str


def runs_tests(command: str) -> bool:
    """Return whether a command line runs a known test program."""
    return any(_runs_tests(each) for each in commands_in(command))


def last_program(command: str) -> str:
    """Return the program whose exit status a command line ends with, if that is none of tests; else empty."""
    found = list(commands_in(command))
    return found[-1].name if found and not _runs_tests(found[-1]) else ""


def suite_run(command: str, output: str) -> SuiteRun | None:
    """Return the outcome of the tests that a command ran; None if it ran none, or none that can be read."""
    return _outcome(output[-_MOST_CHARS:]) if runs_tests(command) else None


def _runs_tests(command: Command) -> bool:
    words = [command.program, *command.rest]
    named = [word for word in " ".join(words).split() if not word.startswith(("-", "+"))]
    if any(" ".join(named[:count]) in _PROGRAMS for count in (1, 2, 3)):
        return True
    if command.name in _SHELLS and "-c" in words and len(words) > words.index("-c") + 1:
        return runs_tests(words[words.index("-c") + 1])
    if command.name in _TASKS:
        return any(_SCRIPT.fullmatch(word) for word in named[1:])
    return _OWN.fullmatch(command.program.split()[-1].rpartition("/")[2]) is not None


def _outcome(output: str) -> SuiteRun | None:
    sums = list(_sums(output))
    fallen = len(_FALLEN.findall(output))
    failing = [found for found in sums if found.get("failed") or found.get("errors")]
    passed = [found["passed"] for found in sums if found.get("passed")]
    if failing:
        # Some print what passed and what failed on two lines.
        counts = {"passed": passed[-1] if passed else 0, **failing[-1]}
    elif fallen or _FELL.search(output):
        counts = {"failed": fallen, "passed": passed[-1] if passed else 0}
    elif passed:
        return SuiteRun(passed=True, words=f"{passed[-1]} passed")
    else:
        return None
    words = [
        f"{counts[name]} {name if counts[name] > 1 else name.removesuffix('s')}" for name in _ORDER if counts.get(name)
    ]
    return SuiteRun(passed=False, words=", ".join(words) or "failed")


_ORDER = ("failed", "errors", "passed")


def _sums(output: str) -> Iterator[dict[str, int]]:
    """Yield the counts of each summary in an output."""
    for line in output.splitlines():
        if len(line) > _MOST_LINE:
            continue
        if shown := _PLUS_MINUS.search(line):
            yield {"passed": int(shown[1]), "failed": int(shown[2])}
            continue
        text = _NAMED.sub(" ", line)
        if any(word.lower() not in _WORDS for word in re.findall(r"[^\W\d_]+", text)):
            continue
        pairs = [(word, number) for number, word in _COUNT_FIRST.findall(text)] or _WORD_FIRST.findall(text)
        counts: dict[str, int] = {}
        for word, number in pairs:
            name = (
                "passed" if re.fullmatch(_PASSED, word, re.I) else "errors" if word[:3].lower() == "err" else "failed"
            )
            counts[name] = counts.get(name, 0) + int(number)
        if counts:
            yield counts
