"""Commands that only read the workspace, and so run without a question in every mode.

A command counts if every simple command of its chain is one of `READING`, names no option that runs a program or
writes a file, and stays in the workspace, away from secrets: the judgement that a pattern such as `cat *` gets. Its
program must be the system's, since the workspace may hold one of the same name, and git must have nothing to run: a
repository's own settings and submodules can name programs. This is to ask about what would not work anyway: where there
are namespaces, such a command runs in a sandbox in which it can do nothing but read.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
from pathlib import Path

from ragforge_tui.conversation.approvals.allowed_commands import (
    Placed,
    placed_commands,
    refusal,
    without_redirections,
)
from ragforge_tui.shared.git import runs_nothing
from ragforge_tui.tools.sensitive import SEARCHING, Guard
from ragforge_tui.tools.shell.search_path import search_path

_GIT = ("--submodule", "--recurse-submodules", "--show-signature", "--ext-diff", "--textconv", "--output")
_FIND = (
    *("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"),
    *("-L", "-follow"),
)
_GREP = ("-d", "--directories", "-R", "--dereference-recursive")
_LISTED = ("-c", "--check", "-f", "--files-from", "--files0-from")
"""Options that name a file with the names of files to read."""
READING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("basename", "cat", "cmp", "comm", "cut", "dirname", "echo", "expand", "fd", "fdfind"), ()),
    **dict.fromkeys(("fold", "head", "hexdump", "ls", "nl", "od", "paste", "pwd", "readlink", "realpath", "rev"), ()),
    **dict.fromkeys(("rg", "stat", "tac", "tr", "tree", "type", "which"), ()),
    **dict.fromkeys(("egrep", "fgrep", "grep"), _GREP),
    **dict.fromkeys(("file", "md5sum", "sha1sum", "sha256sum", "sha512sum"), _LISTED),
    **dict.fromkeys(("sort", "wc"), ("--files0-from",)),
    "diff": ("-r", "--recursive"),
    "tail": ("-f", "-F", "--follow", "--retry"),
    "find": _FIND,
    **dict.fromkeys(("git blame", "git describe", "git diff", "git log", "git ls-files"), _GIT),
    "git grep": (*_GIT, "--no-index", "--untracked"),
    **dict.fromkeys(("git ls-tree", "git rev-list", "git rev-parse", "git shortlog", "git show"), _GIT),
    "git status": _GIT,
}
"""Programs that only read, by program or by program and subcommand, with options that are asked about besides those in
`WRITING_OPTIONS`. Source: the programs' own manuals."""
_EXACT = (
    re.compile(r"sed -n \d+(,\d+)?p( [^-\s]\S*)*"),
    re.compile(r"git branch( (-a|-r|-v|-vv|--list|--all|--remotes|--show-current))*"),
    re.compile(r"git (remote( -v)?|stash list|tag( -l| --list)?|worktree list)"),
    re.compile(r"(cargo|gcc|git|java|make|node|npm|pip3?|python3?|ruby|rustc|uv) (--version|-V)"),
)
"""Commands of which only these forms read."""
_GREP_LETTERS = re.compile(r"-[EFGHIPchilnoqrsvwx]*([ABCm]\d+)?")
_RG_LETTERS = re.compile(r"-[FHINPSUcilnoqsvwx]*([ABCm]\d+)?")
_PLAIN_WORDS = re.compile(r"--[a-z-]+=.*|--(recursive|line-number|ignore-case|files-with-matches|count|word-regexp)")
"""Options of searches that have no value of their own, or have it in the same word."""
_BUILT_IN = frozenset({"echo", "pwd", "type"})
_WORK_TREE = frozenset({"git describe", "git diff", "git status", "git stash"})
_SIGNATURE = "%G"
"""In a format of git: the state of a signature, for which git runs gpg."""


_HERE = re.compile(r"cd ([\w./-]+) && ")
_MOVES = re.compile(r"\b(?:cd|pushd)\b")
_QUOTES = re.compile(r"'[^']*'|\"[^\"]*\"")
_WILDCARD = re.compile(r"(?<![^\s])(?![-/])[\w./-]*[*?][\w./*?-]*(?![^\s;])")
"""A word that the shell replaces by the names of files, and that is nothing but letters, separators, `*` and `?`."""


