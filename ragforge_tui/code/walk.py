"""Walk over a syntax tree that collects scopes, imports and mentioned names.

Each language is a table of handlers, one for each type of node that matters. The walk keeps its own stack, so that
nesting is limited by memory and not by Python's recursion limit, and visits nodes in the order of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tree_sitter import Node

from ragforge_tui.code.parsed import CLASS, SELF, UNKNOWN, Import, Mention, ParsedScope
from ragforge_tui.shared.code_records import ReferenceKind, ScopeKind

# The parts of a path further left do not change what it leads to; a builder's chain of calls has hundreds.
_LONGEST_PATH = 12
_LONGEST_SIGNATURE = 1000
_LONGEST_DOC = 8000
_SPACES = re.compile(r"\s+")

Handler = Callable[["Walk", Node, int], None]
"""Visits a node in a scope, given by its index, and pushes the children that the walk shall visit."""


class Grammar(NamedTuple):
    """Description of a language for the walk.

    Attributes:
        handlers: Handler of each type of node; the children of other nodes are visited.
        names: Types of nodes that are a name.
        members: Fields of object and name, for types of nodes that select a member.
        calls: Field of the function, for types of nodes that call.
        method_calls: Fields of object and name, for types of nodes that call a member without a node for it.
        through: Types of nodes whose value is that of their first child: parentheses, await.
        comments: Types of nodes that are comments.
        docstring: Returns the documentation within a body, in languages that have it there.
    """

    handlers: Mapping[str, Handler]
    names: frozenset[str]
    members: Mapping[str, tuple[str, str]]
    calls: Mapping[str, str]
    method_calls: Mapping[str, tuple[str, str]] = {}
    through: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment"})
    docstring: Callable[[Walk, Node], str] | None = None


class Walk:
    """State of the walk over one file.

    Attributes:
        scopes: The scopes found, in the order of the file; the first one is the file itself.
        imports: The imports found.
    """

    def __init__(self, grammar: Grammar, source: bytes, lines: list[str], module: ParsedScope) -> None:
        self.scopes: list[ParsedScope] = [module]
        self.imports: list[Import] = []
        self.package = ""
        self._grammar = grammar
        self._source = source
        self._lines = lines
        self._stack: list[tuple[Node, int]] = []
        self._ordinals: Counter[str] = Counter()
        self._seen: set[tuple[int, str, str]] = set()
        self._weak: set[tuple[int, str]] = set()

    def run(self, root: Node) -> None:
        """Visit the tree."""
        handlers, stack = self._grammar.handlers, self._stack
        stack.append((root, 0))
        while stack:
            node, scope = stack.pop()
            handler = handlers.get(node.type)
            if handler is not None:
                handler(self, node, scope)
            else:
                stack.extend((child, scope) for child in reversed(node.named_children))

    def push(self, nodes: Iterable[Node | None], scope: int) -> None:
        """Visit some nodes next, in their order."""
        self._stack.extend((node, scope) for node in reversed([node for node in nodes if node is not None]))

    def push_children(self, node: Node, scope: int, *, but: Iterable[Node | None] = ()) -> None:
        """Visit the children of a node next, without some of them."""
        left_out = {child.id for child in but if child is not None}
        self.push((child for child in node.named_children if child.id not in left_out), scope)

    def text(self, node: Node | None) -> str:
        """Return the text of a node, empty for None."""
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace") if node is not None else ""

    def line(self, node: Node) -> int:
        """Return the line of a node's first character, from 1."""
        return node.start_point.row + 1

    def define(
        self,
        node: Node,
        name: str,
        kind: ScopeKind,
        parent: int,
        *,
        outer: Node | None = None,
        body: Node | None = None,
        doc: str = "",
        owner: str = "",
        qualifier: str = "",
    ) -> int:
        """Add a scope and return its index.

        Args:
            node: The definition, whose text up to `body` is the signature.
            outer: Node around it that belongs to it: decorators, export.
            doc: Documentation; without it the comment in front.
            owner: See `ParsedScope.owner`.
            qualifier: Names of what encloses it, in addition to those of `parent`.
        """
        outer = outer or node
        around = self.scopes[parent].qualified_name if parent > 0 else ""
        qualified = ".".join(part for part in (around, qualifier, name) if part)
        start, end = outer.start_point.row, last_row(outer)
        if self._grammar.docstring is not None:
            # A body without a closing brace is given the comments behind it.
            end = max(start, last_row(self._last_code(outer)))
        self.scopes.append(
            ParsedScope(
                name=name,
                qualified_name=qualified,
                kind=kind,
                start_line=start + 1,
                end_line=end + 1,
                parent=parent,
                ordinal=self._ordinals[qualified],
                owner=owner,
                bases=[],
                types={},
                mentions=[],
                signature=self._signature(node, body),
                doc=(doc or self.comment_before(outer))[:_LONGEST_DOC],
                text="\n".join(self._lines[start : end + 1]),
            )
        )
        self._ordinals[qualified] += 1
        return len(self.scopes) - 1

    def extend_upwards(self, index: int, first: Node) -> None:
        """Begin a scope at a node in front of it: the first of its attributes."""
        scope, row = self.scopes[index], first.start_point.row
        if row + 1 < scope.start_line:
            scope.start_line = row + 1
            scope.text = "\n".join(self._lines[row : scope.end_line])

    def _last_code(self, node: Node) -> Node:
        while True:
            last = node.child(node.child_count - 1) if node.child_count else None
            while last is not None and last.type in self._grammar.comments:
                last = last.prev_sibling
            if last is None:
                return node
            node = last

    def _signature(self, node: Node, body: Node | None) -> str:
        end = body.start_byte if body is not None else node.end_byte
        text = self._source[node.start_byte : min(end, node.start_byte + 4 * _LONGEST_SIGNATURE)]
        signature = _SPACES.sub(" ", text.decode("utf-8", "replace")).strip()
        return signature.rstrip(":{;= " if body is not None else ";, ")[:_LONGEST_SIGNATURE]

    def comment_before(self, node: Node) -> str:
        """Return the text of the comments that end on the line before a node, without their marks."""
        found: list[str] = []
        row, before = node.start_point.row, node.prev_sibling
        while (
            before is not None
            and before.type in self._grammar.comments
            and last_row(before) in (row - 1, row)
            and len(found) < 200
        ):
            previous = before.prev_sibling
            if previous is not None and last_row(previous) == before.start_point.row:
                break  # A comment behind code belongs to that code.
            found.append(self.text(before))
            row, before = before.start_point.row, previous
        return plain_comment("\n".join(reversed(found)))

    def file_doc(self, root: Node) -> str:
        """Return the documentation of the file: its docstring or the comment at its start."""
        if self._grammar.docstring is not None:
            return self._grammar.docstring(self, root)[:_LONGEST_DOC]
        found: list[str] = []
        row = 0
        for node in root.children[:200]:
            if node.type not in self._grammar.comments or (found and node.start_point.row > row + 1):
                break
            found.append(self.text(node))
            row = last_row(node)
        return plain_comment("\n".join(found))[:_LONGEST_DOC]

    def bind(self, scope: int, name: str, path: str = UNKNOWN) -> None:
        """Record the value of a variable; the first known one counts."""
        types = self.scopes[scope].types
        if types.get(name, UNKNOWN) == UNKNOWN:
            types[name] = path

    def mention(self, scope: int, kind: ReferenceKind, path: str, line: int, *, weak: bool = False) -> None:
        """Record that a scope mentions a path.

        Args:
            weak: Forget it at the end unless its first name is imported or defined in the file, like a local variable.
        """
        key = (scope, kind, path)
        if not path or path == UNKNOWN or key in self._seen:
            return
        self._seen.add(key)
        self.scopes[scope].mentions.append(Mention(kind, path, line))
        if weak:
            self._weak.add((scope, path))

    def drop_local_names(self) -> None:
        """Forget weak mentions of names that the file neither imports nor defines.

        Where names are visible without being named, those in capitals stay: they are rarely variables.
        """
        visible = bool(self.package) or any(item.name == "*" for item in self.imports)
        known = {scope.name for scope in self.scopes[1:]} | {item.alias for item in self.imports}
        for index, scope in enumerate(self.scopes):
            scope.mentions = [
                mention
                for mention in scope.mentions
                if mention.kind != "uses"
                or (index, mention.path) not in self._weak
                or (names := mention.path.replace("()", "").split("."))[0] in known
                or (visible and names[0][:1].isupper())
                or (names[0] in ("this", "self", SELF, CLASS, "cls") and names[-1] in known)
            ]

    def path(self, node: Node | None) -> tuple[str, Node | None]:
        """Return the path of an expression, and the node within it that remains to be visited, if any."""
        grammar = self._grammar
        names: list[str] = []
        called, rest = "", None
        while node is not None:
            kind = node.type
            if kind in grammar.names:
                names.append(plain_name(self.text(node)) + called)
                break
            if kind in grammar.members:
                holder, member = grammar.members[kind]
                names.append(plain_name(self.text(node.child_by_field_name(member))) + called)
                called, inner = "", node.child_by_field_name(holder)
                if inner is None and node.child_count and not node.child(0).is_named:
                    break  # A path from the root: `::std::move`.
            elif kind in grammar.method_calls:
                holder, member = grammar.method_calls[kind]
                rest = rest or node
                names.append(plain_name(self.text(node.child_by_field_name(member))) + "()")
                called, inner = "", node.child_by_field_name(holder)
                if inner is None:
                    break
            elif kind in grammar.calls:
                rest, inner = rest or node, node.child_by_field_name(grammar.calls[kind])
                if called:
                    names.append(UNKNOWN)
                    break
                called = "()"
            elif kind in grammar.through:
                inner = first_child(node)
            else:
                rest, inner = rest or node, None
            if inner is None or len(names) >= _LONGEST_PATH:
                names.append(UNKNOWN)
                rest = rest or inner
                break
            node = inner
        return ".".join(reversed(names)), rest

    def enclosing_class(self, scope: int) -> int | None:
        """Return the index of the innermost class around a scope, or the scope itself if it is one."""
        while scope > 0:
            if self.scopes[scope].kind in ("class", "interface", "struct", "enum", "trait"):
                return scope
            scope = self.scopes[scope].parent
        return None

    def type_value(self, node: Node | None, unwrapped: frozenset[str] = frozenset()) -> str:
        """Return the path of an instance of a written type, empty if it is none of one class.

        Args:
            unwrapped: Types that are replaced by their first argument, such as pointers and promises.
        """
        return type_value(self.text(node), unwrapped)

    def bind_all(self, scope: int, node: Node | None, kinds: frozenset[str]) -> None:
        """Bind every name in a pattern, whose value is not known."""
        stack = [node] if node is not None else []
        while stack:
            item = stack.pop()
            if item.type in kinds:
                self.bind(scope, self.text(item))
            stack.extend(item.named_children)


