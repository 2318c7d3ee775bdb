"""Requests about the agent's work: permissions, model, tool calls, and changes to files."""

from __future__ import annotations

from typing import Literal

import msgspec

from ragforge_tui.shared.events import ApprovalDecision, ModelChanged
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.records import Commit, ToolCall
from ragforge_tui.shared.wire import Empty, Request

Mode = Literal["plan", "ask", "edits", "auto"]
"""Permissions of the agent: read only, ask before each write and command, edit files without asking, or run commands
without asking too, in a sandbox."""


MODES: tuple[Mode, ...] = ("plan", "ask", "edits", "auto")


class SetMode(Request[Mode]):
    """Change the mode of an open conversation, from the next tool call on."""

    conversation_id: str
    mode: Mode


class AnswerApproval(Request[Empty]):
    approval_id: str
    decision: ApprovalDecision
    feedback: str = ""


class AnswerTrust(Request[Empty]):
    """Allow or reject the use of instructions found in the workspace."""

    root: str
    allow: bool


class SetModel(Request[ModelChanged]):
    """Use another model from the next turn on; an empty name selects the discovered one.

    It is checked first: an unknown model and a missing or refused key fail with the kinds ``unknown_model``,
    ``not_configured`` and ``bad_key``, a server that does not answer with ``unreachable``.

    Attributes:
        provider: The connection it is chosen from, with its `url`; empty if the name says it all.
        unchecked: Use it although its server does not answer.
    """

    name: str
    provider: str = ""
    url: str = ""
    unchecked: bool = False


class ChangeModelSettings(Request[Empty]):
    """Apply settings of the model, by name, from its next request on; see `LIVE_MODEL_SETTINGS`."""

    changes: dict[str, int | float | str | None]


class EffortState(msgspec.Struct, frozen=True, kw_only=True):
    """How much the current model thinks.

    Attributes:
        effort: As it is set; empty: left to the provider.
        taken: Whether the model takes it at all.
    """

    model: str
    effort: str
    taken: bool


class FetchEffort(Request[EffortState]):
    """Return how much the current model thinks; `ChangeModelSettings` changes ``reasoning_effort``."""


class ListModels(Request[list[str]]):
    """List the names of the models that are configured, connected or discovered."""


class ListFiles(Request[list[str]]):
    """List files of the workspace whose path matches fuzzily, best first; .gitignore is respected.

    With `folders`, folders are listed too, with a trailing slash; the query ``src/`` then returns that folder and its
    contents.
    """

    query: str
    limit: int = 50
    folders: bool = False


class RunShell(Request[int]):
    """Run a command of the user in the workspace as a turn, and return the turn's index, 0 if it was queued."""

    conversation_id: str
    message_id: str
    command: str


class ListProcesses(Request[list[ProcessEntry]]):
    """Return the agent's background processes: those that run, and the last ones that ended."""


class StopProcess(Request[ProcessEntry]):
    """End a background process on behalf of the user."""

    number: int


class BlamedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Turn that wrote a line or made a commit.

    Attributes:
        question: The user's message.
        decision: What was decided in the turn, by its summary; None without a summary or a decision.
    """

    conversation_id: str
    title: str = ""
    turn_index: int
    question: str = ""
    decision: str | None = None


class BlamedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive lines of a file with the same origin.

    Attributes:
        first: Number of the first line, from 1; `last` is included.
        turn: The turn that wrote them; None if none is known to have done so.
        commit: The commit that brought them in, apart from their white space; None while they are not committed.
        committed_by: The turn that made the commit; None if none did.
    """

    first: int
    last: int
    turn: BlamedTurn | None = None
    commit: Commit | None = None
    committed_by: BlamedTurn | None = None


class BlameResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `Blame`.

    Attributes:
        path: The file, relative to the workspace.
        text: The line, if one was asked for.
    """

    path: str
    text: str = ""
    lines: list[BlamedLines] = []


class Blame(Request[BlameResult]):
    """Return the turns that wrote the lines of a file, and the commits of these lines.

    Attributes:
        path: Relative to the workspace or absolute.
        line: From 1; 0 for the whole file.
    """

    path: str
    line: int = 0


class CallEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a list.

    Attributes:
        position: Position within the turn of the message that made the call.
        call: The call with truncated arguments. Of its result there is only the end of a failed command's output;
            `FetchCall` returns all of it.
    """

    turn_index: int
    position: int
    call: ToolCall


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of whole turns, in order.

    Attributes:
        first_turn: First turn that was searched; 1 means that there are no earlier calls.
    """

    calls: list[CallEntry]
    first_turn: int


class ListCalls(Request[CallPage]):
    """Tool calls of a stored conversation before a turn, searched from the newest turn back.

    Attributes:
        before: Only turns below this index; 0 for all turns.
        limit: Number of calls after which the page ends, with a whole turn. It also ends after many turns.
    """

    conversation_id: str
    before: int = 0
    limit: int = 200


class FetchCall(Request[ToolCall]):
    """One call with its full arguments and result. Fails with kind ``not_found`` if the turn has no such call."""

    conversation_id: str
    turn_index: int
    call_id: str


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Change of one file.

    Attributes:
        diff: Unified diff, or a sentence if the file is binary or secret or its content is not stored.
        note: Remark, for example that the file was changed outside the conversation since.
        added: Lines that the conversation added, also where the file was changed by others since.
        removed: Lines that it removed.
    """

    path: str
    diff: str
    note: str = ""
    added: int = 0
    removed: int = 0


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
