"""Commands the person allows for good (`tools.allow_commands`), and what counts as one of them.

A pattern is words, split as a shell splits them. A command matches when it has exactly these words; a last word `*`
stands for any further words, none included. Nothing else in a pattern is special, and its first word is a name.

A command is allowed only when nothing in it can mean more than its words say: every simple command of a chain
(`;`, `&&`, `||`, `|`) has to match by itself, and whatever holds `$`, a backtick, a line end, another control
character, a redirection, a group or `&` is asked about, quoted or not. Where our reading and the shell's could differ
the command is asked about too. Used by the approvals; pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ragforge_tui.redaction import mask_secrets

_REFUSED = re.compile(r"[$`\x00-\x08\x0a-\x1f\x7f-\x9f]")
_PUNCTUATION = ";&|<>()"
_CHAINS = frozenset({";", "&&", "||", "|"})
_NAME = re.compile(r"[\w./+-]+")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")

_WITH_SUBCOMMANDS = frozenset(
    [
        "apt",
        "brew",
        "bun",
        "cargo",
        "conda",
        "deno",
        "docker",
        "dotnet",
        "flutter",
        "gh",
        "git",
        "go",
        "gradle",
        "helm",
        "hg",
        "just",
        "kubectl",
        "make",
        "meson",
        "mvn",
        "npm",
        "pip",
        "pipx",
        "pnpm",
        "poetry",
        "rustup",
        "svn",
        "terraform",
        "tox",
        "uv",
        "yarn",
    ]
)
"""Their first argument says what is done, so it belongs to the pattern that is offered."""
_RUNS_ANYTHING = frozenset(["api", "config", "dlx", "eval", "exec", "filter-branch", "rebase", "run", "script", "x"])
"""Subcommands that run, or set up to be run, whatever is named after them: offered as they stand too."""
_ANYTHING = frozenset(
    [
        ".",
        "alias",
        "at",
        "awk",
        "bash",
        "batch",
        "builtin",
        "busybox",
        "cd",
        "chmod",
        "chown",
        "chroot",
        "command",
        "coproc",
        "cp",
        "crontab",
        "curl",
        "dash",
        "dd",
        "declare",
        "doas",
        "ed",
        "emacs",
        "enable",
        "env",
        "eval",
        "exec",
        "expect",
        "export",
        "find",
        "fish",
        "flock",
        "gawk",
        "gdb",
        "hash",
        "install",
        "ionice",
        "ksh",
        "ln",
        "lua",
        "mawk",
        "mv",
        "nawk",
        "nice",
        "node",
        "nohup",
        "npx",
        "nvim",
        "osascript",
        "parallel",
        "perl",
        "php",
        "pkexec",
        "powershell",
        "pushd",
        "pwsh",
        "python",
        "python3",
        "rm",
        "rsync",
        "ruby",
        "runuser",
        "scp",
        "screen",
        "script",
        "sed",
        "set",
        "setsid",
        "sh",
        "shopt",
        "source",
        "ssh",
        "stdbuf",
        "strace",
        "su",
        "sudo",
        "systemctl",
        "systemd-run",
        "tar",
        "taskset",
        "tclsh",
        "tee",
        "time",
        "timeout",
        "tmux",
        "trap",
        "truncate",
        "typeset",
        "unlink",
        "unshare",
        "uvx",
        "vi",
        "vim",
        "watch",
        "wget",
        "xargs",
        "zsh",
    ]
)
"""With other arguments they do anything at all, or change what later words mean: offered as they stand."""


def simple_commands(command: str) -> list[list[str]] | None:
    """The words of each simple command of a chain; None when it is anything a person should see."""
    if _REFUSED.search(command):
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
    """What is wrong with a pattern, empty when it is one."""
    words = _words(pattern)
    if words is None:
        return "it is not one plain command"
    if not _NAME.fullmatch(words[0]):
        return "its first word is not the name of a program"
    return ""


def covers(patterns: Iterable[str], command: str) -> bool:
    """Whether a command may run without being asked about."""
    commands = simple_commands(command)
    if commands is None:
        return False
    wanted = [words for pattern in patterns if not problem_of(pattern) and (words := _words(pattern))]
    return all(any(_matches(pattern, words) for pattern in wanted) for words in commands)


def offer(command: str) -> str:
    """The pattern a person could allow for good after this command; empty when there is none worth offering."""
    commands = simple_commands(command)
    if commands is None or len(commands) > 1 or not _NAME.fullmatch(commands[0][0]):
        return ""
    words = commands[0]
    name = words[0].rpartition("/")[2]
    if name in _ANYTHING or re.fullmatch(r"(python|pypy|ruby|perl|php|lua)[\d.]*", name):
        kept, rest = words, False
    elif name in _WITH_SUBCOMMANDS and len(words) > 1:
        is_subcommand = bool(_SUBCOMMAND.fullmatch(words[1])) and words[1] not in _RUNS_ANYTHING
        kept, rest = (words[:2], len(words) > 2) if is_subcommand else (words, False)
    else:
        kept, rest = words[:1], len(words) > 1
    if not rest and kept[-1] == "*":
        return ""  # as a pattern it would say more than the command does
    pattern = shlex.join(kept) + (" *" if rest else "")
    if mask_secrets(pattern) != pattern:
        return ""
    return pattern if not problem_of(pattern) and covers([pattern], command) else ""


def _words(pattern: str) -> list[str] | None:
    commands = simple_commands(pattern)
    return commands[0] if commands is not None and len(commands) == 1 else None


def _matches(pattern: list[str], words: list[str]) -> bool:
    if len(pattern) > 1 and pattern[-1] == "*":
        return words[: len(pattern) - 1] == pattern[:-1]
    return words == pattern