def call(walk: Walk, node: Node, scope: int) -> None:
    """Handle a call: mention the callee and visit the arguments."""
    function = node.child_by_field_name(walk._grammar.calls[node.type])
    path, rest = walk.path(function)
    walk.mention(scope, "calls", path, walk.line(function or node))
    walk.push([rest, *(child for child in node.named_children if function is None or child.id != function.id)], scope)


def name(walk: Walk, node: Node, scope: int) -> None:
    """Handle a name, or a member of one, that is not called."""
    path, rest = walk.path(node)
    walk.mention(scope, "uses", path, walk.line(node), weak=True)
    if rest is not None and rest.id == node.id:
        walk.push_children(node, scope)  # The path takes nothing of it: visiting it again would never end.
    else:
        walk.push([rest], scope)


def skip(walk: Walk, node: Node, scope: int) -> None:
    """Handle a node without names."""


def type_name(walk: Walk, node: Node, scope: int) -> None:
    """Handle the name of a type, and its arguments."""
    path = plain_name(walk.text(node))
    if _PATH.fullmatch(path):
        walk.mention(scope, "uses", path, walk.line(node))
    walk.push((child for child in node.named_children if "arguments" in child.type), scope)


def extend(walk: Walk, nodes: Iterable[Node], scope: int) -> None:
    """Record the types that a scope's type extends or implements."""
    for node in nodes:
        path = plain_name(walk.text(node))
        if _PATH.fullmatch(path):
            walk.scopes[scope].bases.append(path)
            walk.mention(scope, "inherits", path, walk.line(node))
        walk.push((child for child in node.named_children if "arguments" in child.type), scope)


