"""The engine on one backend: no dialect can change what crosses its pipe."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.conftest import EMBEDDED


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone."""
    return EMBEDDED
