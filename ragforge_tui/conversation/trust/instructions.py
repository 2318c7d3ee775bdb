"""AGENTS.md files from a repository's root down to the workspace, used only after the user allowed them.

They are instructions of unknown origin, so the user is asked once per repository and again when they change. Answers
are stored in the state folder, not in the repository.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from ragforge_tui.shared.events import Event, Notice, TrustRequested
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json
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
            text = mask_secrets(storable(read_regular(file, MAX_BYTES, cut=True).decode("utf-8", "replace")))
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
            return decode_json(read_regular(self._path, STATE_BYTES), dict[str, tuple[str, bool]])
        except (OSError, msgspec.MsgspecError):
            return {}


class InstructionTrust:
    """Instructions of one workspace and the user's answer.

    Args:
        book: File of the answers.
        interactive: Whether a user can answer; otherwise instructions that are not allowed yet stay unused.
        enabled: Whether instructions are used at all (`tools.agents_md`).
    """

    def __init__(
        self,
        workspace: Path,
        book: Path,
        emit: Callable[[Event], None],
        *,
        interactive: bool,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled
        self._workspace = workspace
        self._book = TrustBook(book)
        self._emit = emit
        self._interactive = interactive
        self._asked: asyncio.Future[bool] | None = None
        self._in_question: WorkspaceInstructions | None = None
        self._noticed = False

    async def instructions(self) -> list[tuple[str, str]]:
        """Return the (path, text) of allowed instructions; wait for the user if they have not been asked yet."""
        instructions = await asyncio.to_thread(find_instructions, self._workspace) if self._enabled else None
        if instructions is None:
            return []
        allowed = self._book.answer(instructions)
        if allowed is None:
            allowed = await self._ask(instructions)
        return instructions.files if allowed else []

    async def _ask(self, instructions: WorkspaceInstructions) -> bool:
        names = [name for name, _ in instructions.files]
        if not self._interactive:
            if not self._noticed:
                self._noticed = True
                unused = f"{names[0]} is" if len(names) == 1 else f"{', '.join(names)} are"
                them = "it" if len(names) == 1 else "them"
                self._emit(Notice(text=f"{unused} not used: you have not allowed {them} for {instructions.root} yet."))
            return False
        if self._asked is None or self._asked.done():
            self._in_question = instructions
            self._asked = asyncio.get_running_loop().create_future()
            text = "\n\n".join(f"{name}\n{content}" for name, content in instructions.files)
            self._emit(TrustRequested(root=instructions.root, files=names, text=text))
        return await asyncio.shield(self._asked)

    def answer(self, root: str, allowed: bool) -> None:
        """Apply and store the user's answer."""
        if self._in_question is None or self._in_question.root != root:
            return
        self._book.remember(self._in_question, allowed)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(allowed)

    def close(self) -> None:
        """Stop asking, because the user is gone; waiting turns continue without the instructions."""
        self._interactive = False
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(False)
