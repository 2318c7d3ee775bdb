"""How small and short the tests make things, and where they keep them.

`RAGFORGE_TEST_CONTENTS=hybrid` makes them keep texts in files.

Used by fixtures and by what runs without pytest (`benchmarks`); cut off from `conftest.py` for the latter.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, cast

from ragforge_tui.settings.schema import Paths

DIMENSION = 16
LINGER = 1.0
HEAP_MB = 384
CONTENTS: Literal["graph", "hybrid"] = cast(
    Literal["graph", "hybrid"], os.environ.get("RAGFORGE_TEST_CONTENTS", "graph")
)


def paths_under(home: Path) -> Paths:
    """The program's folders under one."""
    return Paths(config=str(home / "config"), data=str(home / "data"), state=str(home / "state"))
