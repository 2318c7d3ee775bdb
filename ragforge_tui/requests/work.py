"""The requests about what the agent may do and what it did to files: a part of `protocol`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ragforge_tui.requests.base import Request

Mode = Literal["plan", "ask", "edits"]
"""What the agent may do without asking: only read, ask before each write and command, or edit files by itself."""

MODES: tuple[Mode, ...] = ("plan", "ask", "edits")


class SetMode(Request[Mode]):
    """Let an open conversation go on in another mode, from the next tool call on."""

    conversation_id: str
    mode: Mode


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file.

    Attributes:
        diff: Unified, or a sentence where there is nothing to compare: binary, secret, content not kept.
        note: What is to be said about it, such as that somebody else changed it since.
    """

    path: str
    diff: str
    note: str = ""


class SessionDiff(Request[list[FileDiff]]):
    """What the agent changed in this conversation: each file's first known content against the one it has now."""

    conversation_id: str


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What taking a turn back would do.

    Attributes:
        turn_index: The turn: its files go back to what they were before it. 0: there is none to take back.
        redo: The turn is itself an undo.
        restored: Files that are put back, with the diff from now to then.
        refused: Files that are left alone, each with the reason in `note`.
    """

    turn_index: int
    redo: bool = False
    restored: list[FileDiff] = []
    refused: list[FileDiff] = []


class PlanUndo(Request[UndoPlan]):
    """What `UndoTurn` would do; nothing is changed.

    Attributes:
        turn_index: 0: the last turn that changed files and was not taken back.
        redo: Take back the last undo instead.
    """

    conversation_id: str
    turn_index: int = 0
    redo: bool = False


class UndoTurn(Request[int]):
    """Put the files back to what they were before a turn, as `PlanUndo` told; stored as a turn, whose index it gives.

    `message_id` is made by the caller, so that asking twice does it once.
    """

    conversation_id: str
    message_id: str
    turn_index: int


class RunShell(Request[int]):
    """Run the person's own command in the workspace; stored as a turn, whose index it gives, 0 when it was queued."""

    conversation_id: str
    message_id: str
    command: str


WorkRequest = SetMode | SessionDiff | PlanUndo | UndoTurn | RunShell
