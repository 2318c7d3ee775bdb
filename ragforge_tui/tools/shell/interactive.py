"""Programs that need a terminal, which commands of the agent do not have: refused with what to do instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_SEPARATORS = re.compile(r"[();<>|&\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = frozenset({"sudo", "env", "time", "nohup", "exec", "command", "nice", "setsid"})
_EDITORS = frozenset({"vi", "vim", "nvim", "nano", "pico", "emacs", "micro", "hx", "joe"})
_PAGERS = frozenset({"less", "more", "most"})
_WATCHERS = frozenset({"htop", "btop", "iotop", "watch", "tmux", "screen", "tig", "lazygit", "mc", "ranger"})
_SHELLS = re.compile(r"python[\d.]*|ipython|node|irb|bash|sh|zsh|fish|psql|mysql|sqlite3|ghci|lua|julia|R")
_START = "Start it with background: true in a form that reads a pipe, such as python3 -iu, and send it input."


def interactive_program(command: str) -> tuple[str, str]:
    """Return the program of a command that needs a terminal, with what to do instead; twice nothing if none does.

    A guess that spares the model a command that hangs or shows nothing, no protection.
    """
    before = ""
    for separator, words in _simple_commands(command):
        fed = before.strip() == "|" or "<" in separator
        if words and not fed and (found := _needs_terminal(words)):
            return found
        before = separator[-1:]
    return "", ""


def _simple_commands(command: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a chain, each with the separators around it; those in a here document are left out."""
    lexer = shlex.shlex(command.partition("<<")[0], posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    found: list[tuple[str, list[str]]] = []
    current: list[str] = []
    for word in words:
        if not _SEPARATORS.fullmatch(word):
            current.append(word)
            continue
        found.append((word, current))
        current = []
    found.append(("<" if "<<" in command else "", current))
    return found


def _needs_terminal(words: Sequence[str]) -> tuple[str, str] | None:
    words = list(words)
    if any(word.startswith(("GIT_SEQUENCE_EDITOR=", "GIT_EDITOR=")) for word in words):
        return None
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES):
        del words[0]
    if not words:
        return None
    name, arguments = words[0].rpartition("/")[2], words[1:]
    options = [word for word in arguments if word.startswith("-")]
    plain = [word for word in arguments if not word.startswith("-")]
    if any(option in ("--version", "--help") for option in options):
        return None
    if name in _EDITORS and not ({"-es", "-Es", "--batch", "--headless"} & set(options)):
        return name, "Change files with edit_file or write_file."
    if name in _PAGERS:
        return name, "Read files with read_file, or with head, tail or sed -n."
    if name == "top" and not any("b" in option or "l" in option for option in options):
        return name, "Use ps aux, or top -b -n 1."
    if name in _WATCHERS:
        return name, "Run what it shows as a command of its own; start one that goes on with background: true."
    if name in ("ssh", "telnet") and len(plain) < 2 and not options:
        return name, "Give the command to run on the other host, as in ssh -o BatchMode=yes HOST COMMAND."
    if name == "git":
        return _git(arguments)
    if _SHELLS.fullmatch(name) and not arguments:
        return name, f"Give it a script, or code with -c or -e. {_START}"
    return None


def _git(arguments: list[str]) -> tuple[str, str] | None:
    kind = next((word for word in arguments if not word.startswith("-")), "")
    given = set(arguments)
    if kind == "rebase" and given & {"-i", "--interactive"}:
        return "git rebase -i", "Use git rebase --onto, git reset --soft, or git commit --fixup with --autosquash."
    patched = kind in ("add", "checkout", "reset", "restore", "stash", "commit") and given & {"-p", "--patch"}
    if patched or (kind == "add" and given & {"-i", "--interactive"}):
        return f"git {kind} in its interactive form", "Name the files, or apply a patch with git apply --cached."
    return None
