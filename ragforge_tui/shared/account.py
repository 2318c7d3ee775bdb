"""The user's home folder and log-in name, also where the system knows neither.

Containers run programs under numbers that the system's list of users lacks, and services run without HOME. Then
`Path.home` and `getpass.getuser` raise; these functions never do.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path


def home_folder() -> Path:
    """Return the user's home folder, which may not exist; the root folder if nothing names one."""
    named = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home raises without one
    # Otherwise a relative HOME would make a folder of the current one the home.
    return named if named.is_absolute() else Path("/")


def log_in_name(unknown: str = "") -> str:
    """Return the user's log-in name; for a user without one `unknown`, or else the user's number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return unknown or str(os.getuid())
