"""Programs that run tests, check code or format it, however they are started: one rule covers each kind.

`.venv/bin/python -m pytest -x tests`, `uv run pytest -q` and `npm test` all run tests. The tables are data: what a
program is started by, what it does, and which of its options are still asked about because they run another program or
write elsewhere. Such a program runs the code of the workspace; a word that leads out of the workspace, to secrets or to
this program's files is not covered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ragforge_tui.conversation.approvals.allowed_commands import WRITING_OPTIONS, Placed, refusal
from ragforge_tui.shared.suite_runs import PROGRAMS
from ragforge_tui.tools.sensitive import Guard

Kind = Literal["@tests", "@checks", "@format"]
_PROGRAMS: dict[Kind, str] = {
    "@tests": PROGRAMS,
    "@checks": """
        ruff check, flake8, pylint, mypy, dmypy run, pyright, basedpyright, ty check, pyflakes, pycodestyle, pydocstyle,
        vulture, lint-imports, eslint, stylelint, tsc, vue-tsc, oxlint, cargo check, cargo clippy, go vet, staticcheck,
        golangci-lint run, shellcheck, hadolint, yamllint, rubocop, phpstan analyse, psalm, mix credo, swiftlint,
        ktlint, biome lint, biome check
    """,
    "@format": """
        ruff format, black, isort, autopep8, yapf, prettier, biome format, dprint fmt, cargo fmt, rustfmt, gofmt,
        go fmt, goimports, clang-format, shfmt, mix format, dart format, deno fmt, zig fmt, terraform fmt, taplo fmt
    """,
}
_KIND_OF: dict[tuple[str, ...], Kind] = {
    tuple(name.split()): kind for kind, names in _PROGRAMS.items() for name in names.split(",")
}
_ONLY_CHECKS: dict[str, tuple[str, ...]] = {
    "ruff": ("--check", "--diff"),
    "isort": ("-c", "--check", "--check-only", "--diff"),
    "prettier": ("-c", "--check", "-l", "--list-different"),
    "cargo": ("--check",),
    "gofmt": ("-l", "-d"),
    "goimports": ("-l", "-d"),
    "shfmt": ("-l", "-d"),
    "clang-format": ("--dry-run", "-n", "--Werror"),
    **dict.fromkeys(
        ("black", "rustfmt", "biome", "dprint", "deno", "zig", "terraform", "taplo"), ("--check", "--diff")
    ),
    "mix": ("--check-formatted",),
    "autopep8": ("--diff", "--exit-code"),
    "yapf": ("--diff", "-d"),
    "dart": ("--output=none", "--set-exit-if-changed"),
}
"""Options with which a formatter only reports."""
_FIXES: dict[str, tuple[str, ...]] = {
    "ruff": ("--fix", "--fix-only", "--unsafe-fixes"),
    "prettier": ("-w", "--write"),
    "gofmt": ("-w", "-s"),
    "goimports": ("-w",),
    "shfmt": ("-w",),
    "clang-format": ("-i",),
    "biome": ("--write", "--apply", "--fix"),
    "autopep8": ("-i", "--in-place"),
    "yapf": ("-i", "--in-place"),
    "rubocop": ("-a", "-A", "--autocorrect", "--autocorrect-all"),
    **dict.fromkeys(("eslint", "stylelint", "oxlint", "swiftlint", "golangci-lint"), ("--fix",)),
}
"""Options with which a program writes into the files that it checks."""
_NEEDED: dict[str, tuple[str, ...]] = {"tsc": ("--noEmit", "--noemit"), "vue-tsc": ("--noEmit", "--noemit")}
"""Options without which a program writes files."""

_MORE = (
    r"(?:[:_-](?:all|api|app|backend|browser|ci|client|core|cov|coverage|db|e2e|fast|frontend|full|functional|go|int|"
    r"integration|js|lib|local|node|only|perf|py|python|quick|regression|rust|server|slow|smoke|strict|system|tests?|ts|"
    r"types?|ui|unit|verbose|watch|web|[a-z]*\d[\w.]*))*"
)
"""Words that name tests or checks; any other may name another task, as in `lint-and-push`."""
_SCRIPTS: dict[Kind, re.Pattern[str]] = {
    "@format": re.compile(r"format|fmt|prettier|(lint|eslint|format)[:-](fix|write)|fix"),
    "@checks": re.compile(rf"(lint|eslint|typecheck|type-check|types|tsc|mypy|checks?){_MORE}|(format|fmt)[:-]check"),
    "@tests": re.compile(rf"(t|tests?|unit-?tests?|pytest|spec){_MORE}"),
}
"""Names of a project's own scripts and targets, the first kind that fits."""
_SCRIPT_RUNNERS = {"npm": ("run", "run-script"), "pnpm": ("run",), "yarn": ("run",), "bun": ("run",)}
_TARGET_RUNNERS = frozenset({"make", "gmake", "just", "task"})
_QUIET = re.compile(r"-[sS]|--silent|--if-present|-w|--workspaces|-r|--recursive")
_TARGET_OPTIONS = re.compile(r"-j\d*|-[ksqB]+|\d+|--(silent|keep-going|always-make|no-print-directory)|-j|-O")

