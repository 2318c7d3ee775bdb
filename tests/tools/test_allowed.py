"""Which commands a saved pattern covers: exactly its words, and never more than one can see."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.tools.allowed import covers, offer, problem_of, simple_commands

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
    ],
)
def test_not_covered(command: str) -> None:
    assert not covers(PATTERNS, command)


@pytest.mark.parametrize(
    "pattern", ["*", "* status", "", "a; b", "a && b", "a | b", "$x", "a > b", "'", "~ x", "A=1 b"]
)
def test_what_is_no_pattern_covers_nothing(pattern: str) -> None:
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
        ("sudo make install", "sudo make install"),
        ("git status && ls", ""),
        ("echo $HOME", ""),
        ("X=1 make", ""),
        ("", ""),
    ],
)
def test_what_is_offered(command: str, pattern: str) -> None:
    assert offer(command) == pattern
    assert not pattern or covers([pattern], command)


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash itself")
@given(st.text(st.sampled_from("ab \t\"'\\;&|<>()#*~{}!=-"), max_size=12))
def test_words_are_those_the_shell_sees(text: str) -> None:
    """Where we read a single command, bash reads the same words: no part of it is run as something else."""
    command = f"printf '%s\\0' {text}"
    if any(c in text for c in "*~{}#"):
        return  # these change arguments, not what is run
    found = simple_commands(command)
    if found is None or len(found) != 1:
        return
    run = subprocess.run(["bash", "-c", command], capture_output=True, cwd="/", timeout=20, check=False)
    words = found[0][2:] or [""]
    assert run.stdout.decode().split("\0")[:-1] == words, run.stderr
