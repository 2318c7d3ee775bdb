"""What the commands about the agent's work do: the mode it works in, what it changed, taking that back.

A part of `ChatActions`. Screens are imported when first wanted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.protocol import MODES, FileDiff, PlanUndo, SessionDiff, UndoPlan, UndoTurn

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

STAY_SECONDS = 0.8
SAID = {
    "plan": "planning: nothing is written or run",
    "ask": "asks before each write and command",
    "edits": "edits unasked; commands and secrets ask",
}


class WorkActions:
    """The commands about the agent's work in one chat screen."""

    _app: ChatApp

    async def mode(self, wanted: str) -> None:
        """Let the agent go on in another mode, the next one when none is named; from its next tool call on.

        The engine lets a write that waits through in the mode of accepted edits. On the way from mode to mode by key
        that one is passed, so while a question waits it counts only when one stays at it.
        """
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
        if not name and mode == "edits" and state.questions:
            await asyncio.sleep(STAY_SECONDS)
        if state.connection == "up":
            await controller.send_mode()

    async def diff(self) -> None:
        """Show what the agent changed in this conversation."""
        from ragforge_tui.tui.diff_screen import DiffScreen

        uuid = self._opened_id()

        async def load() -> list[FileDiff]:
            return await self._app.controller.ask(SessionDiff(conversation_id=uuid))

        self._app.push_screen(DiffScreen(load))

    async def undo(self, turn: str) -> None:
        """Ask whether files go back to what they were before a turn, the last one that changed files by default."""
        wanted = turn.strip().removeprefix("t")
        if wanted and not wanted.isdecimal():
            raise RagforgeError(f"{turn!r} is not the number of a turn.", todo="/undo 12 takes turn 12 back.")
        await self._offer_undo(PlanUndo(conversation_id=self._opened_id(), turn_index=int(wanted or 0)))

    async def redo(self) -> None:
        """Ask whether the last undo is taken back."""
        await self._offer_undo(PlanUndo(conversation_id=self._opened_id(), redo=True))

    async def _offer_undo(self, request: PlanUndo) -> None:
        from ragforge_tui.tui.choices import Choice
        from ragforge_tui.tui.panel import Question

        controller = self._app.controller
        plan = await controller.ask(request)
        left = [f"{one.path} is left alone: {one.note}." for one in plan.refused]
        if not plan.restored:
            raise RagforgeError(
                " ".join(left) or "The files are already as they were before it.", todo="/diff shows what was changed."
            )

        def answer(decision: str, _: str) -> None:
            if decision == "yes":
                undo = UndoTurn(
                    conversation_id=request.conversation_id, message_id=uuid4().hex, turn_index=plan.turn_index
                )
                controller.spawn(self._undo(undo), group="undo")

        detail = "\n".join([*left, "".join(one.diff for one in plan.restored)])
        answers = [Choice("yes", "put them back", mark="y"), Choice("no", "no", mark="n")]
        self._app.ask(Question(f"undo:{plan.turn_index}", "diff", _question(plan), detail, answers, answer))

    async def _undo(self, request: UndoTurn) -> None:
        await self._app.controller.ask(request)

    def _opened_id(self) -> str:
        uuid = self._app.controller.state.conversation_id
        if not uuid:
            raise NotFoundError("Nothing was said here yet.", todo="Write a message, or /resume a conversation.")
        return uuid


def _question(plan: UndoPlan) -> str:
    files = f"{len(plan.restored)} file{'s' if len(plan.restored) > 1 else ''}"
    what = f"Take back the undo of turn {plan.turn_index}" if plan.redo else f"Take back turn {plan.turn_index}"
    alone = f"; {len(plan.refused)} left alone" if plan.refused else ""
    back = "/undo takes" if plan.redo else "/redo brings"
    return f"{what}? {files} as before it{alone}. {back} this back."
