"""Formulas in a text: TeX between dollars or TeX's own brackets.

Only what certainly is a formula counts as one, so that prices and shell variables stay words. The transcript shows
them in Unicode; titles and key words are made without them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_MOST = 500
"""Characters of a formula; more is none."""

_MOST_FAILED = 2_000
"""Signs of a text that may begin no formula: each is followed up to `_MOST` characters."""

_FORMULA = re.compile(
    r"(?<![^\s(\[{\"'*:,;—–/-])\$(?P<dollars>[^\s$`](?:[^$`\n]*[^\s$`\\])?)\$(?![\w$])"
    r"|\$\$(?P<display>[^$`]+)\$\$"
    r"|(?<!\w)\\\((?P<round>.+?)\\\)"
    r"|(?<!\w)\\\[(?P<square>.+?)\\\]",
    re.DOTALL,
)
"""A dollar next to a letter or digit on its outer side is none of a formula: $5 and $6, $HOME/$NAME, 5$."""
_COMMAND = re.compile(r"\\[A-Za-z]")
_SCRIPT = re.compile(r"[\^_]")
_GROUP = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NAME = re.compile(r"[^\W\d_]{3,}")
_PRICE = re.compile(r"[\d.,]+\s?[kKmMbB]?(?:\s?[-–]\s?[\d.,]+\s?[kKmMbB]?)?")
_START = re.compile(r"[$\\]")


def formula_at(text: str, place: int, end: int) -> re.Match[str] | None:
    """Return the formula that starts at `place` and ends before `end`; its last group is what its marks enclose."""
    match = _FORMULA.match(text, place, min(end, place + _MOST))
    return (
        match if match is not None and _is_formula(match[match.lastgroup or 0], match.lastgroup == "square") else None
    )


def formulas(text: str) -> Iterator[re.Match[str]]:
    """Yield the formulas of a text, until too many signs have begun none."""
    place = failed = 0
    while failed < _MOST_FAILED and (start := _START.search(text, place)):
        found = formula_at(text, start.start(), len(text))
        failed += found is None
        if found is not None:
            yield found
        place = found.end() if found is not None else start.end()


def replace_formulas(text: str, shown: Callable[[str], str]) -> str:
    """Return a text with each formula as `shown` returns it."""
    parts = []
    place = 0
    for found in formulas(text):
        parts += [text[place : found.start()], shown(found[0])]
        place = found.end()
    return "".join([*parts, text[place:]])


def is_mostly_formula(text: str) -> bool:
    """Return whether more than half of a text's characters are those of formulas."""
    return sum(found.end() - found.start() for found in formulas(text)) * 2 > len(text.strip())


def _is_formula(source: str, brackets: bool) -> bool:
    """Return whether a text between marks is a formula and not, for example, ``FOO_BAR`` or an index.

    Args:
        brackets: The marks are those that also keep Markdown from reading brackets.
    """
    if _COMMAND.search(source):
        return True
    if _SCRIPT.search(source):
        return not _NAME.search(_GROUP.sub("", source))
    if brackets and "=" not in source:
        return False
    letters = any(char.isalpha() for char in source)
    return letters and not _WORD.search(source) and not _PRICE.fullmatch(source)
