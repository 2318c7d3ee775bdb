"""Small sources of several files, parsed and resolved, as texts that a test can compare."""

from __future__ import annotations

from ragforge_tui.code.parsed import ParsedFile, scope_uuid
from ragforge_tui.code.parser import parse_file
from ragforge_tui.code.resolver import Resolution, Resolver


def parsed(path: str, text: str) -> ParsedFile:
    """Parse one file that the parser knows."""
    result = parse_file(path, text.encode())
    assert result is not None
    return result


def scopes(path: str, text: str) -> list[str]:
    """Return ``kind qualified_name first-last`` of each scope but the file's own."""
    found = parsed(path, text).scopes
    return [f"{scope.kind} {scope.qualified_name} {scope.start_line}-{scope.end_line}" for scope in found[1:]]


class Sources:
    """Files of a workspace and the references between them."""

    def __init__(self, **files: str) -> None:
        self.files = {path: parsed(path, text) for path, text in files.items()}
        self.resolver = Resolver("w", self.files)
        self.result = self.resolver.resolve()

    def edges(self, kind: str = "", *, least: float = 0.0) -> set[str]:
        """Return ``source -> target`` of each reference, as ``file:name``."""
        names = named(self.files)
        return {
            f"{names[item.source]} -> {names[item.target]}"
            for item in self.result.references
            if kind in ("", item.kind) and item.confidence >= least
        }

    def confidence(self, edge: str) -> float:
        """Return the confidence of a reference."""
        names = named(self.files)
        return max(
            item.confidence
            for item in self.result.references
            if f"{names[item.source]} -> {names[item.target]}" == edge
        )

    def unresolved(self, kind: str = "calls") -> set[str]:
        """Return the names of one kind without a target."""
        return {item.name for item in self.result.unresolved if item.kind == kind}


def named(files: dict[str, ParsedFile]) -> dict[str, str]:
    """Return ``file:name`` of each scope by its uuid; the file's own scope is the file."""
    return {
        scope_uuid("w", path, scope): path if scope.parent < 0 else f"{path}:{scope.qualified_name}"
        for path, item in files.items()
        for scope in item.scopes
    }


def as_texts(files: dict[str, ParsedFile], result: Resolution) -> set[str]:
    """Return everything that was resolved, one line each."""
    names = named(files)
    found = {f"{names[r.source]} {r.kind} {names[r.target]} {r.line} {r.confidence}" for r in result.references}
    return found | {f"{names[u.source]} {u.kind} ?{u.name} {u.line}" for u in result.unresolved}
