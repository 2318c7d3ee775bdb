"""AGENTS.md files from a repository's root down to the workspace, used only after the user allowed them.

They are instructions of unknown origin, so the user is asked once per repository and again when they change. Answers
are stored in the state folder, not in the repository.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import atomic_write
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable

NAMES = ("AGENTS.md", "CLAUDE.md")
"""In each folder the first existing one is used."""
MAX_BYTES = 64 * 1024
"""Bytes of one file; the rest is ignored."""


class WorkspaceInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """Instruction files of a repository.

    Attributes:
        files: (path relative to root, text), outermost first.
        digest: Hash of all paths and texts.
    """

    root: str
    files: list[tuple[str, str]]
    digest: str


def find_instructions(workspace: Path) -> WorkspaceInstructions | None:
    """Return the instruction files from the repository's root, else the workspace, down to the workspace."""
    root = _repository_root(workspace)
    folders = [root, *_between(root, workspace)]
    files: list[tuple[str, str]] = []
    for folder in folders:
        file = next((folder / name for name in NAMES if (folder / name).is_file()), None)
        if file is not None and file.resolve().is_relative_to(root):
            text = mask_secrets(storable(file.read_bytes()[:MAX_BYTES].decode("utf-8", "replace")))
            files.append((file.relative_to(root).as_posix(), text))
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
    """Answers of the user by repository root: a JSON file that maps root to (digest, allowed)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def answer(self, instructions: WorkspaceInstructions) -> bool | None:
        """Return the answer for exactly these instructions; None if the user has to be asked."""
        entry = self._load().get(instructions.root)
        return entry[1] if entry is not None and entry[0] == instructions.digest else None

    def remember(self, instructions: WorkspaceInstructions, allowed: bool) -> None:
        """Store an answer; the file is replaced atomically."""
        entries = self._load()
        entries[instructions.root] = (instructions.digest, allowed)
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode(entries)))

    def _load(self) -> dict[str, tuple[str, bool]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[str, bool]])
        except (OSError, msgspec.MsgspecError):
            return {}
