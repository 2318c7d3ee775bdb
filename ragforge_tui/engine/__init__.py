"""The engine: a `ConversationAgent` behind the protocol, in this process or in a child of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge_tui.config import Loaded
    from ragforge_tui.protocol import Engine

__all__ = ["connect_child", "connect_in_process"]


async def connect_in_process(
    loaded: Loaded, *, approve_all: bool = False, interactive: bool = False, settle_seconds: float | None = None
) -> Engine:
    """An engine in this process, for scripts, the command line and tests.

    Args:
        approve_all: Tools run without asking.
        interactive: Whether the caller answers approvals and trust questions; otherwise they are refused.
        settle_seconds: How long closing waits for the memory to be brought up to date.
    """
    from ragforge_tui.engine.in_process import InProcessEngine

    if settle_seconds is None:
        return InProcessEngine(loaded, approve_all=approve_all, interactive=interactive)
    return InProcessEngine(loaded, approve_all=approve_all, interactive=interactive, settle_seconds=settle_seconds)


async def connect_child(loaded: Loaded) -> Engine:
    """An engine in a process of its own, which finishes a turn when this process dies. Imports next to nothing."""
    from ragforge_tui.engine.client import ChildEngine

    return await ChildEngine.start(loaded)