def only_reads(command: str, guard: Guard) -> bool:
    """Return whether a command only reads the workspace; blocks, as it looks at files and asks git."""
    commands = placed_commands(_with_names(without_redirections(command), guard), guard, quoted=True)
    return bool(commands) and all(reads(placed, guard) for placed in commands)


def _with_names(command: str, guard: Guard) -> str:
    """Return a command with the names of the workspace's files in place of wildcards, as the shell will put them.

    The command stays as it is where the shell's answer could be another one: with a change of folder, a backslash, or
    a name that would be read as an option.
    """
    here = _HERE.match(command)
    if here is not None and os.path.realpath(here[1]) == os.path.realpath(guard.root):
        command = command[here.end() :]
    if "\\" in command or _MOVES.search(command):
        return command
    # In place of quoted text stands as much of something else, so that a word next to it is not taken for a whole one.
    open_text = _QUOTES.sub(lambda found: "Q" * len(found[0]), command)
    pieces, end = [], 0
    for word in _WILDCARD.finditer(open_text):
        # As in the shell, names that begin with a dot are not found.
        names = sorted(glob.glob(word[0], root_dir=guard.root)) if ".." not in word[0] else []  # noqa: PTH207
        if not names or any(name.startswith("-") for name in names):
            return command
        pieces += [command[end : word.start()], shlex.join(names)]
        end = word.end()
    return "".join([*pieces, command[end:]])


def reads(placed: Placed, guard: Guard) -> bool:
    """Return whether a simple command only reads the workspace; blocks."""
    words = placed.words
    if words[0] == "cd":
        # Where it leads is judged with the commands behind it.
        return len(words) == 2 and not words[1].startswith("-")
    entry = next((name for name in (" ".join(words[:2]), words[0]) if name in READING), "")
    fixed = len(entry.split())
    if entry:
        pattern, options = [*words[:fixed], "*"], READING[entry]
    elif any(form.fullmatch(" ".join(words)) for form in _EXACT):
        pattern, options = [words[0], "*"] if words[0] == "sed" else words, ()
    else:
        return False
    if refusal(pattern, placed, guard, options):
        return False
    if words[0] in SEARCHING and not _avoids_secrets(words, placed, guard):
        return False
    # A manager of versions, as in the home, is itself a program that reads a setting of the workspace.
    closed = [guard.root] if entry else [guard.root, guard.home]
    if words[0] not in _BUILT_IN and any(_is_inside(_program(words[0], guard), folder) for folder in closed):
        return False
    if words[0] == "git" and any(_SIGNATURE in word for word in words):
        return False
    with_work_tree = " ".join(words[:2]) in _WORK_TREE
    return words[0] != "git" or all(runs_nothing(Path(one), work_tree=with_work_tree) for one in placed.folders)


def _program(name: str, guard: Guard) -> str | None:
    """Return the program that a command would run."""
    return shutil.which(name, path=search_path(Path(guard.root), os.environ.get("PATH", os.defpath)))


def _avoids_secrets(words: list[str], placed: Placed, guard: Guard) -> bool:
    """Return whether a search reads no file with secrets below the folders it goes through."""
    options = [word for word in words[1:] if word.startswith("-")]
    recursive = words[0] == "rg" or any(word.startswith("--r") or "r" in word.partition("=")[0] for word in options)
    if not recursive:
        return True
    # Whether a word is a pattern or a path must be certain: the values of options come with them.
    letters = _RG_LETTERS if words[0] == "rg" else _GREP_LETTERS
    if any(not (letters.fullmatch(word) or _PLAIN_WORDS.fullmatch(word)) for word in options):
        return False
    paths = [word for word in words[1:] if not word.startswith("-")][1:]
    return all(
        guard.is_free_of_secrets(os.path.join(folder, path))  # noqa: PTH118 - paths are judged as written
        for folder in placed.folders
        for path in paths or [""]
    )


def _is_inside(program: str | None, folder: str) -> bool:
    """Return whether a program is in a folder, also by a link; one that does not exist does no harm."""
    return program is not None and any(
        path.startswith(folder.rstrip("/") + "/")
        for path in (os.path.abspath(program), os.path.realpath(program))  # noqa: PTH100 - links are kept
    )
