"""Parses Markdown into units that can be drawn on their own.

A unit is a top-level block, or one item of a top-level list. Nothing in a unit depends on what follows it (link
references are off, blank lines between items are taken from the source): a streamed text can be committed unit by unit
and still look like the same text drawn at once. markdown-it is imported with the first text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ragforge_tui.shared.sanitize import plain_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_NESTING = 60


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of Markdown that is drawn on its own.

    Attributes:
        tokens: Its parser tokens.
        source: The source lines that the maps of the tokens refer to.
        gap: Whether a blank line precedes it.
        ordinal: Number of a list item; 0 for a bullet, None for other units.
    """

    tokens: Sequence[Token]
    source: Sequence[str]
    gap: bool
    ordinal: int | None = None


class OpenList(NamedTuple):
    """A list that the next piece of text may continue."""

    kind: str
    markup: str
    next_ordinal: int
    blank_before: bool


@lru_cache(maxsize=1)
def markdown_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.tasklists import tasklists_plugin

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["reference", "html_block", "html_inline"])
    return parser.use(tasklists_plugin)


class Parsed(NamedTuple):
    """Units of a text, with the source line each starts at and the list it belongs to."""

    units: list[Unit]
    starts: list[int]
    lists: list[OpenList | None]


def parse(text: str, continued: OpenList | None = None) -> Parsed:
    """Split cleaned text into units.

    Args:
        continued: The list whose next item the text starts with, if earlier items were cut off.
    """
    tokens = markdown_parser().parse(text)
    source = text.split("\n")
    result = Parsed([], [], [])
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return _as_plain(text, source)
    for node in grouped(tokens):
        opening = node[0]
        start = opening.map[0] if opening.map else 0
        if opening.type in ("bullet_list_open", "ordered_list_open"):
            _add_items(result, node, source, continued if start == 0 and not result.units else None)
        else:
            result.units.append(Unit(node, source, gap=True))
            result.starts.append(start)
            result.lists.append(None)
    return result


def _as_plain(text: str, source: list[str]) -> Parsed:
    """Return the source as one code block: the parser would drop text nested deeper than it follows."""
    from markdown_it.token import Token

    token = Token("fence", "code", 0, content=text, map=[0, len(source)])
    return Parsed([Unit([token], source, gap=True)], [0], [None])


def _add_items(result: Parsed, node: Sequence[Token], source: Sequence[str], continued: OpenList | None) -> None:
    opening = node[0]
    ordered = opening.type == "ordered_list_open"
    number = int(opening.attrs.get("start", 1)) if ordered else 0
    same_list = continued is not None and (continued.kind, continued.markup) == (opening.type, opening.markup)
    if same_list and continued is not None:
        number = continued.next_ordinal
    for position, item in enumerate(grouped(node[1:-1])):
        start = item[0].map[0] if item[0].map else 0
        if position:
            gap = is_blank(source, start - 1)
        else:
            gap = continued.blank_before if same_list and continued is not None else True
        result.units.append(Unit(item, source, gap=gap, ordinal=number))
        result.starts.append(start)
        blank = is_blank(source, start - 1) if position else gap
        result.lists.append(OpenList(opening.type, opening.markup, number, blank))
        number += ordered


def grouped(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens grouped by their outermost nodes."""
    at = 0
    while at < len(tokens):
        end = at
        depth: int = tokens[at].nesting
        while depth > 0:
            end += 1
            depth += tokens[end].nesting
        yield tokens[at : end + 1]
        at = end + 1


def is_blank(source: Sequence[str], line: int) -> bool:
    return 0 <= line < len(source) and not source[line].strip(" \t>")


def clean_source(text: str) -> str:
    """Remove control characters from Markdown source; tabs stay, since they are significant."""
    return plain_text(text)
