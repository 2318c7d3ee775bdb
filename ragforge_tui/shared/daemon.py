"""Command line and environment of the background processes: the embedded graph and the engine host.

They outlive the chat that started them, so they inherit none of its keys.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ragforge_tui.shared.search_path import absolute_entries

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "VIRTUAL_ENV")


def daemon_command(*arguments: str) -> list[str]:
    """Return the command line that runs this interpreter with `arguments`."""
    # -P: do not import modules of the current folder that have the same names as ours.
    return [sys.executable, "-P", *arguments]


def daemon_environment(further: re.Pattern[str] | None = None) -> dict[str, str]:
    """Return the environment of a background process, with a PYTHONPATH on which it finds this package.

    Args:
        further: Names of variables to keep in addition to the usual ones.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or (further is not None and further.fullmatch(name))
    }
    package_root = str(Path(__file__).resolve().parents[2])
    return kept | {"PYTHONPATH": os.pathsep.join([package_root, *absolute_entries()])}
