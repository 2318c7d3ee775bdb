"""Attributes of a tag as written: quoted, unquoted, without a value, or with a quote that never ends.

The reader passes over them once, to find the end of the tag and to report irregularities. Their values are parsed
again from the tag on demand, so that a tag with a million attributes does not cost a million objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Possessive quantifiers rule out backtracking, so a match takes time linear in its length.
NAME = re.compile(r"[^\s<>/=\"']++")
# A `<` is accepted in a quoted value only if the value ends on the same line.
IN_TAG = re.compile(
    r"\s*+(?:([^\s<>/=\"']++)"
    r"(?:\s*+=\s*+(?:(\"[^\"<]*+\"|'[^'<]*+'|\"[^\"\n]*+\"|'[^'\n]*+')|([^\s<>\"']++)|())|)"
    r"|(/?+>)|)"
)
"""One item of a tag, classified by the last group that matched: a name without a value (1), with a quoted value
(`QUOTED`), with an unquoted value (`UNQUOTED`), with `=` but no value (`ODD`), the end of the tag (`TAG_END`), or
none of these (no group)."""
QUOTED: Final = 2
UNQUOTED: Final = 3
ODD: Final = 4
TAG_END: Final = 5
_BARE_VALUE = re.compile(r"[^\s<>\"']++")


@dataclass(slots=True, eq=False)
class Attribute:
    """Attribute as written: `raw` is its value without quotes and with entities untouched; None without a value."""

    name: str
    raw: str | None
    start: int

    @property
    def value(self) -> str:
        """Value of the attribute, or an empty string without one."""
        return self.raw or ""


def after_value(text: str, match: re.Match[str]) -> int:
    """Return the offset after an attribute's value that is not enclosed in quotes."""
    end = match.end()
    if match.lastindex == ODD:
        if text[end : end + 1] in ('"', "'"):
            end += 1
        value = _BARE_VALUE.match(text, end)
        if value is None:
            return end
        end = value.end()
    return end - 1 if text[end - 1] == "/" and text[end : end + 1] == ">" else end


def attributes(text: str, position: int, end: int) -> Iterator[Attribute]:
    """Yield the attributes between the name and the end of a tag.

    Args:
        position: The offset after the tag's name.
        end: The offset after its `>`.
    """
    while position < end and (match := IN_TAG.match(text, position)) is not None:
        start, position = match.start(1), match.end()
        if start < 0:
            # The end of the tag, or a character without meaning in a tag, which the reader has reported: skip it.
            position += 1
            continue
        raw: str | None = None
        if match.lastindex == QUOTED:
            raw = match[QUOTED][1:-1]
        elif match.lastindex != 1:
            value = match.start(match.lastindex or 0)
            if match.lastindex == ODD and text[value : value + 1] in ('"', "'"):
                value += 1
            position = after_value(text, match)
            raw = text[value:position]
        yield Attribute(match[1], raw, start)
