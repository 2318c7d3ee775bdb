"""Patterns of commands in the user's rules, and the matching of commands against them.

A pattern consists of words, split as by a shell. A command matches if it has exactly these words; `*` as the last word
matches any number of further words, including none. Nothing else in a pattern is special, and its first word is the
name of a program.

A command is allowed only if nothing in it can have more effect than its words. Every simple command of a chain (`;`,
`&&`, `||`, `|`) must match by itself. A command needs approval if it contains, quoted or not, `$`, a backtick, a line
end, another control character, a redirection, a group, `&` or a character that a shell expands to file names (`*`,
`?`, `[`, `{`, `~`). It also needs approval wherever our parsing and the shell's could differ. The words that a `*`
matches must not name an option that runs a program or writes a file (`WRITING_OPTIONS`). No word may name a file with
secrets, a file of this program or a file with options (`@file`), and none of a `*` or of a program that reads files may
lead out of the workspace (`Guard`); then the exact command can still be allowed for the session.

A project's settings can never add a pattern: the loader of the settings rejects the key there.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import revealed
from ragforge_tui.tools.sensitive import BECAUSE, Guard

# A tilde within a word (`HEAD~1`) is literal; anywhere else a shell may expand it to a folder.
_REFUSED = re.compile(r"[$`*?\[{\x00-\x08\x0a-\x1f\x7f-\x9f]|(?<![A-Za-z0-9])~")
_QUOTED = re.compile(r"'[\x20-\x7e\xa0-\U0010ffff]*?'|\"[\x20-\x21\x23-\x7e\xa0-\U0010ffff]*\"")
_QUOTES = re.compile(r"('[^']*'|\"[^\"]*\")")
_REDIRECTION = re.compile(r"(?<=[ \t])(?:2>&1|(?:[12]|&)?> ?/dev/null)(?=[ \t;|]|$)")
_PUNCTUATION = ";&|<>()"
_CHAINS = frozenset({";", "&&", "||", "|"})
_NAME = re.compile(r"[\w./+-]+")
MOST_OFFERED = 5
"""Patterns that are offered at once: more are not read before they are saved."""
_LONGEST = 10_000
"""Longest command that is parsed, in characters; splitting takes time quadratic in a word's length."""
_NAMED = 80
"""Characters of a word that a question names; the whole command is shown below it."""

_GIT_DIFF = ("--output", "--ext-diff", "--textconv")
_GO = (
    *("-exec", "-toolexec", "-vettool", "-o", "-c", "-C", "-overlay", "-modfile", "-pkgdir", "-outputdir", "-trace"),
    *("-cpuprofile", "-memprofile", "-blockprofile", "-mutexprofile", "-coverprofile", "-fix"),
    *("-ldflags", "-gcflags", "-asmflags", "-gccgoflags", "-compiler", "-test", "-args"),
)
_CARGO = (
    *("--config", "--target-dir", "--manifest-path", "--artifact-dir", "--out-dir", "-C", "-Z", "--fix", "--"),
    *("--lockfile-path", "--build-plan"),
)
_PIP = ("--log", "--python", "--cache-dir", "--config-settings")

