"""Name the agent may call the user, which fills ``{USER_NAME}`` in a persona's text."""

from __future__ import annotations

import getpass

from ragforge_tui.shared import git


def user_name(configured: str) -> str:
    """Return how the agent may call the user: the setting, else git's global user.name, else the log-in name."""
    return configured or git.global_user_name() or _log_in_name()


def _log_in_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "friend"
