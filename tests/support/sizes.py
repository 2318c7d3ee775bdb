"""How small and short the tests make things, and where they keep them.

Used by fixtures and by what runs without pytest (`benchmarks`); cut off from `conftest.py` for the latter.
"""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.settings.schema import Paths

DIMENSION = 16
LINGER = 1.0
HEAP_MB = 384


def paths_under(home: Path) -> Paths:
    """The program's folders under one."""
    return Paths(config=str(home / "config"), data=str(home / "data"), state=str(home / "state"))
