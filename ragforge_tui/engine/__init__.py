"""The engine: a `ConversationAgent` behind the protocol, in this process or in a child process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge_tui.engine.client import RequestedEngine
    from ragforge_tui.settings.schema import Loaded
    from ragforge_tui.shared.wire import Engine

__all__ = ["connect_child", "connect_in_process", "connect_warm", "request_child"]


async def connect_in_process(
    loaded: Loaded, *, approve_all: bool = False, interactive: bool = False, settle_seconds: float | None = None
) -> Engine:
    """Return an engine in this process, for scripts, the command line and tests.

    Args:
        approve_all: Run tools without asking.
        interactive: Whether the caller answers approvals and trust questions; otherwise they are refused.
        settle_seconds: Longest wait for the memory to catch up when the engine is closed.
    """
    from ragforge_tui.engine.in_process import InProcessEngine

    return InProcessEngine(loaded, approve_all=approve_all, interactive=interactive, settle_seconds=settle_seconds)


def request_child(loaded: Loaded) -> RequestedEngine | None:
    """Ask a running engine host for the engine that `connect_child` will return; None if no host runs.

    The engine starts in parallel with whatever this process does until then.
    """
    from ragforge_tui.engine.client import request_engine

    return request_engine(loaded)


async def connect_child(loaded: Loaded, requested: RequestedEngine | None = None, *, from_host: bool = True) -> Engine:
    """Return an engine in another process, which finishes a running turn if this process dies. Imports very little.

    Args:
        requested: What `request_child` returned.
        from_host: Whether the user's engine host may fork it; not after a crash (see `ChildEngine.start`).
    """
    from ragforge_tui.engine.client import ChildEngine

    return await ChildEngine.start(loaded, requested=requested, from_host=from_host)


async def connect_warm(
    loaded: Loaded, *, approve_all: bool = False, settle_seconds: float | None = None, start_host: bool = False
) -> Engine | None:
    """Return an engine forked by the user's engine host, or None if no host can provide one.

    Args:
        approve_all: Run tools without asking.
        settle_seconds: Longest wait for the memory to catch up when the engine is closed.
        start_host: Start a host if none is running, for a command that needs a model.
    """
    from ragforge_tui.engine.client import ChildEngine
    from ragforge_tui.engine.start import EngineOptions

    options = EngineOptions(interactive=False, approve_all=approve_all, settle_seconds=settle_seconds)
    return await ChildEngine.start_warm(loaded, options, start_host=start_host)
