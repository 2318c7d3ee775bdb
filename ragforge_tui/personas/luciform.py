"""The tree of a `.luciform` text: elements, texts and what else stands between angle brackets, each with its place.

A text may hold millions of tags, and an object for each would take longer to make than the text takes to read. So
what is kept is two columns of numbers, a row for each token in the order of the text (where it begins, and what it is
or where its end tag stands), and a node is made of a row when somebody looks at it. Lines are counted
likewise only when somebody asks. Made by `reader`, used for metadata, validation and previews; the model never sees
it.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from ragforge_tui.personas.attributes import NAME, Attribute, attributes

Kind = Literal["text", "element", "comment", "cdata", "declaration", "stray"]
Severity = Literal["warning", "note"]
Found = tuple[int, str, Severity]
"""Something to say of an offset."""

UNCLOSED: Final = -1
EMPTY: Final = -2
END_TAG: Final = -3
STRAY: Final = -4
COMMENT: Final = -5
CDATA: Final = -6
DECLARATION: Final = -7
_KINDS: dict[int, Kind] = {STRAY: "stray", COMMENT: "comment", CDATA: "cdata", DECLARATION: "declaration"}

_END_TAG = re.compile(r"(</[^\s<>/=\"']*+)[^<>]*+(>)?")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a reader stumbled over. `line` and `column` count from 1; a column is a character."""

    line: int
    column: int
    message: str
    severity: Severity = "warning"

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.message}"


class Tokens:
    """The rows of a text, in its order; what lies between two of them is text.

    Attributes:
        mates: Of an element with an end tag, the row of that; of every other token, which it is (`UNCLOSED` …).
        ends: The offset after a token, where it is not the one after the next `>` (or, of an end tag that meets the
            next `<` first, the one after its name).
    """

    __slots__ = ("ends", "mates", "starts")

    def __init__(self) -> None:
        self.starts = array("q")
        self.mates = array("q")
        self.ends: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, start: int, end: int, mate: int) -> None:
        """Put a token after the others."""
        self.ends[len(self.starts)] = end
        self.starts.append(start)
        self.mates.append(mate)


class Node:
    """A piece of the text, as one looks at it.

    Attributes:
        start, end: The token's own offsets: an element's are those of its start tag.
        close: Offsets of an element's end tag; None when it has none.
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
        """An element's as written, a stray end tag's, else empty."""
        if self.kind not in ("element", "stray"):
            return ""
        match = NAME.match(self._document.text, self.start + (1 if self.kind == "element" else 2))
        return match[0] if match else ""

    @property
    def bare_name(self) -> str:
        """The name to look things up by: without the signs before its letters, in lower case."""
        return bare(self.name)

    @property
    def children(self) -> Iterator[Node]:
        """What stands directly in it, in order."""
        return self._document.children(self._row) if self.kind == "element" else iter(())

    @property
    def attributes(self) -> Iterator[Attribute]:
        """An element's, in order, given twice or not."""
        if self.kind != "element":
            return iter(())
        return attributes(self._document.text, self.start + 1 + len(self.name), self.end)

    def attribute(self, *names: str) -> str | None:
        """The value of the first attribute with one of these bare names that has one."""
        for attribute in self.attributes:
            if attribute.raw is not None and bare(attribute.name) in names:
                return attribute.raw
        return None


class Luciform:
    """A text, read.

    Attributes:
        unlisted: How many more diagnostics there were than are kept.
    """

    def __init__(self, text: str, tokens: Tokens, found: list[Found], unlisted: int) -> None:
        self.text = text
        self.unlisted = unlisted
        self._tokens = tokens
        self._found = found

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """What the reader stumbled over, in order, the first of them."""
        listed: list[Diagnostic] = []
        line, line_start, counted = 1, 0, 0
        for offset, message, severity in self._found:
            if feeds := self.text.count("\n", counted, offset):
                line += feeds
                line_start = self.text.rindex("\n", counted, offset) + 1
            counted = offset
            listed.append(Diagnostic(line, offset - line_start + 1, message, severity))
        return listed

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, from 1. A line ends with a line feed."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    @property
    def roots(self) -> Iterator[Node]:
        """The outermost nodes, in order; several elements may be among them."""
        return self._row_nodes(0, len(self._tokens), 0)

    @property
    def root(self) -> Node | None:
        """The first element of all."""
        return next((node for node in self.roots if node.kind == "element"), None)

    def children(self, row: int) -> Iterator[Node]:
        """What stands directly in the element of a row."""
        tokens = self._tokens
        mate = tokens.mates[row]
        if mate >= 0:
            return self._row_nodes(row + 1, mate, self._end(row))
        return self._leaves_after(row) if mate == UNCLOSED else iter(())

    def _row_nodes(self, row: int, last: int, position: int) -> Iterator[Node]:
        """The nodes of one level: of the rows from `row` to before `last`, and the texts between from `position` on."""
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
        """The offset after a token."""
        if known := self._tokens.ends.get(row):
            return known
        start = self._tokens.starts[row]
        match = _END_TAG.match(self.text, start)
        if match is None:
            return self.text.find(">", start) + 1
        return match.end() if match[2] else match.end(1)

    def _past_leaves(self, row: int) -> tuple[int, int]:
        """The row after an unclosed element and what stays in it, and where the text before that row has ended.

        Texts, comments and CDATA right after its tag stay in it; from the first other token on all is beside it.
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
        """A node's own token as written."""
        return self.text[node.start : node.end]

    def walk(self, *, max_depth: int | None = None) -> Iterator[tuple[Node, int]]:
        """All nodes in the order of their start, each with its depth, roots being 0."""
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
        """The text again, token by token: joined they are the text, which is how the tree proves it lost nothing."""
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
        """What is written in an element and below it, comments left out, CDATA taken in; at most about `limit`."""
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
    """A name without the signs, joiners and prefixes before its first letter, in lower case.

    `<⛧manifestation>` and a name that begins with an invisible U+FE0F are found under their letters; a name without
    letters stays as it is.
    """
    if name.isascii() and name[:1].isalpha():
        return name.lower()
    for place, character in enumerate(name):
        if character.isalnum():
            return unicodedata.normalize("NFC", name[place:]).casefold()
    return name
