"""Patterns in .gitignore syntax, matched in time linear in the length of the path.

Patterns come from files of a foreign folder and from a model. In an ordinary regular expression a few `*` can backtrack
for hours and block the interpreter, so every wildcard becomes an atomic group here: it takes the first position where
the next piece matches, and never tries another. This loses no match, because a `*` ends with its name and a `**` ends
with its folder: the first position leaves the largest part of the path for the rest.

The tests compare every verdict with `git check-ignore`. One difference is known: `**\\/`, a quoted slash after `**`, is
read like `**/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST_PATH = 4_096
"""Longest path and pattern that can match; the limit of Linux (PATH_MAX)."""
_STAR = "*"
_IN_NAME = "[^/]"
_NAME_ENDS = f"(?!{_IN_NAME})"
_SPECIAL = re.compile(r"[*?\[\\]")
_DOUBLE_STAR = re.compile(r"(?<!\*)\*{2,}+(?=/|\Z)")
_CLASS = re.compile(r"\[:([^]]*):\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e",
    "space": " \\t\\n\\x0b\\x0c\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""Character classes in the C locale, which git uses for matching."""


class _NeverMatchesError(Exception):
    """Pattern that can never match: an unclosed bracket, a backslash at the end or an unknown character class."""


class _Rule(NamedTuple):
    """One pattern. `literal` is the name or path it matches if nothing in it is special; otherwise `regex` is set."""

    excludes: bool
    folders_only: bool
    names: bool
    literal: str | None
    regex: re.Pattern[str] | None


class Patterns:
    """Ordered patterns, of which the last matching one decides; `!` inverts its verdict.

    Args:
        lines: Lines of an ignore file, comments and empty lines included.
        bytewise: Whether `?` and brackets match one byte of the path, as in git, or one character.
    """

    def __init__(self, lines: Iterable[str], *, bytewise: bool = True) -> None:
        self._bytewise = bytewise
        rules = [rule for line in lines if (rule := _rule(self._text(line))) is not None]
        self._literals: dict[tuple[bool, str], list[int]] = {}
        self._others: list[int] = []
        for number, rule in enumerate(rules):
            if rule.literal is None:
                self._others.append(number)
            else:
                self._literals.setdefault((rule.names, rule.literal), []).append(number)
        self._others.reverse()
        self._rules = rules
        self._covered: dict[str, bool] = {}

    def __bool__(self) -> bool:
        """Return whether any of the lines is a valid pattern."""
        return bool(self._rules)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether a path by itself is excluded; None if no pattern matches it.

        Args:
            path: Path relative to the folder of the patterns, with forward slashes.
        """
        if len(path) > LONGEST_PATH:
            return None
        path = self._text(path)
        name = path.rpartition("/")[2]
        rules = self._rules
        last = -1
        for key in ((True, name), (False, path)):
            for number in self._literals.get(key, ()):
                if number > last and (is_folder or not rules[number].folders_only):
                    last = number
        for number in self._others:
            if number < last:
                break
            _, folders_only, names, _, regex = rules[number]
            if (is_folder or not folders_only) and regex is not None and regex.match(name if names else path):
                last = number
                break
        return rules[last].excludes if last >= 0 else None

    def covers(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a path, or a folder above it, is excluded."""
        if not self._rules or len(path) > LONGEST_PATH:
            return False
        folder = path.rpartition("/")[0]
        if folder and folder not in self._covered:
            self._covered[folder] = any(
                self.verdict(folder[:at], is_folder=True)
                for at in (*(match.start() for match in re.finditer("/", folder)), len(folder))
            )
        return (bool(folder) and self._covered[folder]) or bool(self.verdict(path, is_folder=is_folder))

    def _text(self, text: str) -> str:
        """Return the text with one character for each byte if matching is bytewise."""
        if not self._bytewise or text.isascii():
            return text
        return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> _Rule | None:
    """Return the rule in a line; None for a comment and for a line that can never match."""
    if line.startswith("#") or len(line) > LONGEST_PATH:
        return None
    pattern = _without_trailing_spaces(line.removesuffix("\r"))
    excludes = not pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    names = "/" not in pattern
    if pattern.startswith("/"):
        pattern = pattern[1:]
    if not pattern:
        return None
    if not _SPECIAL.search(pattern):
        return _Rule(excludes, folders_only, names, pattern, None)
    try:
        regex = _name_regex(pattern) if names else _path_regex(pattern)
    except _NeverMatchesError:
        return None
    return _Rule(excludes, folders_only, names, None, re.compile(regex))


