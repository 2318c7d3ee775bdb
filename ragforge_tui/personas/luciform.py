"""Syntax tree of a `.luciform` text: elements, texts and other markup in angle brackets, each with its offsets.

A text may hold millions of tags, and creating an object for each would take longer than reading the text. The tree is
therefore stored as two columns of numbers with a row for each token in document order: its start offset, and either
its kind or the row of its end tag. Nodes are created from rows on access, and lines are counted on demand. Built by
`reader`; used for metadata, validation and previews, never for the prompt.

The reader passes over attributes once, to find the end of a tag and to report irregularities: quoted ones, unquoted
ones, those without a value, or with a quote that never ends. Their values are parsed again from the tag on demand.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

Kind = Literal["text", "element", "comment", "cdata", "declaration", "stray"]
Severity = Literal["warning", "note"]
RawDiagnostic = tuple[int, str, Severity]
"""Offset, message and severity of a diagnostic."""

UNCLOSED: Final = -1
EMPTY: Final = -2
END_TAG: Final = -3
STRAY: Final = -4
COMMENT: Final = -5
CDATA: Final = -6
DECLARATION: Final = -7
_KINDS: dict[int, Kind] = {STRAY: "stray", COMMENT: "comment", CDATA: "cdata", DECLARATION: "declaration"}

_END_TAG = re.compile(r"(</[^\s<>/=\"']*+)[^<>]*+(>)?")

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


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Irregularity found while reading. `line` and `column` count from 1; a column is a character."""

    line: int
    column: int
    message: str
    severity: Severity = "warning"

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.message}"


class Tokens:
    """Rows of tokens in document order; everything between two tokens is text.

    Attributes:
        mates: The row of the end tag for an element that has one; the kind (`UNCLOSED` …) for every other token.
        ends: The offset after a token, only where it differs from the offset after the next `>`. For an end tag cut
            short by a `<`, only where it differs from the offset after its name.
    """

    __slots__ = ("ends", "mates", "starts")

    def __init__(self) -> None:
        self.starts = array("q")
        self.mates = array("q")
        self.ends: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, start: int, end: int, mate: int) -> None:
        """Append a token with an explicit end offset."""
        self.ends[len(self.starts)] = end
        self.starts.append(start)
        self.mates.append(mate)


class Node:
    """Piece of the text, created on access.

    Attributes:
        start, end: Offsets of the token itself; for an element, those of its start tag.
        close: Offsets of an element's end tag; None without one.
    """

    __slots__ = ("_document", "_row", "close", "end", "kind", "start")

    def __init__(
        self, document: Luciform, kind: Kind, start: int, end: int, row: int = -1, close: tuple[int, int] | None = None
    ) -> None:
        self._document = document
        self._row = row
        self.kind: Kind = kind
        self.start = start
        self.end = end
        self.close = close

    def __repr__(self) -> str:
        return f"Node({self.kind!r}, {self.start}, {self.end}, {self.name!r})"

    @property
    def name(self) -> str:
        """Name of an element or a stray end tag as written, else empty."""
        if self.kind not in ("element", "stray"):
            return ""
        match = NAME.match(self._document.text, self.start + (1 if self.kind == "element" else 2))
        return match[0] if match else ""

    @property
    def bare_name(self) -> str:
        """Name for lookups: in lower case, without symbols before its first letter."""
        return bare(self.name)

    @property
    def children(self) -> Iterator[Node]:
        """Direct children of an element, in order; empty for other nodes."""
        return self._document.children(self._row) if self.kind == "element" else iter(())

    @property
    def attributes(self) -> Iterator[Attribute]:
        """Attributes of an element, in order, duplicates included; empty for other nodes."""
        if self.kind != "element":
            return iter(())
        return attributes(self._document.text, self.start + 1 + len(self.name), self.end)

    def attribute(self, *names: str) -> str | None:
        """Return the value of the first attribute that has one of these bare names and a value, else None."""
        for attribute in self.attributes:
            if attribute.raw is not None and bare(attribute.name) in names:
                return attribute.raw
        return None


