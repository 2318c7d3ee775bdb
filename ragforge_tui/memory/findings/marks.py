"""The words that mark findings, read from `marks.toml`, as patterns of one language or of all."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

import msgspec

from ragforge_tui.shared.finding_records import KeptKind

LABELLED: tuple[KeptKind, ...] = ("decision", "open", "wish", "fact")
_SUBJECT = (
    r"(?: (?:on|about|for|regarding|sur|pour|quant à|über|zu|für|sobre|para|su|per|over|voor|о|об|по|o|w sprawie) "
    r"[^:.!?]{1,40})?"
)
_NUMBER = r"(?: ?(?:#?\d{1,3}|\([^)]{1,30}\)|for later|pour plus tard|für später|para más tarde|per dopo))?"


class Marks(msgspec.Struct, frozen=True):
    """Patterns of a language.

    Attributes:
        labels: By kind: a label at the start of a line or a sentence, with its colon.
        headings: By kind: a line that is only a label.
        said: By kind: words inside a sentence.
    """

    labels: dict[KeptKind, re.Pattern[str]]
    headings: dict[KeptKind, re.Pattern[str]]
    said: dict[KeptKind, re.Pattern[str]]
    doubt: re.Pattern[str]
    nothing: re.Pattern[str]
    asking: re.Pattern[str]
    everywhere: re.Pattern[str]
    only_here: re.Pattern[str]
    closing: re.Pattern[str]
    dropping: re.Pattern[str]
    correcting: re.Pattern[str]
    against: re.Pattern[str]
    ended: re.Pattern[str]
    bare: re.Pattern[str]
    that: re.Pattern[str]


@functools.cache
def marks(language: str) -> Marks:
    """Return the marks of a language; those of all for one without a table, as for a text too short to tell.

    Labels are those of all languages: nothing else looks like them.
    """
    tables = tomllib.loads(Path(__file__).with_name("marks.toml").read_text("utf-8"))
    own = (
        [tables[language], *([tables["en"]] if language != "en" else [])] if language in tables else [*tables.values()]
    )

    def either(key: str) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{part})" for table in own for part in table[key]), re.I)

    labels = {kind: "|".join(part for t in tables.values() for part in t[f"{kind}_labels"]) for kind in LABELLED}
    return Marks(
        labels={
            kind: re.compile(rf"^(?:{part}){_NUMBER}{_SUBJECT}[  ]?(?:[:：]| [–—])\s*(?=\S)", re.I)
            for kind, part in labels.items()
        },
        headings={
            kind: re.compile(rf"^(?:{part}){_NUMBER}{_SUBJECT}[  ]?[:：]?$", re.I) for kind, part in labels.items()
        },
        said={kind: either(kind) for kind in LABELLED},
        **{name: either(name) for name in Marks.__struct_fields__ if name not in ("labels", "headings", "said")},
    )
