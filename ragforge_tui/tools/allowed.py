"""Commands the user allows for good (`tools.allow_commands`), and what counts as one of them.

A pattern is words, split as a shell splits them. A command matches when it has exactly these words; a last word `*`
stands for any further words, none included. Nothing else in a pattern is special, and its first word is a name.

A command is allowed only when nothing in it can mean more than its words say: every simple command of a chain
(`;`, `&&`, `||`, `|`) has to match by itself, and whatever holds `$`, a backtick, a line end, another control
character, a redirection, a group, `&` or what a shell replaces by names of files (`*`, `?`, `[`, `{`, `~`) is asked
about, quoted or not. Where our reading and the shell's could differ the command is asked about too. The words a `*`
stands for name no option that runs a program or writes a file (`command_options`), and nothing that holds secrets.
Used by the approvals; pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ragforge_tui.redaction import mask_secrets
from ragforge_tui.tools.command_options import NOT_OFFERED, WRITING_OPTIONS
from ragforge_tui.tools.workspace import is_secret

# A tilde within a word (`HEAD~1`) is one; anywhere else it may stand for a folder.
_REFUSED = re.compile(r"[$`*?\[{\x00-\x08\x0a-\x1f\x7f-\x9f]|(?<![A-Za-z0-9])~")
_PUNCTUATION = ";&|<>()"
_CHAINS = frozenset({";", "&&", "||", "|"})
_NAME = re.compile(r"[\w./+-]+")
_LONGEST = 10_000
"""Characters of a command that is read; splitting takes time with the square of a word's length."""

_WITH_SUBCOMMANDS = frozenset(name.split()[0] for name in WRITING_OPTIONS if " " in name)

_CODE_OPTIONS = {
    **dict.fromkeys(("bash", "dash", "fish", "ksh", "python", "pypy", "sh", "zsh"), "c"),
    **dict.fromkeys(("lua", "perl", "ruby"), "eE"),
    **dict.fromkeys(("bun", "deno", "node"), "ep"),
    "php": "rBRE",
}
"""Programs that take code as an argument, and the letters of the options for it: such a call is not offered."""


def simple_commands(command: str) -> list[list[str]] | None:
    """Return the words of each simple command of a chain; None when it is anything the user should see."""
    if len(command) > _LONGEST or _REFUSED.search(command):
        return None
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    try:
        for token in lexer:
            # Quoted, these would be words to the shell; taken for operators they only make more to be matched.
            if token in _CHAINS:
                found.append([])
            elif token and not token.strip(_PUNCTUATION):
                return None
            else:
                found[-1].append(token)
    except ValueError:
        return None
    return found if all(found) else None


def problem_of(pattern: str) -> str:
    """Return what is wrong with a pattern, empty when nothing is."""
    words = _words(pattern)
    if words is None:
        return "it is not one plain command"
    if not _NAME.fullmatch(words[0]):
        return "its first word is not the name of a program"
    return ""


def covers(patterns: Iterable[str], command: str) -> bool:
    """Return whether a command may run without being asked about."""
    commands = simple_commands(command)
    if commands is None:
        return False
    wanted = [words for pattern in patterns if not problem_of(pattern) and (words := _words(pattern))]
    return all(any(_matches(pattern, words) for pattern in wanted) for words in commands)


def offer(command: str) -> str:
    """Return the pattern the user could allow for good after this command; empty when none is worth it."""
    commands = simple_commands(command)
    if commands is None or len(commands) > 1 or not _NAME.fullmatch(commands[0][0]) or _gives_code(commands[0]):
        return ""
    words = commands[0]
    known = _known(words)
    kept = words[: len(known.split())] if known else words
    for pattern in (shlex.join(kept) + (" *" if len(words) > len(kept) else ""), shlex.join(words)):
        if mask_secrets(pattern) == pattern and not problem_of(pattern) and covers([pattern], command):
            return pattern
    return ""


def _gives_code(words: list[str]) -> bool:
    letters = _CODE_OPTIONS.get(re.sub(r"[\d.]+$", "", words[0].rpartition("/")[2]), "")
    return bool(letters) and any(
        word in ("--eval", "--print", "eval") or (re.match("-[^-]", word) and not set(letters).isdisjoint(word))
        for word in words[1:]
    )


def _known(words: list[str]) -> str:
    """Return the entry of `WRITING_OPTIONS` a command belongs to, empty for none."""
    return next((name for name in (" ".join(words[:2]), words[0]) if name in WRITING_OPTIONS), "")


def _words(pattern: str) -> list[str] | None:
    """Return the words of a pattern, the last one `*` where it ends so; None when it is no plain command."""
    fixed, any_further = pattern.rstrip(" \t"), False
    if fixed.endswith((" *", "\t*")):
        fixed, any_further = fixed[:-2], True
    commands = simple_commands(fixed)
    if commands is None or len(commands) > 1:
        return None
    return [*commands[0], "*"] if any_further else commands[0]


def _matches(pattern: list[str], words: list[str]) -> bool:
    if pattern[-1] != "*":
        return words == pattern
    fixed = pattern[:-1]
    return words[: len(fixed)] == fixed and not _says_more(words, len(fixed))


def _says_more(words: list[str], fixed: int) -> bool:
    """Return whether the words a `*` stands for may run a program, write a file or show a secret."""
    program = words[0].rpartition("/")[2]
    further = words[fixed:]
    if program in _WITH_SUBCOMMANDS and fixed == 1 and further and further[0].startswith("-"):
        return True  # an option before the subcommand, such as git's -c
    asked = {**NOT_OFFERED, **WRITING_OPTIONS}
    options = asked.get(" ".join([program, *words[1:2]])) or asked.get(program, ())
    return any(_is_one_of(word, options) or _shows_secret(word) for word in further)


def _is_one_of(word: str, options: tuple[str, ...]) -> bool:
    """Return whether a word gives one of these options, also abbreviated, with its value, or among other letters."""
    given = word.partition("=")[0]
    if not given.startswith("-") or given in ("-", "--"):
        return given in options
    name = given.lstrip("-")
    if any(len(option) > 2 and option[1] != "-" for option in options):
        # Words with one dash, as Go's: with two they mean the same, and letters are not put together.
        return any(name == option[1:] or (len(option) > 2 and name.startswith(option[1:])) for option in options)
    if given.startswith("--"):
        return any(option.startswith(given) for option in options if len(option) > 2)
    return any(option[1] in name for option in options if len(option) == 2)


def _shows_secret(word: str) -> bool:
    value = word.rpartition("=")[2]
    return "/proc/" in word or is_secret(value)
