"""Folders in which commands of the agent look for programs: those of the workspace's own environment come first.

As in a shell where the environment is activated, so `pytest` is the one that has the project's dependencies. A folder
that holds a program of the system's name is left out: nobody's environment has an `ls` or a `git` of its own, and a
rule or a judgement about such a program means the system's.
"""

from __future__ import annotations

import os
from pathlib import Path

from ragforge_tui.shared.git import absolute_entries

_ENVIRONMENTS = (".venv", "venv")
_MARK = "pyvenv.cfg"
_NODE = "node_modules/.bin"
_SYSTEM = """
    bash sh dash zsh fish env sudo doas su ssh scp rsync curl wget git hg svn make cmake gcc cc ld docker podman
    basename cat chmod chown cmp comm cp cut date dd df diff dirname du echo egrep expand expr false fd fdfind fgrep
    file find fold grep gzip head hexdump hostname id kill less ln ls md5sum mkdir mktemp more mv nice nl nohup od paste
    ps pwd readlink realpath rev rg rm sed seq sha1sum sha256sum sha512sum sleep sort stat tac tail tar tee test time
    rmdir timeout touch tr tree true type uname uniq wc which whoami xargs xxd awk
"""
"""Programs of the system that no environment replaces."""


def environment_of(root: Path) -> Path | None:
    """Return the virtual environment of a workspace; None if it has none. Blocks."""
    for name in _ENVIRONMENTS:
        if (root / name / _MARK).is_file() and _is_inside(root / name, root):
            return root / name
    return None


def program_folders(root: Path) -> list[Path]:
    """Return the folders of a workspace whose programs come first. Blocks."""
    environment = environment_of(root)
    folders = [*([environment / "bin"] if environment is not None else []), root / _NODE]
    return [folder for folder in folders if folder.is_dir() and _is_inside(folder, root) and not _shadows(folder)]


def search_path(root: Path, path: str) -> str:
    """Return a PATH with the folders of a workspace first, and without entries relative to a folder. Blocks."""
    return os.pathsep.join([*map(str, program_folders(root)), *filter(None, [absolute_entries(path)])])


def system_path(root: Path, path: str) -> str:
    """Return a PATH without folders of a workspace and entries relative to a folder. Blocks."""
    return os.pathsep.join(
        entry for entry in absolute_entries(path).split(os.pathsep) if not _is_inside(Path(entry), root)
    )


def _is_inside(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _shadows(folder: Path) -> bool:
    """Return whether a folder holds a program that is the system's, or cannot be looked at."""
    try:
        names = frozenset(_SYSTEM.split())
        return any(entry.name in names for entry in os.scandir(folder))
    except OSError:
        return True