def first_child(node: Node | None) -> Node | None:
    """Return the first named child of a node, None without one."""
    return node.named_child(0) if node is not None and node.named_child_count else None


def last_row(node: Node) -> int:
    """Return the row of a node's last character; a node that ends at a line's start ends on the line before."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point.row else row


def plain_name(text: str) -> str:
    """Return a qualified name with dots, without type arguments and spaces."""
    if text.isidentifier():
        return text
    if "<" in text or "[" in text:
        text = _ARGUMENTS.sub("", text)
    return "".join(text.split()).replace("::", ".").replace("?.", ".").lstrip(".")


def type_value(text: str, unwrapped: frozenset[str] = frozenset()) -> str:
    """Return the path of an instance of a written type; see `Walk.type_value`."""
    for _ in range(4):
        text = _TYPE_WORDS.sub("", text.strip().replace("::", ".")).strip()
        match = _PATH.match(text)
        if match is None or text.endswith("[]"):
            return ""
        rest = text[match.end() :].strip()
        if match[0].rpartition(".")[2] in unwrapped and rest[:1] in ("<", "["):
            text = rest[1:].rpartition(">" if rest[0] == "<" else "]")[0]
            if "|" not in text and "<" not in text:
                text = text.partition(",")[0]
            continue
        choices = [item.strip() for item in rest.lstrip("&* ").split("|")[1:]] if rest.lstrip().startswith("|") else []
        if any(item not in ("null", "undefined", "None") for item in choices):
            return ""
        return match[0] + "()"
    return ""


_ARGUMENTS = re.compile(r"<.*>|\[.*\]", re.DOTALL)
_PATH = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*|\$[\w$]*")
_TYPE_WORDS = re.compile(
    r"^(?:[:&*\s]|'\w+\b|(?:mut|dyn|impl|const|volatile|struct|class|enum|typename|readonly|static)\b)+"
)
_COMMENT_MARK = re.compile(r"^[^\S\n]*(?:///?!?|//!|/\*\*?!?|\*/|\*(?!/)|#:?!?|;+|--)[ \t]?|\*/\s*$", re.MULTILINE)


def plain_comment(text: str) -> str:
    """Return the text of comments without their marks."""
    return "\n".join(line.rstrip() for line in _COMMENT_MARK.sub("", text).splitlines()).strip()
