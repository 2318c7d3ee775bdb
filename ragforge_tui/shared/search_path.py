"""The folders that modules are imported from, without those that depend on the current folder.

`PYTHONPATH=:/x`, a common slip, names the current folder, whose files can have the names of modules of the program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def absolute_entries() -> list[str]:
    """Return the entries of PYTHONPATH that are absolute."""
    return [part for part in _entries() if Path(part).is_absolute()]


def drop_relative_entries() -> None:
    """Import nothing from the other entries, which `site` has made absolute; commands of the agent keep them."""
    try:
        relative = {str(Path.cwd() / part) for part in _entries() if not Path(part).is_absolute()}
    except OSError:
        return  # The current folder is gone, and with it what could be imported from it.
    dropped = relative.difference(absolute_entries())
    # The first entry is the script's folder, or the current one because of -m.
    sys.path[1:] = [entry for entry in sys.path[1:] if entry not in dropped]


def _entries() -> list[str]:
    value = os.environ.get("PYTHONPATH", "")
    return value.split(os.pathsep) if value else []
