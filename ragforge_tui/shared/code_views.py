"""Views of the workspace's code that tools, screens and command line share: references, current text, one line."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.code_records import ReferenceKind, Scope, ScopeTalk, UnresolvedName
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.sanitize import plain_text


class ScopeLink(msgspec.Struct, kw_only=True):
    """Scope at the other end of a reference.

    Attributes:
        line: Line of the first such reference, in the file of the scope that refers.
        depth: References between it and the scope asked about, from 1.
    """

    scope: Scope
    kind: ReferenceKind
    line: int = 0
    confidence: float = 1.0
    depth: int = 1


class TouchedScope(msgspec.Struct, kw_only=True, frozen=True):
    """Scope that turns of a conversation touched or named.

    Attributes:
        turn_index: The last of these turns.
        turns: Their number.
    """

    scope: Scope
    turn_index: int
    turns: int = 1


class ScopeCode(msgspec.Struct, kw_only=True, frozen=True):
    """Current text of a scope.

    Attributes:
        first_line: Line of the file that the text starts at, 0 if its lines are not contiguous.
        stale: Why the text is not the file's own; empty if it is.
    """

    text: str
    first_line: int = 0
    stale: str = ""


class ScopeView(msgspec.Struct, kw_only=True):
    """All about one scope.

    Attributes:
        members: Scopes defined inside it.
        callers: Scopes that refer to it; `callees` are those it refers to.
    """

    scope: Scope
    code: ScopeCode
    members: list[Scope] = []
    callers: list[ScopeLink] = []
    callees: list[ScopeLink] = []
    unresolved: list[UnresolvedName] = []
    talks: list[ScopeTalk] = []


class CalledCode(msgspec.Struct, frozen=True):
    """Code that a tool call was about: a scope by its uuid, or the file at a path."""

    scope: str = ""
    path: str = ""


def scope_name(scope: Scope) -> str:
    """Return the qualified name of a scope; the file of a `module`."""
    return scope.qualified_name or scope.name


def scope_place(scope: Scope) -> str:
    """Return file and lines of a scope: ``src/a.py:10-40``."""
    return f"{scope.file}:{scope.start_line}-{scope.end_line}"


def scope_line(scope: Scope, *, doc: bool = True) -> str:
    """Return a scope on one line: place, kind, name, signature and the first line of its documentation."""
    parts = [scope_place(scope), scope.kind, scope_name(scope)]
    if scope.signature and scope.signature != scope.name:
        parts.append(f"· {scope.signature}")
    first = next((line.strip() for line in scope.doc.splitlines() if line.strip()), "") if doc else ""
    parts += [f"— {first}"] if first else []
    return " ".join(plain_text(" ".join(parts)).split())


def code_of(call: ToolCall) -> CalledCode | None:
    """Return the code that a call was about, None for none."""
    scopes = json_object(call.result.result).get("scopes") if call.result is not None else None
    if isinstance(scopes, list) and scopes and isinstance(scopes[0], str):
        return CalledCode(scope=scopes[0])
    paths = [file.path for file in call.files if file.access in ("read", "write")]
    return CalledCode(path=paths[0]) if paths else None
