"""Simple commands of a command line, as words.

A simple command is one program with its words; a command line joins them by pipes, chains, groups and lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST_CHARS = 2_000
"""A longer command is a script, and no two scripts are alike."""
_OPERATORS = frozenset(";&|<>()\n")
_BETWEEN = frozenset(";&|()\n")
_REDIRECTED = re.compile(r"(?<=\s)(?:2>&1|(?:[12]|&)?> ?/dev/null)(?=\s|$)")
_HERE = re.compile(r"^\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*&&\s*")
VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)(?:\d+(?:\.\d+)*)?$")
_RUNNERS = frozenset(
    {
        ("uv", "run"),
        ("poetry", "run"),
        ("pdm", "run"),
        ("pipenv", "run"),
        ("hatch", "run"),
        ("bundle", "exec"),
        ("npx",),
    }
)


def names(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


_BEFORE = names("time nice env sudo nohup command exec")
_WITH_PARTS = names(
    "apt brew bun bundle cargo composer conda deno docker dotnet flask gem gh git go gradle helm hg jj just kubectl "
    "make manage.py mix mvn npm pip pip3 pnpm poetry rake ruff rustup sbt svn systemctl task terraform tox uv yarn"
)
"""Programs whose first word names the task."""
_SCRIPTS = names("bash deno node perl php ruby sh zsh")
"""Programs that run the file they are given."""


class Command(NamedTuple):
    """A simple command.

    Attributes:
        start: The words that start it, such as ``.venv/bin/python -m pytest`` or ``npm install``.
        program: Its name, with its subcommand or script.
        rest: The words after them.
        variables: What is set before it.
    """

    start: tuple[str, ...]
    program: str
    rest: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """All of it that makes a difference, in order."""
        return [*self.variables, *self.start, *self.rest]

    @property
    def name(self) -> str:
        """The program without its subcommand."""
        return self.program.split()[0]


def command_of(text: str) -> Command | None:
    """Return a simple command; None for a chain, a pipe, a group and everything that has none of our words."""
    if len(text) > MOST_CHARS or "\n" in text.strip():
        return None
    return _parsed(_REDIRECTED.sub("", _HERE.sub("", text, count=1)))


def commands_in(text: str) -> Iterator[Command]:
    """Yield the simple commands of a chain, a pipe, a group or several lines, without those in quotes."""
    if len(text) > MOST_CHARS:
        return
    part: list[str] = []
    for word in [*_split(_REDIRECTED.sub("", text.replace("\\\n", " "))), ";"]:
        if set(word) <= _BETWEEN:
            if part and (found := _of_words(part)) is not None:
                yield found
            part = []
        else:
            part.append(word)


def _parsed(text: str) -> Command | None:
    words = _split(text)
    if not words or any(set(word) <= _OPERATORS for word in words):
        return None
    return _of_words(words)


def _split(text: str) -> list[str]:
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="".join(_OPERATORS))
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:
        return []


def _of_words(words: Sequence[str]) -> Command | None:
    rest = list(words)
    variables: list[str] = []
    while rest and VARIABLE.fullmatch(rest[0]):
        variables.append(rest.pop(0))
    while rest and rest[0] in _BEFORE:
        rest.pop(0)
    if rest[:1] == ["timeout"]:
        rest = rest[2:]
    start: list[str] = []
    for runner in _RUNNERS:
        if tuple(rest[: len(runner)]) == runner and len(rest) > len(runner) and not rest[len(runner)].startswith("-"):
            start, rest = list(runner), rest[len(runner) :]
            break
    if not rest or set(rest[0]) & _OPERATORS or rest[0].startswith(("$", "`", "-")):
        return None
    if _PYTHON.match(rest[0]):
        start.append(rest.pop(0))
        if rest[:1] == ["-m"] and len(rest) > 1:
            start.append(rest.pop(0))
        elif not rest or rest[0].startswith("-"):
            return None
    start.append(rest.pop(0))
    program = start[-1] if start[-1].endswith((".py", ".sh")) else start[-1].rpartition("/")[2]
    if (program in _WITH_PARTS or program in _SCRIPTS) and rest and not rest[0].startswith("-"):
        start.append(rest.pop(0))
        program = f"{program} {start[-1]}"
    return Command(tuple(start), program, tuple(rest), tuple(variables))
