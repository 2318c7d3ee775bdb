"""The requests about what the agent may do and what it did to files: a part of `protocol`."""

from __future__ import annotations

from typing import Literal

from ragforge_tui.requests import Request

Mode = Literal["plan", "ask", "edits"]
"""What the agent may do without asking: only read, ask before each write and command, or edit files by itself."""

MODES: tuple[Mode, ...] = ("plan", "ask", "edits")


class SetMode(Request[Mode]):
    """Let an open conversation go on in another mode, from the next tool call on."""

    conversation_id: str
    mode: Mode


WorkRequest = SetMode