_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)*)?|py")
_PYTHON_OPTIONS = re.compile(r"-[BEIObdsuv]+|-[0-9.]+")
_RUNNERS: dict[tuple[str, ...], re.Pattern[str]] = {
    ("uv", "run"): re.compile(r"--(frozen|locked|no-sync|offline|quiet|isolated|active|all-extras|dev)|-q|--"),
    **dict.fromkeys((("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("rye", "run")), re.compile("--|-q|-s")),
    **dict.fromkeys((("pipenv", "run"), ("pixi", "run"), ("bundle", "exec")), re.compile("--")),
    ("npx",): re.compile(r"--no-install|--no|--"),
    **dict.fromkeys((("pnpm", "exec"), ("npm", "exec"), ("yarn",), ("bunx",), ("bun", "x")), re.compile("--")),
    ("time",): re.compile("-p"),
    ("nice",): re.compile(r"-n|-?\d+|--"),
    ("timeout",): re.compile(r"-k|--foreground|--preserve-status|\d+(\.\d+)?[smh]?|--"),
    ("env",): re.compile("--"),
}
"""What starts the program that follows, and the words that may come between."""
_VARIABLES = re.compile(
    r"(CI|NO_COLOR|FORCE_COLOR|TERM|TZ|LANG|LC_ALL|COLUMNS|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|PYTHONHASHSEED|"
    r"PYTHONWARNINGS|PYTHONPATH|RUST_BACKTRACE|CARGO_TERM_COLOR|NODE_ENV|RAILS_ENV|MIX_ENV|CGO_ENABLED)=[\w./:,+-]*"
)
"""Variables that a command may set without running anything else; a path in them is judged like any word."""
_FOLDERS = re.compile(r"(\./)?((\.?venv|env)/bin|node_modules/\.bin|vendor/bin)/|")
_WRAPPERS = frozenset({"./gradlew", "./mvnw"})
"""Programs that a project brings along at its root."""
_SYSTEM = ("/usr/bin/", "/usr/local/bin/", "/bin/", "/opt/homebrew/bin/")

_KNOWN_OPTIONS = re.compile(
    r"-[hqvx]+|-[jklt]\d*|--?(?:all|bail|cache|ci|colou?r|coverage|diff|exitfirst|fail-?fast|failed|filter|grep|help|"
    r"ignore-case|jobs|last-failed|line-length|list|max-warnings|maxfail|no-colou?r|only-failures|parallel|passWithNoTests|"
    r"pretty|quiet|recursive|repeat|retries|run|runInBand|seed|shard|silent|stop-on-failure|strict|tb|tests?|timeout|"
    r"verbose|version|workers)(?:=.*)?|--"
)
"""Options of programs that have no entry in `WRITING_OPTIONS`: what else they have may run or write anything."""
_GOALS = frozenset({"mvn", "mvnw", "gradle", "gradlew", "sbt", "rake", "mix", "tox", "nox"})
"""Programs that do one thing after the other: each further word is one more."""
_ADDRESS = re.compile(r"://|\bdata:")
_SESSION = rf"(?:py\d*|pypy\d*|tests?|unit|lint|mypy|typing|flake8|ruff|check|coverage|cov){_MORE}"
_HARMLESS: dict[str, re.Pattern[str]] = {
    "pytest": re.compile(
        r"--cov(=[\w./]+)?|--cov-report(=| )term(-missing)?(:skip-covered)?|-p ?no:[\w.]+|-o addopts=|--tb(=| )\w+|"
        r"--durations(=| )\d+|--cov-config(=| )(pyproject\.toml|setup\.cfg|\.coveragerc)|"
        r"-c (pyproject\.toml|pytest\.ini|setup\.cfg)"
    ),
    "tox": re.compile(rf"run|-e ?{_SESSION}(,{_SESSION})*"),
    "nox": re.compile(rf"-s ?{_SESSION}|-[Rr]"),
    "npm": re.compile("--watch(All)?=false"),
    "cargo": re.compile(
        r"-- (--nocapture|--test-threads(=\d+)?|--ignored|--include-ignored)|--nocapture|-D warnings|-- -D"
    ),
    "jest": re.compile(r"-i|-t .*|--testPathPattern(=| ).*|--coverage|--runInBand|--passWithNoTests"),
    "vitest": re.compile(r"--reporter(=| )(dot|verbose|default|basic|json)|--run|--coverage"),
    "mocha": re.compile(r"--reporter(=| )(dot|spec|min|list)"),
    "eslint": re.compile(r"--ext(=| )[\w.,]+|--cache|--report-unused-disable-directives"),
    "unittest": re.compile(r"-p [\w*.?]+|-[sft] [\w./-]+|-[bcf]+"),
    "tsc": re.compile(r"(-p|--project)(=| )(\.|tsconfig[\w.-]*\.json)|--incremental false"),
    "pylint": re.compile(r"-j ?\d+|--rcfile(=| )(pyproject\.toml|\.pylintrc)"),
    "flake8": re.compile(r"--max-line-length(=| )\d+"),
}
"""Options, with their value, that look like ones to ask about but have no effect of that kind."""


class Recognised(NamedTuple):
    """Program of a known kind.

    Attributes:
        why: What in the command a rule about the kind does not cover; empty if it covers all.
    """

    kind: Kind
    why: str = ""


def recognise(placed: Placed, guard: Guard) -> Recognised | None:
    """Return the kind of program that a simple command runs, None for any other; blocks, as it looks at files."""
    before, words = started(placed.words, guard)
    if not words:
        return None
    program = words[0]
    kind, fixed = _script(words)
    if kind is None:
        kind, fixed = _known(words)
    if kind is None:
        return None
    rest = words[fixed:]
    checks, fixes = _ONLY_CHECKS.get(program, ()), _FIXES.get(program, ())
    if kind == "@format" and any(word in checks for word in rest) and not any(word in fixes[:1] for word in rest):
        kind = "@checks"
    elif kind == "@checks" and any(word in fixes for word in rest):
        kind = "@format"
    needed = _NEEDED.get(program, ())
    if needed and not any(word in needed for word in rest):
        return Recognised(kind, f"{program} without {needed[0]}, which writes files")
    rest = [word for word in rest if word not in (*checks, *fixes, *needed)]
    judged = Placed(placed.operator, [*words[:fixed], *_without_harmless(rest, program)], placed.folders)
    return Recognised(kind, _refusal(judged, fixed, guard) or _refusal_of_paths(before, placed, guard))


def _refusal(judged: Placed, fixed: int, guard: Guard) -> str:
    words = judged.words
    if words[0] in _GOALS and (more := next((word for word in words[fixed:] if not word.startswith("-")), "")):
        return f"{more[:80]}, which is another goal"
    if any(_ADDRESS.search(word) for word in words[fixed:]):
        return "an address, which may hold a program"
    listed = any(name in WRITING_OPTIONS for name in (words[0], " ".join(words[:2])))
    options = (word for word in words[fixed:] if word.startswith("-") and word != "-")
    if not listed and (other := next((word for word in options if not _KNOWN_OPTIONS.fullmatch(word)), "")):
        return f"{other[:80]}, which may run a program or write a file"
    return refusal([*words[:fixed], "*"], judged, guard, ())


def _refusal_of_paths(before: list[str], placed: Placed, guard: Guard) -> str:
    """Return what is not covered of the words before the program, such as PYTHONPATH=/elsewhere."""
    paths = Placed(placed.operator, ["set", *(word for word in before if "=" in word)], placed.folders)
    return refusal(["set", "*"], paths, guard, ())


def started(words: list[str], guard: Guard) -> tuple[list[str], list[str]]:
    """Return the words before the program that a command really starts, and the program with its own words.

    No words remain if what is before it is not known to be harmless.
    """
    before: list[str] = []
    while words:
        taken = _taken(words)
        if not taken:
            break
        before, words = before + words[:taken], words[taken:]
    if not words:
        return before, []
    program = _plain_name(words[0], guard)
    if program is None:
        return before, []
    words = [program, *words[1:]]
    if _PYTHON.fullmatch(program):
        at = 1
        while at < len(words) and _PYTHON_OPTIONS.fullmatch(words[at]):
            at += 1
        if words[at : at + 1] == ["-m"] and len(words) > at + 1:
            return before, words[at + 1 :]
        if words[at : at + 2] in (["manage.py", "test"], ["./manage.py", "test"]):
            return before, ["manage.py", *words[at + 1 :]]
    return before, words


def _taken(words: list[str]) -> int:
    """Return how many words come before a program that they start; 0 if the first one is the program itself."""
    if _VARIABLES.fullmatch(words[0]):
        return 1
    for runner, options in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            at = len(runner)
            while at < len(words) and options.fullmatch(words[at]):
                at += 1
            # "yarn test" is a script of the project, "yarn pytest" one of its programs.
            return 0 if runner == ("yarn",) and _script(words)[0] else at
    return 0


def _plain_name(word: str, guard: Guard) -> str | None:
    """Return a program without the folder of an environment or of the system; None for one from elsewhere."""
    folder, slash, name = word.rpartition("/")
    folder += slash
    if word in _WRAPPERS:
        return name
    own = [f"{os.environ[one]}/bin/" for one in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(one)]
    if folder in (*_SYSTEM, *own):
        return name
    return name if _FOLDERS.fullmatch(folder.removeprefix(f"{guard.root}/")) else None


def _known(words: list[str]) -> tuple[Kind | None, int]:
    for count in (3, 2, 1):
        if (kind := _KIND_OF.get(tuple(words[:count]))) is not None and len(words) >= count:
            return kind, count
    return None, 0


def _script(words: list[str]) -> tuple[Kind | None, int]:
    """Return the kind of a project's own script or targets, and the number of words that name it."""
    program, rest = words[0], words[1:]
    if program in _TARGET_RUNNERS:
        targets = [word for word in rest if not _TARGET_OPTIONS.fullmatch(word)]
        kinds = {_kind_of_script(word) for word in targets}
        return (kinds.pop(), len(words)) if len(kinds) == 1 else (None, 0)
    if program not in _SCRIPT_RUNNERS:
        return None, 0
    at = 1
    while at < len(words) and _QUIET.fullmatch(words[at]):
        at += 1
    explicit = words[at : at + 1] and words[at] in _SCRIPT_RUNNERS[program]
    at += 1 if explicit else 0
    while at < len(words) and _QUIET.fullmatch(words[at]):
        at += 1
    kind = _kind_of_script(words[at]) if at < len(words) else None
    # Without "run" npm and pnpm start a script only by these names.
    if kind is None or (not explicit and program in ("npm", "pnpm") and words[at] not in ("test", "t")):
        return None, 0
    return kind, at + (2 if words[at + 1 : at + 2] == ["--"] else 1)


def _kind_of_script(name: str) -> Kind | None:
    return next((kind for kind, names in _SCRIPTS.items() if names.fullmatch(name)), None)


def _without_harmless(words: list[str], program: str) -> list[str]:
    pattern = _HARMLESS.get(program)
    return list(_harmful(words, pattern)) if pattern is not None else words


def _harmful(words: list[str], pattern: re.Pattern[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        if pattern.fullmatch(words[at]):
            at += 1
        elif at + 1 < len(words) and pattern.fullmatch(f"{words[at]} {words[at + 1]}"):
            at += 2
        else:
            yield words[at]
            at += 1
