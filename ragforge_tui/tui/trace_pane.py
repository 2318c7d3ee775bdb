"""The pane of tool calls."""

from __future__ import annotations

from typing import ClassVar

from ragforge_tui.tui.sidebar import Pane


class TracePane(Pane, can_focus=True):
    """Every call of a tool, a row each."""

    name_: ClassVar[str] = "trace"
    label: ClassVar[str] = "Trace"
