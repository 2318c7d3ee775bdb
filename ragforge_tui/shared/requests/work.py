"""Requests about the agent's permissions and its changes to files; other modules import them from `wire`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ragforge_tui.shared.requests.base import Request

Mode = Literal["plan", "ask", "edits"]
"""Permissions of the agent: read only, ask before each write and command, or edit files without asking."""

MODES: tuple[Mode, ...] = ("plan", "ask", "edits")


class SetMode(Request[Mode]):
    """Change the mode of an open conversation, from the next tool call on."""

    conversation_id: str
    mode: Mode


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Change of one file.

    Attributes:
        diff: Unified diff, or a sentence if the file is binary or secret or its content is not stored.
        note: Remark, for example that someone else has changed the file since.
    """

    path: str
    diff: str
    note: str = ""


class SessionDiff(Request[list[FileDiff]]):
    """Changes by the agent in this conversation: each file's first known content compared with the current one."""

    conversation_id: str


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Effects of undoing a turn.

    Attributes:
        turn_index: The turn to undo: its files are restored to their state before it. 0 if there is none.
        redo: Whether the turn is itself an undo.
        restored: Files to restore, with the diff from the current to the restored content.
        refused: Files left unchanged, each with the reason in `note`.
    """

    turn_index: int
    redo: bool = False
    restored: list[FileDiff] = []
    refused: list[FileDiff] = []


class PlanUndo(Request[UndoPlan]):
    """Preview of `UndoTurn`; it changes nothing.

    Attributes:
        turn_index: The turn to undo; 0 for the last one that changed files and was not undone.
        redo: Undo the last undo instead.
    """

    conversation_id: str
    turn_index: int = 0
    redo: bool = False


class UndoTurn(Request[int]):
    """Restore the files to their state before a turn, as previewed by `PlanUndo`, and return the new turn's index.

    The caller chooses `message_id`, which makes the request idempotent.
    """

    conversation_id: str
    message_id: str
    turn_index: int


class RunShell(Request[int]):
    """Run a command of the user in the workspace as a turn, and return the turn's index, 0 if it was queued."""

    conversation_id: str
    message_id: str
    command: str


WorkRequest = SetMode | SessionDiff | PlanUndo | UndoTurn | RunShell
