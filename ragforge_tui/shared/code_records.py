"""Records of the code in a workspace: scopes, the references between them, and the state of the index.

A scope is a named piece of a file: a function, method, class, interface, struct, enum, trait, type, a file's code
outside of these (`module`), or a part of a text file under a heading (`section`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from ragforge_tui.shared.formatting import counted

ScopeKind = Literal[
    "function", "method", "class", "interface", "struct", "enum", "trait", "type", "constant", "module", "section"
]
ReferenceKind = Literal["calls", "imports", "inherits", "uses"]


class Scope(msgspec.Struct, kw_only=True):
    """Named piece of a file.

    Attributes:
        uuid: Derived from workspace, file and qualified name, so that it survives a change of the scope's text.
        qualified_name: Name with those of the enclosing scopes, joined by dots: ``Session.send``.
        file: Path relative to the workspace, with forward slashes.
        start_line: First line, from 1; `end_line` is the last one, inclusive.
        signature: The declaration without the body, on one line.
        doc: Documentation of the scope: docstring or the comment in front of it.
        digest: Of `text`.
    """

    uuid: str
    name: str
    qualified_name: str = ""
    kind: ScopeKind
    language: str = ""
    file: str
    start_line: int
    end_line: int
    workspace: str = ""
    signature: str = ""
    doc: str = ""
    text: str = ""
    digest: str = ""


class Reference(msgspec.Struct, kw_only=True, frozen=True):
    """Reference from one scope to another of the same workspace.

    Attributes:
        source: Uuid of the scope that refers.
        target: Uuid of the scope referred to.
        line: Line of the first such reference, in the source's file.
        confidence: 0 to 1: 1 where an import or the enclosing scope names the target, less where only its name fits.
    """

    source: str
    target: str
    kind: ReferenceKind
    line: int = 0
    confidence: float = 1.0


class UnresolvedName(msgspec.Struct, kw_only=True, frozen=True):
    """Name that a scope refers to and that no scope of the workspace explains: a library's, or a dynamic one."""

    source: str
    name: str
    kind: ReferenceKind
    line: int = 0


class ScopeHit(msgspec.Struct, kw_only=True):
    """Scope that a search found.

    Attributes:
        score: Of the search as a whole; 0 until the candidates are ranked.
        words: Score of the full-text index; None if it did not find the scope.
        meaning: Cosine of its vector and the query's; None if it was not among the nearest.
    """

    scope: Scope
    score: float = 0.0
    words: float | None = None
    meaning: float | None = None


class FoundCode(msgspec.Struct, kw_only=True, frozen=True):
    """Scopes that matter for a message, best first.

    Attributes:
        missing: Sentence on searches that failed or took too long; empty if there were none.
    """

    scopes: list[Scope] = []
    missing: str = ""


class ScopeTalk(msgspec.Struct, kw_only=True, frozen=True):
    """Turn in which a scope was read, changed or named."""

    conversation_id: str
    title: str
    turn_index: int
    message_id: str
    timestamp: datetime
    role: str = ""
    text: str = ""


class IndexedFile(msgspec.Struct, kw_only=True):
    """File of the index of code.

    Attributes:
        size: In bytes, and `mtime` in nanoseconds: a file with the same ones is not read again.
        digest: Of its content.
        parsed: What resolving the references of other files needs of this one, as the parser encoded it.
        version: Of the parser; a file of another version is parsed again.
        embedded: Embedding model of all its scopes; empty while some have no vector.
        left_out: Reason why it has no scopes; it stays in the index, so that it is not read at each start.
        linked: Digest of its references and unresolved names, as last stored; empty before they were resolved.
        defines: Number of its scopes; `refers` that of its references, `unresolved` that of its unresolved names.
        search_texts: For each scope what its full-text index holds. If given, the scopes' texts are masked already.
    """

    path: str
    digest: str
    language: str = ""
    size: int = 0
    mtime: int = 0
    version: int = 0
    embedded: str = ""
    left_out: str = ""
    linked: str = ""
    defines: int = 0
    refers: int = 0
    unresolved: int = 0
    parsed: bytes = b""
    scopes: list[Scope] = []
    search_texts: list[str] = []


MOST_DEATHS = 2
REST_DAYS = 1
"""Time for which a folder that ended the process that reads it that often is left out."""


class CodeTotals(msgspec.Struct, kw_only=True):
    """Totals of a workspace's index of code, as stored after its last run.

    Attributes:
        left_out: Number of files left out, by reason.
        problem: What the user should know about the last run; empty if nothing.
        complete: Whether the last run reached its end.
        deaths: How often the process that reads the files died since the last complete run.
    """

    workspace: str
    files: int = 0
    scopes: int = 0
    references: int = 0
    unresolved: int = 0
    vectors: int = 0
    indexed_at: datetime | None = None
    left_out: dict[str, int] = {}
    problem: str = ""
    complete: bool = False
    deaths: int = 0

    @property
    def rests_until(self) -> datetime | None:
        """Return until when the whole folder is left out, because reading it ended that process again and again."""
        if self.deaths < MOST_DEATHS or self.indexed_at is None:
            return None
        end = self.indexed_at + timedelta(days=REST_DAYS)
        return end if end > datetime.now(UTC) else None

    def summary(self) -> str:
        """Return the totals as a phrase."""
        left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))
        parts = [
            f"{counted(self.files, 'file')}, {counted(self.scopes, 'scope')}, {counted(self.references, 'reference')}",
            f"{self.unresolved} unresolved names",
            f"{self.vectors} with vectors",
            f"left out: {left_out}" if left_out else "",
            "" if self.complete else "not complete",
            self.problem.rstrip("."),
        ]
        return "; ".join(part for part in parts if part)


HitKind = Literal["code", "section", "turn", "summary", "topic"]


class BrainHit(msgspec.Struct, kw_only=True, frozen=True):
    """Hit of the search over code, text files, turns, summaries and topics.

    Attributes:
        title: Qualified name of a scope, heading of a section, title of a conversation or a summary, name of a topic.
        file: Path of a scope or section, relative to the workspace; empty for the others.
        scope: Uuid of a scope or section, empty for the others.
        start_line: First line of a scope or section.
        conversation_id: Conversation of a turn or summary; empty for the others.
        turn_index: Turn, or first turn of a summary.
        end_turn_index: Last turn of a summary; 0 for the others.
        date: Start of a turn; when a summary was made.
        snippet: Plain text around the matching words, on one line.
        highlights: (start, end) offsets of matching words in `snippet`.
        score: Comparable within one search only.
    """

    kind: HitKind
    title: str
    file: str = ""
    scope: str = ""
    start_line: int = 0
    end_line: int = 0
    conversation_id: str = ""
    turn_index: int = 0
    end_turn_index: int = 0
    date: datetime | None = None
    snippet: str = ""
    highlights: list[tuple[int, int]] = []
    score: float = 0.0
