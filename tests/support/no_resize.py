"""A layout without a Resize event, as Textual makes one now and then."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen
from textual.widgets import Static


def take_new_places(screen: Screen[Any]) -> None:
    """Let Textual look up the new places before it lays them out, as a new widget that is drawn does."""
    screen._clear_arrangement_cache()
    screen._compositor.update_widgets({Static()})
    assert screen._compositor.full_map
