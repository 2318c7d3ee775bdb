"""What the commands about the agent's work do: the mode it works in, what it changed, taking that back.

A part of `ChatActions`. Screens are imported when first wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import RagforgeError
from ragforge_tui.protocol import MODES

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

SAID = {
    "plan": "planning: nothing is written or run",
    "ask": "asks before each write and command",
    "edits": "edits files of the workspace unasked; commands and secrets still ask",
}


class WorkActions:
    """The commands about the agent's work in one chat screen."""

    _app: ChatApp

    async def mode(self, wanted: str) -> None:
        """Let the agent go on in another mode, the next one when none is named; from its next tool call on."""
        controller = self._app.controller
        state = controller.state
        name = {"accept": "edits", "accept edits": "edits"}.get(wanted.strip().lower(), wanted.strip().lower())
        following = MODES[(MODES.index(state.mode) + 1) % len(MODES)]
        mode = next((known for known in MODES if known == name), None) if name else following
        if mode is None:
            raise RagforgeError(f"There is no mode {wanted!r}.", todo=f"The modes are {', '.join(MODES)}.")
        state.mode = mode
        state.mode_unsent = True
        self._app.hint(SAID[mode])
        if state.connection == "up":
            await controller.send_mode()
