"""What the agent may call the person: fills ``{USER_NAME}`` in a persona's text."""

from __future__ import annotations

import getpass
import subprocess


def user_name(configured: str) -> str:
    """How the agent may call the person: the setting, else git's user.name, else the log-in name."""
    if configured:
        return configured
    try:
        git = subprocess.run(
            ["git", "config", "--get", "user.name"], capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return _log_in_name()
    return git.stdout.strip() or _log_in_name()


def _log_in_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "friend"
