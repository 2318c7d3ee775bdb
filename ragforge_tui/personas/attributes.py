"""Attributes of a tag as they are written: quoted, unquoted, without a value, with a quote that never ends.

The reader steps over them once to find the end of the tag and to say what is odd; what they are is read again out of
the tag when somebody asks, so that a tag of a million attributes costs no million objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Nothing in them may be tried twice (possessive), so a match takes as long as what it matched.
NAME = re.compile(r"[^\s<>/=\"']++")
# A `<` in a quoted value is believed only when the value ends on the same line.
IN_TAG = re.compile(
    r"\s*+(?:([^\s<>/=\"']++)"
    r"(?:\s*+=\s*+(?:(\"[^\"<]*+\"|'[^'<]*+'|\"[^\"\n]*+\"|'[^'\n]*+')|([^\s<>\"']++)|())|)"
    r"|(/?+>)|)"
)
"""What may stand in a tag, by the last group that matched: a name without value (1), with a value between quotes
(`QUOTED`), with another (`UNQUOTED`), with `=` and no value (`ODD`), the end of the tag (`TAG_END`), none of these."""
QUOTED: Final = 2
UNQUOTED: Final = 3
ODD: Final = 4
TAG_END: Final = 5
_BARE_VALUE = re.compile(r"[^\s<>\"']++")


@dataclass(slots=True, eq=False)
class Attribute:
    """One attribute as written: `raw` is its value without quotes, entities untouched; None when it has none."""

    name: str
    raw: str | None
    start: int

    @property
    def value(self) -> str:
        """The value, an empty text when there is none."""
        return self.raw or ""


def after_value(text: str, match: re.Match[str]) -> int:
    """The offset after an attribute's value that is not between two quotes."""
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
    """The attributes between the name and the end of a tag.

    Args:
        position: The offset after the tag's name.
        end: The offset after its `>`.
    """
    while position < end and (match := IN_TAG.match(text, position)) is not None:
        start, position = match.start(1), match.end()
        if start < 0:
            # Its end, or what means nothing in a tag and is passed over; the reader has said so.
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