WRITING_OPTIONS: dict[str, tuple[str, ...]] = {
    "basename": (),
    "cargo build": _CARGO,
    "cargo check": _CARGO,
    "cargo clippy": _CARGO,
    "cargo test": _CARGO,
    "cargo tree": _CARGO,
    "cat": (),
    "cmp": (),
    "column": (),
    "comm": (),
    "cut": (),
    "date": ("-s", "--set"),
    "df": (),
    "diff": ("-l", "--paginate"),
    "dirname": (),
    "docker images": (),
    "docker logs": (),
    "docker ps": (),
    "du": (),
    "echo": (),
    "egrep": (),
    "expand": (),
    "fd": ("-x", "--exec", "-X", "--exec-batch", "-l", "--list-details"),
    "fdfind": ("-x", "--exec", "-X", "--exec-batch", "-l", "--list-details"),
    "fgrep": (),
    "file": ("-C", "--compile", "-z", "-Z", "--uncompress", "--uncompress-noreport", "-S", "--no-sandbox"),
    "fold": (),
    "git add": ("-e", "--edit", "-i", "--interactive", "-p", "--patch"),
    "git blame": ("--textconv",),
    "git cat-file": ("--textconv", "--filters"),
    "git commit": ("-c", "--reedit-message", "-e", "--edit", "-p", "--patch", "--interactive", "-S", "--gpg-sign"),
    "git describe": (),
    "git diff": _GIT_DIFF,
    "git grep": ("-O", "--open-files-in-pager", "--textconv"),
    "git log": _GIT_DIFF,
    "git ls-files": (),
    "git ls-tree": (),
    "git rev-list": (),
    "git rev-parse": (),
    "git shortlog": ("--output",),
    "git show": _GIT_DIFF,
    "git status": (),
    "go build": _GO,
    "go test": _GO,
    "go vet": _GO,
    "grep": (),
    "head": (),
    "hexdump": (),
    "jq": (),
    "ls": (),
    "md5sum": (),
    "mypy": (
        *("--python-executable", "--install-types", "--config-file", "--cache-dir", "--cache-map", "--shadow-file"),
        *("--junit-xml", "--any-exprs-report", "--cobertura-xml-report", "--html-report", "--linecount-report"),
        *("--linecoverage-report", "--lineprecision-report", "--txt-report", "--xml-report", "--xslt-html-report"),
        *("--xslt-txt-report", "--custom-typeshed-dir", "--dump-inference-stats", "--timing-stats"),
    ),
    "nl": (),
    "od": (),
    "paste": (),
    "pip freeze": _PIP,
    "pip list": _PIP,
    "pip show": _PIP,
    "pwd": (),
    "pytest": (
        *("-p", "-c", "--config-file", "--rootdir", "-o", "--override-ini", "--basetemp", "--confcutdir", "--junitxml"),
        *("--junit-xml", "--log-file", "--debug", "--pdbcls", "--pastebin", "--cov-report", "--cov-config", "--html"),
        *("--json-report-file", "--report-log", "--result-log", "--tx", "--px", "--rsyncdir"),
    ),
    "readlink": (),
    "realpath": (),
    "rev": (),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "ruff check": ("-o", "--output-file", "--config", "--cache-dir", "--fix", "--fix-only", "--add-noqa"),
    "seq": (),
    "sha1sum": (),
    "sha256sum": (),
    "sha512sum": (),
    "sleep": (),
    "sort": ("-o", "--output", "-T", "--temporary-directory", "--compress-program"),
    "stat": (),
    "tac": (),
    "tail": (),
    "tr": (),
    "tree": ("-o", "--output", "-R"),
    "type": (),
    "wc": (),
    "which": (),
}
"""Programs whose saved pattern may end in `*`, and their options that still need approval because they run a program or
write a file, by program or by program and subcommand. For a program that is not listed, only the exact command is
offered: most programs have an option that runs another one, and no list of these is complete. Source: the programs' own
manuals."""

NOT_OFFERED: dict[str, tuple[str, ...]] = {
    "cmake": ("-P", "-E", "--build", "--install"),
    "gcc": ("-wrapper", "-fplugin", "-specs", "-o"),
    "git archive": ("--exec", "--remote", "-o", "--output"),
    "git bisect": ("run",),
    "git clone": ("-u", "--upload-pack", "-c", "--config", "--template"),
    "git difftool": ("-x", "--extcmd", "-t", "--tool"),
    "git fetch": ("--upload-pack",),
    "git ls-remote": ("--upload-pack", "--exec"),
    "git pull": ("--upload-pack",),
    "git push": ("--receive-pack", "--exec"),
    "git submodule": ("foreach",),
    "make": ("-f", "--file", "--makefile", "--eval", "-C", "--directory", "-I", "--include-dir"),
    "man": ("-P", "--pager", "-H", "--html", "-X", "-C", "--config-file"),
    "split": ("--filter",),
    "tcpdump": ("-z", "-w"),
    "zip": ("-T", "--test", "--unzip-command"),
}
"""Options that a pattern of these programs does not cover. Only their exact commands are offered, but a user may write
a pattern with `*`."""

_WITH_SUBCOMMANDS = frozenset(name.split()[0] for name in WRITING_OPTIONS if " " in name)

_CODE_OPTIONS = {
    **dict.fromkeys(("bash", "dash", "fish", "ksh", "python", "pypy", "sh", "zsh"), "c"),
    **dict.fromkeys(("lua", "perl", "ruby"), "eE"),
    **dict.fromkeys(("bun", "deno", "node"), "ep"),
    "php": "rBRE",
}
"""Programs that accept code as an argument, with the letters of those options: such a call gets no pattern."""


def simple_commands(command: str) -> list[list[str]] | None:
    """Return the words of each simple command of a chain; None for any other command, which needs approval."""
    linked = _linked_commands(command)
    return None if linked is None else [words for _, words in linked]


def _linked_commands(command: str, *, quoted: bool = False) -> list[tuple[str, list[str]]] | None:
    """Return each simple command of a chain after the operator before it, which the first one does not have."""
    if len(command) > _LONGEST or _REFUSED.search(_without_quoted(command) if quoted else command):
        return None
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[tuple[str, list[str]]] = [("", [])]
    try:
        for token in lexer:
            # Quoted, these are words to the shell. Treating them as operators only adds commands that must match.
            if token in _CHAINS:
                commands.append((token, []))
            elif token and not token.strip(_PUNCTUATION):
                return None
            else:
                commands[-1][1].append(token)
    except ValueError:
        return None
    return commands if all(words for _, words in commands) else None


