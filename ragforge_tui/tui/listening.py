"""Screens over the chat that go with what the engine says, while they are open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from ragforge_tui.events import Event, ReasoningDelta, TextDelta


@runtime_checkable
class Listener(Protocol):
    """A screen that is told of events."""

    def hear(self, event: Event) -> None:
        """Take in an event of any conversation; must be cheap."""


def tell(screens: Iterable[object], event: Event) -> None:
    """Tell the screens that listen; deltas concern none of them."""
    if not isinstance(event, TextDelta | ReasoningDelta):
        for screen in screens:
            if isinstance(screen, Listener):
                screen.hear(event)
