"""AGENTS.md of a workspace: found from its repository's root down, used only after the person allowed it.

They are instructions from elsewhere, so they are asked about once per repository and asked again when they change.
The answers are kept in the state folder, not in the repository.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from ragforge_tui.redaction import mask_secrets
from ragforge_tui.text import storable

NAMES = ("AGENTS.md", "CLAUDE.md")
"""First found in a folder wins."""
MAX_BYTES = 64 * 1024
"""Of one file; what is longer is cut there."""


class WorkspaceInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `files` are (path relative to root, text), outermost first; `digest` identifies all of it."""

    root: str
    files: list[tuple[str, str]]
    digest: str


def find_instructions(workspace: Path) -> WorkspaceInstructions | None:
    """The instruction files from the repository's root (else the workspace) down to the workspace."""
    root = _repository_root(workspace)
    folders = [root, *_between(root, workspace)]
    files: list[tuple[str, str]] = []
    for folder in folders:
        found = next((folder / name for name in NAMES if (folder / name).is_file()), None)
        if found is not None and found.resolve().is_relative_to(root):
            text = mask_secrets(storable(found.read_bytes()[:MAX_BYTES].decode("utf-8", "replace")))
            files.append((found.relative_to(root).as_posix(), text))
    if not files:
        return None
    digest = hashlib.sha256(msgspec.json.encode(files)).hexdigest()
    return WorkspaceInstructions(root=str(root), files=files, digest=digest)


def _repository_root(workspace: Path) -> Path:
    for folder in (workspace, *workspace.parents):
        if (folder / ".git").exists():
            return folder
    return workspace


def _between(root: Path, workspace: Path) -> list[Path]:
    steps: list[Path] = []
    while workspace != root:
        steps.append(workspace)
        workspace = workspace.parent
    return steps[::-1]


class TrustBook:
    """The answers given, by repository root: a JSON file of root to (digest, allowed)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def answer(self, found: WorkspaceInstructions) -> bool | None:
        """What was answered for exactly these instructions; None when they must be asked about."""
        entry = self._load().get(found.root)
        return entry[1] if entry is not None and entry[0] == found.digest else None

    def remember(self, found: WorkspaceInstructions, allowed: bool) -> None:
        """Keep an answer; written to a new file and put in place at once."""
        entries = self._load()
        entries[found.root] = (found.digest, allowed)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_bytes(msgspec.json.format(msgspec.json.encode(entries)))
        new.replace(self._path)

    def _load(self) -> dict[str, tuple[str, bool]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[str, bool]])
        except (OSError, msgspec.MsgspecError):
            return {}
