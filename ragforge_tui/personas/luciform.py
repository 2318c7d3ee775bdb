"""The tree of a `.luciform` text: elements, texts and what else stands between angle brackets, each with its place.

Nodes hold offsets into the text, not copies of it, and lines are counted only when somebody asks; so ten megabytes
stay ten megabytes. Made by `reader`, used for metadata, validation and previews; the model never sees it.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["text", "element", "comment", "cdata", "declaration", "stray"]
Severity = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a reader stumbled over. `line` and `column` count from 1; a column is a character."""

    line: int
    column: int
    message: str
    severity: Severity = "warning"

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.message}"


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


NO_ATTRIBUTES: tuple[Attribute, ...] = ()
NO_CHILDREN: tuple[Node, ...] = ()


class Node:
    """A piece of the text.

    Attributes:
        start, end: The token's own offsets: an element's are those of its start tag.
        name: An element's as written, a stray end tag's, else empty.
        children: A list while the reader fills it, the shared empty tuple where there are none: a text may hold
            millions of nodes, and a list for each would be most of what it takes.
        close: Offsets of an element's end tag; None when it has none.
    """

    __slots__ = ("attributes", "children", "close", "end", "kind", "name", "start")

    def __init__(self, kind: Kind, start: int, end: int, name: str = "") -> None:
        self.kind: Kind = kind
        self.start = start
        self.end = end
        self.name = name
        self.attributes: list[Attribute] | tuple[Attribute, ...] = NO_ATTRIBUTES
        self.children: list[Node] | tuple[Node, ...] = NO_CHILDREN
        self.close: tuple[int, int] | None = None

    def add(self, child: Node) -> None:
        """Put a node after its children."""
        if isinstance(self.children, list):
            self.children.append(child)
        else:
            self.children = [child]

    def __repr__(self) -> str:
        return f"Node({self.kind!r}, {self.start}, {self.end}, {self.name!r}, {len(self.children)} children)"

    @property
    def bare_name(self) -> str:
        """The name to look things up by: without the signs before its letters, in lower case."""
        return bare(self.name)

    def attribute(self, *names: str) -> str | None:
        """The value of the first attribute with one of these bare names that has one."""
        for attribute in self.attributes:
            if attribute.raw is not None and bare(attribute.name) in names:
                return attribute.raw
        return None


class Luciform:
    """A text, read.

    Attributes:
        roots: The outermost nodes, in order; several elements may be among them.
        diagnostics: What the reader stumbled over, in order, the first `MAX_DIAGNOSTICS` of them.
        unlisted: How many more there were.
    """

    def __init__(self, text: str, roots: list[Node], found: list[tuple[int, str, Severity]], unlisted: int) -> None:
        self.text = text
        self.roots = roots
        self.unlisted = unlisted
        self._found = found

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """What the reader stumbled over."""
        return [Diagnostic(*self.place(offset), message, severity) for offset, message, severity in self._found]

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, from 1. A line ends with a line feed."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @property
    def root(self) -> Node | None:
        """The first element of all."""
        return next((node for node in self.roots if node.kind == "element"), None)

    def source(self, node: Node) -> str:
        """A node's own token as written."""
        return self.text[node.start : node.end]

    def walk(self, *, max_depth: int | None = None) -> Iterator[tuple[Node, int]]:
        """All nodes in the order of their start, each with its depth, roots being 0."""
        stack = [(node, 0) for node in reversed(self.roots)]
        while stack:
            node, depth = stack.pop()
            yield node, depth
            if max_depth is None or depth < max_depth:
                stack.extend((child, depth + 1) for child in reversed(node.children))

    def pieces(self) -> Iterator[str]:
        """The text again, token by token: joined they are the text, which is how the tree proves it lost nothing."""
        stack: list[Node | tuple[int, int]] = list(reversed(self.roots))
        while stack:
            item = stack.pop()
            if isinstance(item, tuple):
                yield self.text[item[0] : item[1]]
                continue
            yield self.source(item)
            if item.close is not None:
                stack.append(item.close)
            stack.extend(reversed(item.children))

    def text_of(self, node: Node, limit: int = 100_000) -> str:
        """What is written in an element and below it, comments left out, CDATA taken in; at most about `limit`."""
        parts: list[str] = []
        length = 0
        stack = [node]
        while stack and length < limit:
            item = stack.pop()
            if item.kind == "text":
                parts.append(self.text[item.start : min(item.end, item.start + limit)])
            elif item.kind == "cdata":
                parts.append(self.source(item).removeprefix("<![CDATA[").removesuffix("]]>")[:limit])
            else:
                stack.extend(reversed(item.children))
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
