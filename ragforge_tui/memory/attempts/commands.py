"""Difference between a command that failed and one that worked.

Only simple commands are compared: in a chain or a pipe it is unknown which part failed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ragforge_tui.shared.attempt_records import AttemptOutcome
from ragforge_tui.shared.command_words import VARIABLE, Command, commands_in, names

NOT_FOUND = re.compile(r"command not found|: not found\b|No module named ['\"]?([\w.]+)")
USAGE = re.compile(
    r"unrecogni[sz]ed (?:argument|option|subcommand|command)|(?:unknown|invalid|illegal|unexpected|ambiguous) "
    r"(?:option|argument|flag|command|subcommand)|no such (?:option|command)|is not a \w+ command|^usage: |"
    r"flag provided but not defined|(?:following arguments|arguments?|option) (?:are|is) required|Missing option|"
    r"requires an argument|Unknown command",
    re.IGNORECASE | re.MULTILINE,
)
"""Messages of programs about words that they do not understand."""
ONE_OFF = names(
    "[ ack awk basename cat cd chmod chown cmp column comm cp curl cut date dd df diff dirname du echo env export "
    "false fd file find for git grep head hexdump hg id if jq kill less ln ls mkdir more mv nc od ping printf ps pwd "
    "read readlink realpath rg rm rmdir rsync scp sed seq set sleep sort ssh stat svn tail tar tee test touch tr tree "
    "true type uname uniq unzip wc wget which while xargs xxd yes zip"
)
"""Programs whose calls have nothing to do with each other: one needs other words because it does something else."""
_WRITING = names(
    "chmod chown cp curl dd find git kill ln mkdir mv rm rmdir rsync scp sed ssh svn tar tee touch unzip wget xargs zip"
)
"""Of these, programs that may change something."""
_READING_GIT = frozenset({"git status", "git log", "git diff", "git show", "git blame", "git branch", "git grep"})
_NO_DIFFERENCE = re.compile(
    r"-[qvsx]+|-[klm]|--(?:quiet|verbose|silent|tb|no-header|color|no-color|colour|lf|ff|last-failed|failed-first|"
    r"maxfail|exitfirst|deselect|ignore|ignore-glob|exclude|filter|only|skip|grep|testNamePattern|testPathPattern|"
    r"select|extend-ignore|durations|bail|fail-fast|failfast|stop-at-first-failure|no-summary|capture|keep-going)"
    r"(?:=.*)?|-run|-rA|-r\w|-j\d*|-k.+",
)
"""Options that choose what is run or how it is shown; the success of a smaller run proves nothing about the larger."""
_DOES_NOTHING = re.compile(
    r"-h|--help|-V|--version|--dry-run|-n|--collect-only|--co|--list|--list-tests|--print-config|--show-config"
)
"""Options with which a program succeeds because it does not do the work."""


class Difference(NamedTuple):
    """The cause of a command's success after an earlier failure.

    Attributes:
        key: What a command has in common with the one that failed.
        words: The words that it needs, or must not have, or the whole command that worked.
    """

    outcome: AttemptOutcome
    key: str
    words: str


def difference(failed: Command, worked: Command, *, output: str, status: int | None) -> Difference | None:
    """Return the words that made a failed command work; None if that is doubtful.

    Nothing was written between the two. `output` is what the failed one printed.
    """
    if any(_DOES_NOTHING.fullmatch(word) for word in worked.rest):
        return None
    if failed.start != worked.start and failed.program == worked.program and (key := _missing(failed, output, status)):
        only_first = failed.start[1:] == worked.start[1:]
        return Difference("missing", key, worked.start[0] if only_first else shlex.join(worked.start))
    if failed.name in ONE_OFF or worked.name in ONE_OFF:
        return None
    usage = USAGE.search(output) is not None
    if failed.start != worked.start:
        same = failed.name == worked.name and usage and failed.program != worked.program
        return Difference("other", failed.program, shlex.join(worked.words)) if same else None
    added, removed = _changes([*failed.variables, *failed.rest], [*worked.variables, *worked.rest])
    if added and not removed and all(_is_option(run) for run in added):
        needed = [run for run in added if not _NO_DIFFERENCE.fullmatch(run[0])]
        return Difference("needed", failed.program, " ".join(map(" ".join, needed))) if needed else None
    if removed and not added and usage and all(_is_option(run) for run in removed):
        return Difference("extra", failed.program, " ".join(map(" ".join, removed)))
    return None


def _missing(failed: Command, output: str, status: int | None) -> str:
    """Return the key of commands that fail because the same program is missing; empty if none is."""
    found = NOT_FOUND.search(output)
    if status == 127 or (found is not None and not found[1]):
        return f"!{failed.start[0]}"
    return f"!{' '.join(failed.start)}" if found is not None and found[1] == failed.name else ""


def only_looks(text: str) -> bool:
    """Return whether a command surely changes nothing that another one could depend on."""
    found = list(commands_in(text))
    return bool(found) and ">" not in text and all(_reads(command) for command in found)


def _reads(command: Command) -> bool:
    return command.program in _READING_GIT or (command.name in ONE_OFF and command.name not in _WRITING)


def without_noise(command: Command) -> list[str]:
    """Return the words of a command without options that only choose how its output looks."""
    return [word for word in command.words if not re.fullmatch(r"-[qvs]+|--(?:quiet|verbose|color.*|tb=\w+)", word)]


def keys_of(command: Command) -> list[str]:
    """Return the keys under which attempts about such a command are stored."""
    return list(dict.fromkeys([command.program, f"!{command.start[0]}", f"!{' '.join(command.start)}"]))


def _changes(before: Sequence[str], after: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the runs of words that were added and removed, each a new option with its value where it has one."""
    added: list[list[str]] = []
    removed: list[list[str]] = []
    for tag, low, high, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += _runs(before[low:high])
            added += _runs(after[start:end])
    return added, removed


def _runs(words: Sequence[str]) -> list[list[str]]:
    runs: list[list[str]] = []
    for word in words:
        takes_value = bool(runs) and len(runs[-1]) == 1 and runs[-1][0].startswith("-") and "=" not in runs[-1][0]
        if takes_value and not word.startswith("-"):
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _is_option(run: Sequence[str]) -> bool:
    return run[0].startswith("-") or VARIABLE.fullmatch(run[0]) is not None
