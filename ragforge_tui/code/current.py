"""Scopes as they are in their files now, which may have changed since they were indexed."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.code.files import read_file
from ragforge_tui.code.parsed import scopes_of
from ragforge_tui.code.parser import parse_file
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.code_views import ScopeCode
from ragforge_tui.shared.encoding import lines_of, readable
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable

MOST_BYTES = 8_000_000
"""Of a larger file the indexed text is shown."""
_GONE = "The file no longer exists; this is its text as it was indexed."
_UNREADABLE = "The file cannot be read now; this is its text as it was indexed."
_NOT_FOUND = "The file has changed and no longer contains this. Showing the indexed version."


def current_code(workspace: Path, scope: Scope) -> ScopeCode:
    """Return the text of a scope, without secrets, from its file if it is still there; for a thread."""
    try:
        content, *_ = read_file(workspace.resolve(), scope.file, MOST_BYTES)
    except FileNotFoundError:
        return _as_indexed(scope, _GONE)
    except OSError:
        return _as_indexed(scope, _UNREADABLE)
    text = readable(content)
    if text is None:
        return _as_indexed(scope, _UNREADABLE)
    whole = mask_secrets(storable(text))
    lines = lines_of(whole)
    at_its_lines = "\n".join(lines[scope.start_line - 1 : scope.end_line])
    if scope.kind != "module" and scope.text.strip() and _plain(at_its_lines) == _plain(scope.text):
        return ScopeCode(text=at_its_lines, first_line=scope.start_line)
    parsed = parse_file(scope.file, content)
    found = [one for one in scopes_of(parsed, scope.workspace) if one.uuid == scope.uuid] if parsed else []
    if not found:
        return _as_indexed(scope, _NOT_FOUND)
    if scope.kind == "module":
        # What is outside of definitions is not one run of lines, so it has no numbers.
        return ScopeCode(text=mask_secrets(storable(found[0].text)))
    text = "\n".join(lines[found[0].start_line - 1 : found[0].end_line])
    return ScopeCode(text=text, first_line=found[0].start_line)


def scopes_now(workspace: Path, path: str) -> list[Scope]:
    """Return the scopes of a file as it is now; none if it cannot be read or parsed. For a thread."""
    try:
        content, *_ = read_file(workspace.resolve(), path, MOST_BYTES)
    except OSError:
        return []
    parsed = parse_file(path, content)
    return scopes_of(parsed, str(workspace)) if parsed is not None else []


def _as_indexed(scope: Scope, why: str) -> ScopeCode:
    return ScopeCode(text=scope.text, first_line=0 if scope.kind == "module" else scope.start_line, stale=why)


def _plain(text: str) -> str:
    return text.strip().replace("\r\n", "\n")