class Luciform:
    """Parsed text with its tree and diagnostics.

    Attributes:
        unlisted: Number of diagnostics beyond those that were recorded.
    """

    def __init__(self, text: str, tokens: Tokens, raw_diagnostics: list[RawDiagnostic], unlisted: int) -> None:
        self.text = text
        self.unlisted = unlisted
        self._tokens = tokens
        self._raw_diagnostics = raw_diagnostics

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """Recorded diagnostics, in document order."""
        listed: list[Diagnostic] = []
        line, line_start, counted = 1, 0, 0
        for offset, message, severity in self._raw_diagnostics:
            if feeds := self.text.count("\n", counted, offset):
                line += feeds
                line_start = self.text.rindex("\n", counted, offset) + 1
            counted = offset
            listed.append(Diagnostic(line, offset - line_start + 1, message, severity))
        return listed

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, counted from 1. A line ends with a line feed."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    @property
    def roots(self) -> Iterator[Node]:
        """Outermost nodes in order, possibly with several elements among them."""
        return self._row_nodes(0, len(self._tokens), 0)

    @property
    def root(self) -> Node | None:
        """First outermost element, which holds the metadata; None in a text without elements."""
        return next((node for node in self.roots if node.kind == "element"), None)

    def children(self, row: int) -> Iterator[Node]:
        """Return the direct children of the element at a row."""
        tokens = self._tokens
        mate = tokens.mates[row]
        if mate >= 0:
            return self._row_nodes(row + 1, mate, self._end(row))
        return self._leaves_after(row) if mate == UNCLOSED else iter(())

    def _row_nodes(self, row: int, last: int, position: int) -> Iterator[Node]:
        """Yield the nodes of one level: those of the rows from `row` to before `last`, and the texts between them.

        The first text starts at `position`.
        """
        starts, mates = self._tokens.starts, self._tokens.mates
        while row < last:
            start = starts[row]
            if start > position:
                yield Node(self, "text", position, start)
            node = self._node(row)
            yield node
            mate = mates[row]
            if mate == UNCLOSED:
                row, position = self._past_leaves(row)
            elif mate >= 0:
                row, position = mate + 1, self._end(mate)
            else:
                row, position = row + 1, self._end(row)
        end = starts[last] if last < len(starts) else len(self.text)
        if end > position:
            yield Node(self, "text", position, end)

    def _node(self, row: int) -> Node:
        starts, mate = self._tokens.starts, self._tokens.mates[row]
        if mate >= 0:
            return Node(self, "element", starts[row], self._end(row), row, (starts[mate], self._end(mate)))
        return Node(self, _KINDS.get(mate, "element"), starts[row], self._end(row), row)

    def _end(self, row: int) -> int:
        """Return the offset after a token."""
        if recorded := self._tokens.ends.get(row):
            return recorded
        start = self._tokens.starts[row]
        match = _END_TAG.match(self.text, start)
        if match is None:
            return self.text.find(">", start) + 1
        return match.end() if match[2] else match.end(1)

    def _past_leaves(self, row: int) -> tuple[int, int]:
        """Return the row after an unclosed element and its children, and the offset where the text before it ends.

        Texts, comments and CDATA directly after the tag are its children; everything from the first other token on
        is a sibling.
        """
        mates = self._tokens.mates
        row += 1
        while row < len(mates) and mates[row] in (COMMENT, CDATA):
            row += 1
        return row, self._tokens.starts[row] if row < len(mates) else len(self.text)

    def _leaves_after(self, row: int) -> Iterator[Node]:
        after, end = self._past_leaves(row)
        position = self._end(row)
        for leaf in range(row + 1, after):
            node = self._node(leaf)
            if node.start > position:
                yield Node(self, "text", position, node.start)
            yield node
            position = node.end
        if end > position:
            yield Node(self, "text", position, end)

    def source(self, node: Node) -> str:
        """Return the source of a node's token, without its children."""
        return self.text[node.start : node.end]

    def walk(self, *, max_depth: int | None = None) -> Iterator[tuple[Node, int]]:
        """Yield all nodes in document order, each with its depth; roots have depth 0."""
        levels = [self.roots]
        while levels:
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
                continue
            yield node, len(levels) - 1
            if node.kind == "element" and (max_depth is None or len(levels) <= max_depth):
                levels.append(node.children)

    def pieces(self) -> Iterator[str]:
        """Yield the text token by token; joined, the pieces equal the text, which proves that the tree is lossless."""
        levels: list[tuple[Iterator[Node], tuple[int, int] | None]] = [(self.roots, None)]
        while levels:
            nodes, close = levels[-1]
            node = next(nodes, None)
            if node is None:
                levels.pop()
                if close is not None:
                    yield self.text[close[0] : close[1]]
                continue
            yield self.text[node.start : node.end]
            if node.kind == "element":
                levels.append((node.children, node.close))

    def text_of(self, node: Node, limit: int = 100_000) -> str:
        """Return the text in a node and its descendants, with CDATA and without comments.

        Args:
            limit: Characters after which reading stops; each piece of text is cut to it.
        """
        parts: list[str] = []
        length = 0
        levels = [iter((node,))]
        while levels and length < limit:
            item = next(levels[-1], None)
            if item is None:
                levels.pop()
                continue
            if item.kind == "text":
                parts.append(self.text[item.start : min(item.end, item.start + limit)])
            elif item.kind == "cdata":
                parts.append(self.source(item).removeprefix("<![CDATA[").removesuffix("]]>")[:limit])
            else:
                levels.append(item.children)
                continue
            length += len(parts[-1])
        return "".join(parts)


def bare(name: str) -> str:
    """Return a name in lower case, without symbols, joiners and prefixes before its first letter.

    `<⛧manifestation>` and a name that starts with an invisible U+FE0F are thus found by their letters. A name without
    letters is returned unchanged.
    """
    if name.isascii() and name[:1].isalpha():
        return name.lower()
    for place, character in enumerate(name):
        if character.isalnum():
            return unicodedata.normalize("NFC", name[place:]).casefold()
    return name
