"""The first line that an engine's process reads: its settings and options."""

from __future__ import annotations

import msgspec

from ragforge_tui.settings.schema import Loaded


class EngineOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How an engine serves its caller.

    Attributes:
        interactive: Whether the caller answers approvals and trust questions; otherwise they are refused.
        approve_all: Run tools without asking.
        settle_seconds: Longest wait of an orderly end for the memory to catch up; None: as long as a user who quits
            is willing to wait.
    """

    interactive: bool = True
    approve_all: bool = False
    settle_seconds: float | None = None


INTERACTIVE = EngineOptions()
"""The options of a chat."""


class EngineStart(msgspec.Struct, kw_only=True, frozen=True):
    """Everything an engine has to know before its first request."""

    loaded: Loaded
    options: EngineOptions
