"""Which commands a saved pattern covers: exactly its words, and never more than one can see."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.conversation.approvals.allowed_commands import judge, problem_of, simple_commands
from ragforge_tui.conversation.approvals.allowed_commands import offer as offer_in
from ragforge_tui.tools.sensitive import Guard

GUARD = Guard(Path("/workspace"), home=Path("/nobody"))


def covers(patterns: Iterable[str], command: str) -> bool:
    return judge(patterns, command, GUARD).covered


def offer(command: str) -> list[str]:
    return offer_in(command, GUARD)


PATTERNS = ["git status", "pytest *", "make test", "echo 'a b' *"]


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "  git   status ",
        "git 'status'",
        "pytest",
        "pytest -q tests/a.py -k 'not (slow or big)'",
        'pytest -k "a; b"',
        "git status && pytest -x; make test | pytest",
        "echo 'a b' c",
        "echo a\\ b",
    ],
)
def test_covered(command: str) -> None:
    assert covers(PATTERNS, command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "   ",
        "git",
        "git status -s",
        "git status; rm -rf .",
        "git status;",
        "git status && rm -rf .",
        "git status || rm -rf .",
        "git status | sh",
        "git status & rm -rf .",
        "pytest &",
        "pytest\nrm -rf .",
        "pytest\rrm",
        "pytest\\\n rm",
        "pytest $(rm -rf .)",
        "pytest `rm -rf .`",
        'pytest "$(rm -rf .)"',
        "pytest $HOME",
        "pytest > /etc/passwd",
        "pytest 2>&1",
        "pytest >out",
        "pytest < in",
        "pytest <(rm -rf .)",
        "pytest (rm)",
        "(pytest)",
        "{ pytest; }",
        "! pytest",
        "X=1 pytest",
        "LD_PRELOAD=evil.so pytest",
        "pytest '",
        "pytest \\",
        "pytest;;rm",
        "pytest |& rm",
        "pytest\0rm",
        "./pytest",
        "/tmp/pytest",
        "pytestx",
        "sudo pytest",
        "pytest ';' rm -rf .",
        "echo a b",
        "pytest *",
        "pytest tests/test_?.py",
        "pytest 'tests/[ab].py'",
        "pytest tests/{a,b}.py",
        "pytest ~/evil.py",
        "pytest --rootdir=~/x",
        "pytest -k ''~root/x",
    ],
)
def test_not_covered(command: str) -> None:
    assert not covers(PATTERNS, command)


@pytest.mark.parametrize(
    "pattern", ["*", "* status", "", "a; b", "a && b", "a | b", "$x", "a > b", "'", "~ x", "A=1 b"]
)
def test_an_invalid_pattern_covers_nothing(pattern: str) -> None:
    assert problem_of(pattern)
    assert not covers([pattern], "a")
    assert not covers([pattern], "b")
    assert not covers([pattern], pattern)


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("pytest -q", "pytest *"),
        ("ls", "ls"),
        ("git status", "git status"),
        ("git log --oneline -5", "git log *"),
        ("git -c core.pager=x log", "git -c core.pager=x log"),
        ("python -m pytest 'a b'", "python -m pytest 'a b'"),
        ("python3.12 x.py", "python3.12 x.py"),
        ("rm -rf build", "rm -rf build"),
        ("uv run pytest -q", "uv run pytest -q"),
        ("docker exec web ls", "docker exec web ls"),
        ("git config core.pager less", "git config core.pager less"),
        ("cargo run", "cargo run"),
        ("cd sub", "cd sub"),
        ("export PATH=bin", "export PATH=bin"),
        ("cp a b", "cp a b"),
        ("command ls -l", "command ls -l"),
        ("rm *", ""),
        ("cat /proc/*/environ", ""),
        ("touch x", "touch x"),
        ("mkdir -p a/b", "mkdir -p a/b"),
        ("cat README.md", "cat *"),
        ("grep -n TODO src/a.py", "grep *"),
        ("git diff HEAD~1 -- src", "git diff *"),
        ("git commit -m 'fix: a'", "git commit *"),
        ("git push origin main", "git push origin main"),
        ("git log --output=x", "git log --output=x"),
        ("go test ./... -count=1", "go test *"),
        ("unknown-program --flag x", "unknown-program --flag x"),
        ("make test", "make test"),
        ("python -c 'print(1)'", ""),
        ("/usr/bin/python3.12 -Bc 'print(1)'", ""),
        ("bash -lc ls", ""),
        ("node --eval 1", ""),
        ("perl -ne 1", ""),
        ("sudo make install", "sudo make install"),
        ("echo $HOME", ""),
        ("X=1 make", ""),
        ("", ""),
    ],
)
def test_offered_patterns(command: str, pattern: str) -> None:
    assert offer(command) == [pattern] * bool(pattern)
    assert not pattern or covers([pattern], command)


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("git status && ls -l", ["git status", "ls *"]),
        ("cd src && pytest -q | tail -3; make test", ["cd src", "pytest *", "tail *", "make test"]),
        ("ls a && ls b", ["ls *"]),
        ("ls && python -c 1", []),
        ("ls && rm $X", []),
        ("ls > x && ls", []),
        ("cat install.sh | sh", []),
        ("find . | xargs rm", []),
        ("echo y | make install", []),
        ("ls && cat /proc/1/environ", []),
        ("cat src/a.py > b", []),
        ("a; b; c; d; e", ["a", "b", "c", "d", "e"]),
        ("a; b; c; d; e; f", []),
    ],
)
def test_a_chain_is_offered_with_a_pattern_for_each_of_its_commands_or_not_at_all(
    command: str, patterns: list[str]
) -> None:
    assert offer(command) == patterns
    assert not patterns or covers(patterns, command)
    assert not patterns or not any(
        covers([*patterns[:at], *patterns[at + 1 :]], command) for at in range(len(patterns))
    )


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git grep *", "git grep -Osh foo"),
        ("git grep *", "git grep -nOsh foo"),
        ("git grep *", "git grep --open foo"),
        ("git log *", "git log --output=.bashrc"),
        ("git log *", "git log --outp .bashrc"),
        ("git diff *", "git diff --no-index --output=x a b"),
        ("git show *", "git show --ext-diff"),
        ("git *", "git -c core.pager=x log"),
        ("git *", "git grep -Osh foo"),
        ("git fetch *", "git fetch --upload-pack=./x origin"),
        ("git push *", "git push --receive-pack ./x"),
        ("git ls-remote *", "git ls-remote --upload-pack=./x ."),
        ("git clone *", "git clone -u ./x . y"),
        ("git archive *", "git archive --remote=. --exec=./x HEAD"),
        ("git bisect *", "git bisect run ./x"),
        ("git submodule *", "git submodule foreach ./x"),
        ("git difftool *", "git difftool -x ./x"),
        ("rg *", "rg --pre=./x foo"),
        ("sort *", "sort --compress-program=./x big"),
        ("sort *", "sort -ro .bashrc a"),
        ("fd *", "fd -Hx sh"),
        ("man *", "man -P ./x ls"),
        ("split *", "split --filter=./x a"),
        ("go test *", "go test -exec ./x"),
        ("go test *", "go test --exec=./x"),
        ("go vet *", "go vet -vettool=./x"),
        ("go build *", "go build -toolexec ./x"),
        ("make *", "make test -f other"),
        ("gcc *", "gcc -wrapper ./x a.c"),
        ("zip *", "zip -TT ./x a.zip a"),
        ("tcpdump *", "tcpdump -z ./x"),
        ("cmake *", "cmake -P x.cmake"),
        ("pytest *", "pytest -p evil"),
        ("pytest *", "pytest --junitxml=x"),
        ("cargo test *", "cargo test --config x"),
    ],
)
def test_a_star_covers_no_option_that_runs_or_writes(pattern: str, command: str) -> None:
    assert not problem_of(pattern)
    assert not covers([pattern], command)
    assert covers([command], command)
    assert not any(offered.endswith("*") for offered in offer(command))


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git log *", "git log --oneline -5 HEAD~3..HEAD -- src"),
        ("git grep *", "git grep -n foo"),
        ("sort *", "sort -rn a"),
        ("go test *", "go test ./... -run X -count=1 -v"),
        ("pytest *", "pytest -q -x --maxfail=1 tests/a.py::test_b"),
        ("cat *", "cat src/environ.py proc/a"),
        ("unknown --exec *", "unknown --exec x"),
    ],
)
def test_a_star_covers_the_rest(pattern: str, command: str) -> None:
    assert covers([pattern], command)


def test_a_command_longer_than_can_be_read_is_asked_about() -> None:
    assert not covers(["pytest *"], "pytest " + "a" * 100_000)


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash itself")
@given(st.text(st.sampled_from("ab \t\"'\\;&|<>()#*~{}!=-"), max_size=12))
def test_words_are_those_the_shell_sees(text: str) -> None:
    """Where we read a single command, bash reads the same words: no part of it is run as something else."""
    command = f"printf '%s\\0' {text}"
    if "#" in text:
        return  # a comment changes arguments, not what is run
    found = simple_commands(command)
    if found is None or len(found) != 1:
        return
    run = subprocess.run(["bash", "-c", command], capture_output=True, cwd="/", timeout=20, check=False)
    words = found[0][2:] or [""]
    assert run.stdout.decode().split("\0")[:-1] == words, run.stderr


@pytest.mark.parametrize(
    "command",
    [
        "find . -exec sh -c x",
        "find . -name x -delete",
        "sed -i s/a/b/ x",
        "tar -x --to-command=sh",
        "rsync -e sh a b",
        "ssh -oProxyCommand=sh host",
        "unheard-of --anything",
    ],
)
def test_a_pattern_of_the_users_covers_no_option_of_a_program_that_is_not_known(command: str) -> None:
    program, rest = command.split(" ", 1)
    assert not covers([f"{program} *"], command)
    assert covers([f"{program} *"], f"{program} words")
    option = next(word for word in rest.split() if word.startswith("-"))
    assert covers([f"{program} {option} *"], f"{program} {option} words")
