"""A toolbox over a small workspace, and a short way to call a tool as the agent loop does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.tools.base import ToolOutcome
from ragforge_tui.tools.registry import Toolbox

Call = Callable[..., Awaitable[ToolOutcome]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture
async def box(folder: Path, tmp_path: Path) -> AsyncIterator[Toolbox]:
    toolbox = Toolbox(folder, ToolSettings(), undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    yield toolbox
    await toolbox.close()


@pytest.fixture
def call(box: Toolbox) -> Call:
    """Prepare and run a call, as if it had been approved."""

    async def run(name: str, **arguments: Any) -> ToolOutcome:
        return await (await box.prepare(name, json.dumps(arguments))).run()

    return run
