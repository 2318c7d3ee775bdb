"""Settings and options of an engine, which its process reads as the first line of its standard input."""

from __future__ import annotations

import msgspec

from ragforge_tui.settings.schema import Loaded


class EngineOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Options of an engine that depend on its caller.

    Attributes:
        interactive: Whether the caller answers approvals and trust questions; otherwise they are refused.
        approve_all: Run tools without asking.
        settle_seconds: Longest wait for the memory to catch up when the caller closes the engine; None for the short
            wait of a user who quits.
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
