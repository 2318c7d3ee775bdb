"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder as a user does, without the settings of the machine."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """Make a repository with one commit, whose author is known to its own settings."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    (folder / "start.txt").write_text("start\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Start")
    return folder
