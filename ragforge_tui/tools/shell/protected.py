"""Parts of a workspace that a command in the sandbox must not change, and a record of what it changed beside them.

Programs outside run these parts or obey them: git's settings and hooks, editors' and agents' folders, the programs of
environments. Where there is none yet, a placeholder is made for the time of the command, and mounted read-only like the
rest, so that nothing has to be moved away afterwards. Other files that run later may be a command's work, so a change
of them is recorded: from then on commands outside the sandbox are asked about, until one was approved.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, make_private, read_regular
from ragforge_tui.shared.git import hooks_folder
from ragforge_tui.tools.shell.survey import Found

_NAMES = (
    *(".ragforge", ".claude", ".codex", ".cursor", ".gemini", ".opencode", ".vscode", ".idea", ".devcontainer"),
    *(".husky", ".githooks", ".envrc", ".mcp.json", ".pre-commit-config.yaml"),
)
"""A placeholder is a folder also where a file would be: git adds no empty folder."""
_LONGEST = 16
_GIT_FOLDERS = ("hooks", "info", "modules", "worktrees")
_GIT_FILES = {"config": "", "config.worktree": "", "commondir": ".\n"}
"""With what a placeholder says: to git outside, which meets it meanwhile, all is as it was."""
_INSTALLS = re.compile(
    r"(?<![\w.-])(?:pip[\d.]*|uv|poetry|pdm|hatch|rye|npm|pnpm|yarn|bun|conda|mamba)\s+(?:-\S+\s+)*"
    r"(?:install|add|sync|ci|i|up|update|upgrade|remove|uninstall|link|rebuild|venv|env|create)(?![\w-])"
    r"|(?<![\w.-])(?:-m\s+venv|virtualenv)(?![\w-])|^\s*yarn\s*$"
)
"""Commands whose work is to write programs into an environment."""


class _Record(msgspec.Struct):
    """State of a workspace between commands.

    Attributes:
        placeholders: Paths of placeholders that exist.
        changed: Files that run later and that commands in the sandbox changed.
    """

    placeholders: list[str] = []
    changed: list[str] = []


class Protected:
    """The protected parts of one workspace.

    Args:
        folder: Where the record is kept.
    """

    def __init__(self, workspace: Path, folder: Path) -> None:
        self._workspace = workspace
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        self._file = folder / f"{name}.json"
        self._hooks: dict[str, tuple[int, Path | None]] = {}

    def changed(self) -> list[str]:
        """Return the files that run later and that commands in the sandbox changed. Blocks."""
        return self._load().changed

    def accept(self) -> None:
        """Forget the changes, since the user allowed a command that may run them. Blocks."""
        if self.changed():
            with self._record() as record:
                record.changed = []

    def note(self, before: Found, after: Found) -> list[str]:
        """Record and return a command's changes to files that run later. Blocks."""
        own = self._load().placeholders
        names = [name for name, mark in after.running.items() if before.running.get(name) != mark]
        names += [name for name in after.repositories if name not in before.repositories]
        names = [name for name in names if str(self._workspace / name) not in own]
        if names:
            with self._record() as record:
                record.changed = sorted({*record.changed, *names})
        return sorted(names)

    def hold(self) -> int:
        """Return a descriptor; until it is given to `release`, placeholders stay. Blocks."""
        make_private(self._file.parent)
        descriptor = os.open(self._file.with_suffix(".held"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def release(self, descriptor: int) -> None:
        """Remove the placeholders that no process needs, also those of a killed program. Blocks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self._record() as record:
                for name in reversed(record.placeholders):
                    _remove(Path(name))
                record.placeholders = []
        except BlockingIOError:
            pass  # A command of another chat runs here, and its end removes them.
        finally:
            os.close(descriptor)

    def paths(self, found: Found, command: str) -> list[Path]:
        """Return the parts, after placeholders were made for those that are missing. Blocks."""
        wanted: list[tuple[Path, str | None]] = [(self._workspace / name, None) for name in _NAMES]
        for name in found.repositories:
            wanted += self._of_repository(self._workspace / name)
        if _INSTALLS.search(command) is None:
            wanted += [(self._workspace / name, None) for name in found.programs]
        paths = []
        missing: dict[Path, str | None] = {}
        for path, text in wanted:
            real = path.resolve()
            if real == self._workspace or not real.is_relative_to(self._workspace):
                continue
            while not real.parent.exists():
                real, text = real.parent, None
            if not real.exists():
                missing[real] = text
            paths.append(real)
        if missing:
            with self._record() as record:
                record.placeholders += map(str, missing)
            for path, text in missing.items():
                _make(path, text)
        return [path for path in dict.fromkeys(paths) if path.exists()]

    def _of_repository(self, git: Path) -> Iterator[tuple[Path, str | None]]:
        if not git.is_dir():
            yield git, None  # It says where the repository is.
            return
        yield from ((git / name, None) for name in _GIT_FOLDERS)
        yield from ((git / name, text) for name, text in _GIT_FILES.items())
        try:
            modified = (git / "config").stat().st_mtime_ns
        except OSError:
            modified = 0
        known = self._hooks.get(str(git))
        if known is None or known[0] != modified:
            known = self._hooks[str(git)] = modified, hooks_folder(git.parent if git.name == ".git" else git)
        if known[1] is not None:
            yield known[1], None

    def _load(self) -> _Record:
        try:
            return msgspec.json.decode(read_regular(self._file, STATE_BYTES), type=_Record)
        except (OSError, msgspec.MsgspecError):
            return _Record()

    @contextmanager
    def _record(self) -> Iterator[_Record]:
        """Open the record for a change."""
        make_private(self._file.parent)
        with locked(self._file.with_suffix(".lock")):
            record = self._load()
            yield record
            atomic_write(self._file, msgspec.json.encode(record), sync=False)


def _make(path: Path, text: str | None) -> None:
    """Make an empty folder, or a file with a text; where that is impossible, a command cannot do it either."""
    with suppress(OSError):
        if text is None:
            path.mkdir()
        else:
            with path.open("x", encoding="ascii") as file:
                file.write(text)


def _remove(path: Path) -> None:
    """Remove a placeholder, unless somebody has made something of it."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif read_regular(path, _LONGEST, follow=False).decode() in _GIT_FILES.values():
            path.unlink()