def _without_trailing_spaces(line: str) -> str:
    """Return the line without trailing spaces, except one that a backslash quotes."""
    end = at = 0
    while at < len(line):
        quoted = line[at] == "\\"
        at += 2 if quoted else 1
        if quoted or line[at - 1] != " ":
            end = at
    return line[:end]


def _name_regex(pattern: str) -> str:
    (segment,) = _segments(pattern)
    return _segment_regex(segment) + r"\Z"


def _path_regex(pattern: str) -> str:
    """Return the expression for a pattern that contains a slash.

    The pattern is split at each `**` into runs of names. A run has a fixed number of names, so its first match is also
    the one that ends first.
    """
    head = ""
    special = _SPECIAL.search(pattern)
    start = special.start() if special else 0
    if start and pattern[start - 1] != "/" and _DOUBLE_STAR.match(pattern, start):
        # git compares the literal start and then treats the rest as a separate pattern, so that in `a**/b` the `**`
        # matches as if it were a whole name.
        head, pattern = re.escape(pattern[:start]), pattern[start:]
    regex = [head]
    run: list[str] = []
    after_stars = False
    for segment in _segments(pattern):
        if len(segment) < 2 or set(segment) != {_STAR}:
            run.append(_segment_regex(segment))
            continue
        if run:
            regex.append(_run_regex(run, "/", anywhere=after_stars))
            run = []
        after_stars = True
    # After a final `**` anything may follow.
    if run:
        regex.append(_run_regex(run, r"\Z", anywhere=after_stars))
    return "".join(regex)


def _run_regex(names: list[str], end: str, *, anywhere: bool) -> str:
    folders = f"(?:{_IN_NAME}*+/)*?" if anywhere else ""
    return f"(?>{folders}{'/'.join(names)}{end})"


def _segment_regex(segment: list[str]) -> str:
    """Return the expression for one name: each piece after a `*` matches at its first position, the last at the end."""
    pieces = [""]
    for atom in segment:
        if atom == _STAR:
            pieces.append("")
        else:
            pieces[-1] += atom
    first, *others = pieces
    if not others:
        return first
    last = others.pop()
    middle = "".join(f"(?>{_IN_NAME}*?{piece})" for piece in others if piece)
    return first + middle + (f"(?>{_IN_NAME}*{last}{_NAME_ENDS})" if last else f"{_IN_NAME}*+")


def _segments(pattern: str) -> list[list[str]]:
    """Return the names of a pattern, each as a list of stars and expressions for one character.

    Raises:
        _NeverMatchesError: The pattern is incomplete or names an unknown character class.
    """
    segments: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "\\":
            if at == len(pattern):
                raise _NeverMatchesError
            letter = pattern[at]
            at += 1
            atom = re.escape(letter)
        elif letter == "?":
            atom = _IN_NAME
        elif letter == "*":
            atom = _STAR
        elif letter == "[":
            atom, at = _bracket(pattern, at)
        else:
            atom = re.escape(letter)
        if letter == "/":
            segments.append([])
        else:
            segments[-1].append(atom)
    return segments


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression for a bracket whose content starts at `at`, and the offset after it.

    Raises:
        _NeverMatchesError: The bracket is not closed or names an unknown character class.
    """
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members: list[str] = []
    first = at
    before = ""
    while True:
        if at >= len(pattern):
            raise _NeverMatchesError
        letter = pattern[at]
        if letter == "]" and at > first:
            break
        if letter == "[" and (named := _CLASS.match(pattern, at)):
            if named[1] not in _CLASSES:
                raise _NeverMatchesError
            members.append(_CLASSES[named[1]])
            at, before = named.end(), ""
        elif letter == "-" and before and pattern[at + 1 : at + 2] not in ("", "]"):
            letter, at = _unquoted(pattern, at + 1)
            if before <= letter:
                members.append(f"{re.escape(before)}-{re.escape(letter)}")
            before = ""
        else:
            before, at = _unquoted(pattern, at)
            members.append(re.escape(before))
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    # A reversed range is empty.
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _unquoted(pattern: str, at: int) -> tuple[str, int]:
    """Return the character at an offset in a bracket, without its backslash, and the offset of the next one."""
    if pattern[at] == "\\":
        at += 1
    if at >= len(pattern):
        raise _NeverMatchesError
    return pattern[at], at + 1
