"""Rules of the user about tool calls, as the settings, the screen and the command line write them.

    allow @tests in /home/me/project
    deny git push *
    ask write(docs/)

The first word is the effect; a folder at the end limits the rule to that workspace. Between them is what the rule is
about: a kind of program, a command, a tool, or a tool with a pattern for its path or main argument.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

Effect = Literal["allow", "ask", "deny"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
PROGRAMS: dict[str, str] = {
    "@tests": "running tests",
    "@checks": "running linters and type checkers",
    "@format": "running formatters",
}
"""Kinds of programs that rules know, and what is allowed with them."""
COMMANDS = "run_command"
"""The tool whose pattern is a command."""
WRITES = "write"
"""Stands for all tools that write files."""
_OF_TOOL = re.compile(r"(\w+)\((.+)\)")
_FOLDER = re.compile(r"(.+\S)\s+in\s+([/~].*)")


class Rule(msgspec.Struct, frozen=True):
    """One rule.

    Attributes:
        about: What it is about, as written.
        folder: The workspace that it is for, empty for all.
    """

    effect: Effect
    about: str
    folder: str = ""

    def __str__(self) -> str:
        """Return the rule as it is written."""
        return f"{self.effect} {self.about}" + (f" in {self.folder}" if self.folder else "")

    @property
    def tool(self) -> str:
        """The tool of the form ``tool(pattern)``; empty for another form."""
        found = _OF_TOOL.fullmatch(self.about)
        return found[1] if found else ""

    @property
    def pattern(self) -> str:
        """What the tool's path, command or main argument must match; all of the rule for another form."""
        found = _OF_TOOL.fullmatch(self.about)
        return found[2] if found else self.about


def parse_rule(text: str) -> Rule:
    """Return a rule.

    Raises:
        ValueError: The text is none; the message says why, as a clause.
    """
    effect, _, about = text.strip().partition(" ")
    known = next((one for one in EFFECTS if one == effect), None)
    if known is None:
        raise ValueError("it does not begin with allow, ask or deny")
    found = _FOLDER.fullmatch(about.strip())
    about, folder = (found[1], found[2].rstrip("/") or "/") if found else (about.strip(), "")
    if not about:
        raise ValueError("it names no tool, command or kind of program")
    if about.startswith("@") and about not in PROGRAMS:
        raise ValueError(f"the kinds of programs are {', '.join(PROGRAMS)}")
    return Rule(known, about, folder)