def without_redirections(command: str) -> str:
    """Return a command without redirections that only join or drop its output: ``2>&1``, ``2>/dev/null``.

    Those within quotes stay, and all where a backslash or a quote without its end could make them something else.
    """
    if "\\" in command or _REDIRECTION.search(command) is None:
        return command
    pieces = _QUOTES.split(command)
    if any("'" in piece or '"' in piece for piece in pieces[::2]):
        return command
    return "".join(_REDIRECTION.sub(" ", piece) if at % 2 == 0 else piece for at, piece in enumerate(pieces))


def _without_quoted(command: str) -> str:
    """Return a command without what a shell takes to the letter: all between single quotes, wildcards in double ones.

    Not with a backslash in it, whose meaning depends on what is around it.
    """
    if "\\" in command or not _QUOTED.sub("", command).isprintable():
        return command
    return _QUOTED.sub(lambda found: re.sub(r"[*?\[{~]", "", found[0]) if found[0][0] == '"' else "''", command)


def problem_of(pattern: str) -> str:
    """Return the reason a pattern is invalid; empty if it is valid."""
    words = _words(pattern)
    if words is None:
        return "it is not one plain command"
    if not _NAME.fullmatch(words[0]):
        return "its first word is not the name of a program"
    return ""


class Judgement(NamedTuple):
    """Answer to whether a command may run without approval.

    Attributes:
        why: What no pattern covers, if one is meant for the command; else empty.
    """

    covered: bool
    why: str = ""


class Placed(NamedTuple):
    """Simple command of a chain.

    Attributes:
        operator: The operator before it.
        words: Its words.
        folders: Folders it may run in.
    """

    operator: str
    words: list[str]
    folders: frozenset[str]


def judge(
    patterns: Iterable[str], command: str, guard: Guard, is_known: Callable[[Placed], bool] = lambda placed: False
) -> Judgement:
    """Return whether a command may run without approval; blocks, as it looks at the files that the command names.

    Args:
        is_known: Whether a simple command may run without a pattern.
    """
    commands = placed_commands(command, guard, quoted=True)
    literal = placed_commands(command, guard)
    valid = [words for pattern in patterns if not problem_of(pattern) and (words := _words(pattern))]
    why = ""
    for at, known in enumerate(commands):
        if is_known(known):
            continue
        if not literal:
            return Judgement(covered=False)
        placed = literal[at]
        meant = [pattern for pattern in valid if _matches(pattern, placed.words)]
        refusals = [refusal(pattern, placed, guard) for pattern in meant]
        if not meant:
            return Judgement(covered=False)
        if all(refusals):
            why = why or f"`{_shown(meant[0])}` does not cover {refusals[0]}"
    return Judgement(covered=bool(commands) and not why, why=why)


def offer(command: str, guard: Guard, name_of: Callable[[Placed], str | None] = lambda placed: None) -> list[str]:
    """Return the patterns to offer for permanent permission after this command, which together allow it.

    A chain gets one for each of its commands; it gets none if one of them has none.

    Args:
        name_of: What allows a simple command without a pattern: the name of a rule, or nothing; None: a pattern must.
    """
    patterns: list[str] = []
    names: list[str] = []
    if revealed(command) != command:
        return []  # What is saved must be what one reads.
    literal = placed_commands(command, guard)
    for at, known in enumerate(placed_commands(command, guard, quoted=True)):
        if (name := name_of(known)) is not None:
            names += [name] if name else []
            continue
        if not literal:
            return []
        placed = literal[at]
        # What a pipe feeds may take orders from it, as `sh` and `xargs` do: only known programs are offered there.
        fed = placed.operator == "|" and not _option_entry(placed.words)
        pattern = "" if fed else _pattern_for(placed, guard)
        if not pattern:
            return []
        patterns.append(pattern)
    offered = list(dict.fromkeys([*names, *patterns]))
    covered = judge(patterns, command, guard, lambda placed: name_of(placed) is not None).covered
    return offered if len(offered) <= MOST_OFFERED and covered else []


def placed_commands(command: str, guard: Guard, *, quoted: bool = False) -> list[Placed]:
    """Return the simple commands of a chain; none for any other command.

    Args:
        quoted: Accept characters with a meaning to the shell where quotes take it away. Not for what is to be saved:
            in a pattern, a final `*` has a meaning of its own.
    """
    placed = []
    possible = current = frozenset({guard.root})
    for operator, words in _linked_commands(command, quoted=quoted) or []:
        if operator != "&&":
            current = possible  # A `cd` before it may have failed.
        placed.append(Placed(operator, words, current))
        if words[0] in ("cd", "pushd"):
            target = words[-1] if len(words) > 1 else guard.home
            current = frozenset(os.path.realpath(os.path.join(folder, target)) for folder in current)  # noqa: PTH118
            possible |= current
    return placed


def _pattern_for(placed: Placed, guard: Guard) -> str:
    """Return the pattern to offer for one simple command; empty if none is suitable."""
    words = placed.words
    if not _NAME.fullmatch(words[0]) or _passes_code(words):
        return ""
    entry = _option_entry(words)
    fixed = words[: len(entry.split())] if entry else words
    exact = shlex.join(words)
    for pattern in (shlex.join(fixed) + (" *" if len(words) > len(fixed) else ""), exact):
        if mask_secrets(pattern) != pattern or problem_of(pattern):
            continue
        parsed = _words(pattern)
        if parsed and _matches(parsed, words) and not refusal(parsed, placed, guard):
            return pattern
    return ""


def _passes_code(words: list[str]) -> bool:
    letters = _CODE_OPTIONS.get(re.sub(r"[\d.]+$", "", words[0].rpartition("/")[2]), "")
    return bool(letters) and any(
        word in ("--eval", "--print", "eval") or (re.match("-[^-]", word) and not set(letters).isdisjoint(word))
        for word in words[1:]
    )


def _option_entry(words: list[str]) -> str:
    """Return the key of a command in `WRITING_OPTIONS`, empty if it has none."""
    return next((name for name in (" ".join(words[:2]), words[0]) if name in WRITING_OPTIONS), "")


def _words(pattern: str) -> list[str] | None:
    """Return the words of a pattern, including a final `*`; None if the rest is not one plain command."""
    fixed, open_ended = pattern.rstrip(" \t"), False
    if fixed.endswith((" *", "\t*")):
        fixed, open_ended = fixed[:-2], True
    commands = simple_commands(fixed)
    if commands is None or len(commands) > 1:
        return None
    return [*commands[0], "*"] if open_ended else commands[0]


def _matches(pattern: list[str], words: list[str]) -> bool:
    """Return whether a pattern is meant for a simple command."""
    return words == pattern if pattern[-1] != "*" else words[: len(pattern) - 1] == pattern[:-1]


def _shown(pattern: list[str]) -> str:
    return " ".join([shlex.join(pattern[:-1]), "*"] if pattern[-1] == "*" else [shlex.join(pattern)])


def refusal(pattern: list[str], placed: Placed, guard: Guard, more_options: tuple[str, ...] | None = None) -> str:
    """Return the first part of a command that its pattern does not cover, and why; else empty.

    Args:
        more_options: Options that it does not cover besides those of `WRITING_OPTIONS`; None if no others are known.
    """
    words = placed.words
    program = words[0].rpartition("/")[2]
    open_ended = pattern[-1] == "*"
    if open_ended:
        fixed = len(pattern) - 1
        if program in _WITH_SUBCOMMANDS and fixed == 1 and len(words) > 1 and words[1].startswith("-"):
            return f"{words[1][:_NAMED]}, an option before the subcommand"  # such as git's -c
        by_program = {**NOT_OFFERED, **WRITING_OPTIONS}
        entry = next((name for name in (" ".join([program, *words[1:2]]), program) if name in by_program), "")
        options = by_program.get(entry, ()) + (more_options or ())
        for word in words[fixed:]:
            unknown = not entry and more_options is None and word.startswith("-") and word != "-"
            if unknown or _is_one_of(word, options):
                return f"{word[:_NAMED]}, which may run a program or write a file"
    confined = open_ended or bool(_option_entry(words))
    for word in words[1:]:
        reason = guard.of_word(word, program, placed.folders)
        if reason and (confined or reason != "outside"):
            return f"{word[:_NAMED]}, which {BECAUSE[reason]}"
    if confined:
        for folder in placed.folders:
            if reason := guard.of_folder(program, folder):
                return f"the folder {folder}, which {BECAUSE[reason]}"
    return ""


def _is_one_of(word: str, options: tuple[str, ...]) -> bool:
    """Return whether a word sets one of these options, even abbreviated, with a value, or among other letters."""
    given = word.partition("=")[0]
    if not given.startswith("-") or given in ("-", "--"):
        return given in options
    name = given.lstrip("-")
    if any(len(option) > 2 and option[1] != "-" for option in options):
        # Words after one dash, as in Go: two dashes mean the same, and letters are not combined.
        return any(name == option[1:] or (len(option) > 2 and name.startswith(option[1:])) for option in options)
    if given.startswith("--"):
        return any(option.startswith(given) for option in options if len(option) > 2)
    return any(option[1] in name for option in options if len(option) == 2)
