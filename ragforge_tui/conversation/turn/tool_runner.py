"""Execution of the tool calls of a reply: reads run in parallel, writes and commands one at a time and in order.

Each call is stored when it starts and when it ends; approval is awaited between the two. Used by the turn loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from ragforge_tui.conversation.approvals.pending import NOT_ASKED, Approvals
from ragforge_tui.conversation.hooks import Hooks
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.turn.commits import noted_commits
from ragforge_tui.conversation.turn.reply import given_reason
from ragforge_tui.llm import ToolRequest
from ragforge_tui.memory.history import ChatMessage, valid_arguments
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.events import (
    Event,
    FilesAccessed,
    Notice,
    TodosUpdated,
    ToolCallFinished,
    ToolCallOutput,
    ToolCallStarted,
)
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, STOPPED, Message, Todo, ToolCall, ToolResult, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.sanitize import storable, storable_value
from ragforge_tui.shared.tool_calls import CHANGING, ToolAccess, tool_info
from ragforge_tui.tools.after_edit import AfterEdit
from ragforge_tui.tools.asking import ask_user
from ragforge_tui.tools.base import (
    ApprovalNeed,
    CallStopped,
    SandboxRefusal,
    ToolOutcome,
    calling_conversation,
    output_room,
    report_output,
    running_call,
    sandboxed,
)
from ragforge_tui.tools.memory import OpenTurn
from ragforge_tui.tools.registry import DENIED, PLANNING, PreparedCall
from ragforge_tui.tools.shell.run_command import STOPPED_TEXT
from ragforge_tui.tools.workspace import foreseen

log = logging.getLogger(__name__)

IDENTICAL_CALLS = 2
"""Number of times the same call may return the same result before it is refused (design section 4)."""
SHORTEST_KNOWN = 400
"""Characters of a file's lines from which a place where the model has them takes less room."""
_OPENING = OpenTurn.info.name
CALLS_AT_ONCE = 16
"""Reading calls that run at the same time; each stores its beginning and end over a connection to the graph."""

_ID_SPACE = uuid.UUID("6f2c4a0e-8d5b-4f43-9b0a-3a9d1c7e5f10")


class UsableTools(Protocol):
    """The tools of a conversation, or those of the user."""

    def access(self, name: str) -> ToolAccess: ...

    async def prepare(self, name: str, arguments: str) -> PreparedCall: ...

    def check(self, name: str) -> None: ...


class ToolRunner:
    """Runner of the tool calls of one turn.

    Args:
        shown_in: Returns where the model's last request holds exactly this result of a call; empty if it does not.
        after_edit: Commands that run after the last edit of a reply; None for none.
        remind: Returns what memory says about a call that needs an approval; empty for most.
        room: Returns the characters that one result may take in the model's window; 0 for no such limit.
    """

    def __init__(
        self,
        *,
        toolbox: UsableTools,
        recorder: Recorder,
        approvals: Approvals,
        workspace: Path,
        emit: Callable[[Event], None],
        mode: Callable[[], Mode],
        shown_in: Callable[[str], str] = lambda result: "",
        after_edit: AfterEdit | None = None,
        hooks: Hooks | None = None,
        remind: Callable[[ApprovalNeed | None], Awaitable[str]] | None = None,
        room: Callable[[], int] = lambda: 0,
    ) -> None:
        self._toolbox = toolbox
        self._hooks = hooks
        self._remind = remind
        self._remembered: dict[str, str] = {}
        """What memory says about calls, by their ids."""
        self._after_edit = after_edit
        self._edited: list[str] = []
        self._last_edit = ""
        self._mode = mode
        self._shown_in = shown_in
        self._room = room
        self._numbers: dict[str, int] = {}
        self._recorder = recorder
        self._approvals = approvals
        self._workspace = workspace
        self._emit = emit
        self._outcomes: dict[str, list[str]] = {}
        self._rest: list[ToolCall] = []
        """Calls of the reply that have not started."""
        self._answers: dict[str, tuple[ApprovalNeed, bool, str]] = {}
        """What was shown of calls that have not started, whether it may run, and the user's comment."""
        self._objection = ""
        """Comment with which the user refused a call of this reply: the rest is refused with it."""
        self._raw_arguments: dict[str, str] = {}
        """Unmasked arguments by call; those in the record are masked, and a tool must not use them."""

    async def run(self, reply: Message, requests: list[ToolRequest], iteration: int) -> list[ChatMessage]:
        """Run all calls of a reply; return the reply as a chat message, followed by the results."""
        calls = [_record(reply, request, iteration, ordinal) for ordinal, request in enumerate(requests)]
        self._numbers |= {call.uuid: number for number, call in enumerate(calls, len(self._numbers) + 1)}
        self._raw_arguments = {call.uuid: request.arguments for call, request in zip(calls, requests, strict=True)}
        self._answers, self._objection = {}, ""
        self._edited = []
        writing = [call.uuid for call in calls if self._toolbox.access(call.tool_name) == "write"]
        self._last_edit = writing[-1] if writing else ""
        answers: list[str] = []
        position = 0
        while position < len(calls):
            group = self._reads_from(calls, position) or [calls[position]]
            position += len(group)
            self._rest = calls[position:]
            answers += await self._run_group(reply, group)
        sent = {
            "role": "assistant",
            "content": reply.content,
            "tool_calls": [
                {
                    "id": call.uuid,
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": valid_arguments(call.arguments)},
                }
                for call in calls
            ],
        }
        results = [
            {"role": "tool", "tool_call_id": call.uuid, "content": text}
            for call, text in zip(calls, answers, strict=True)
        ]
        return [sent, *results]

    def _reads_from(self, calls: list[ToolCall], start: int) -> list[ToolCall]:
        end = start
        while end < min(len(calls), start + CALLS_AT_ONCE) and self._toolbox.access(calls[end].tool_name) == "read":
            end += 1
        return calls[start:end]

    async def _run_group(self, reply: Message, group: list[ToolCall]) -> list[str]:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._call(reply, call)) for call in group]
        return [task.result() for task in running]

    async def _call(self, reply: Message, call: ToolCall) -> str:
        call.timestamp = now()
        await self._recorder.start_tool_call(call, reply)
        self._emit(_started(reply, call))
        started = time.monotonic()
        try:
            outcome, started = await self._outcome(reply, call, started)
        except CallStopped as stopped:
            await self._finish(reply, call, stopped.outcome, started)
            raise
        except asyncio.CancelledError:
            await self._finish(reply, call, ToolOutcome(text=STOPPED_TEXT, success=False, error=STOPPED), started)
            raise
        try:
            await self._check_edits(reply, call, outcome)
        except asyncio.CancelledError:
            await self._finish(reply, call, outcome, started)
            raise asyncio.CancelledError from None
        # The model receives the stored, masked text: a key in a file must not leave the machine.
        outcome.text = mask_secrets(outcome.text)
        self._shorten_known(call, outcome)
        if "whole" in outcome.data and self._toolbox.access(_OPENING) == "read":
            where = f"turn={reply.turn_index}, call={self._numbers[call.uuid]}"
            outcome.text += f"\n[{_OPENING}({where}) returns all of it in pages, with find the lines that hold a text]"
        if line := self._remembered.get(call.uuid):
            outcome.text += f"\n[Memory: {line.rstrip('.')}.]"
            outcome.data = {**outcome.data, "remembered": line}
        await self._finish(reply, call, outcome, started)
        return outcome.text

    async def _check_edits(self, reply: Message, call: ToolCall, outcome: ToolOutcome) -> None:
        """Run the commands for what the reply has edited, after its last edit; their failure is no failure of it."""
        if self._after_edit is None or self._toolbox.access(call.tool_name) != "write":
            return
        if outcome.success:
            self._edited += [file.path for file in outcome.files if file.access == "write"]
        if call.uuid == self._last_edit and self._edited:
            checks = await self._after_edit.run(outcome, self._edited)
            if checks:
                told = " · ".join(f"{check.command}: {check.error.rstrip('.') or 'ok'}" for check in checks)
                level: Literal["info", "warning"] = "warning" if any(check.error for check in checks) else "info"
                text = mask_secrets(storable(f"After the edit: {told}"))
                self._emit(Notice(text=text, level=level, conversation_id=reply.conversation_id))

    async def _outcome(self, reply: Message, call: ToolCall, started: float) -> tuple[ToolOutcome, float]:
        key = _identity(call)
        if self._is_idle_repetition(key):
            text = (
                f"Refused: {call.tool_name} returned the same result {IDENTICAL_CALLS} times for these arguments, and "
                "nothing was written or run in between. Use the result you have, or try something else."
            )
            return ToolOutcome(text=text, success=False, error=f"{REFUSED_BECAUSE}idle repetition"), started
        try:
            prepared = await self._toolbox.prepare(call.tool_name, self._raw_arguments[call.uuid])
            if self._hooks is not None:
                await self._hooks.before_call(prepared, call.tool_name, reply.conversation_id, self._mode())
            if (refused := await self._refusal(reply, call, prepared)) is not None:
                return refused, started
            started = time.monotonic()  # time spent waiting for the user does not count
            running_call.set(call.uuid)
            report_output.set(self._reporter(reply, call))
            ask_user.set(
                lambda asked, choices, draft: self._approvals.ask_user(
                    asked, choices, call, reply, self._emit, draft=draft
                )
            )
            calling_conversation.set(reply.conversation_id)
            output_room.set(self._room())
            async with noted_commits(self._workspace, prepared.access) as commits:
                outcome = await self._run_in_place(reply, call, prepared)
            if self._hooks is not None:
                await self._hooks.after_call(prepared, call.tool_name, outcome, reply.conversation_id)
            if commits:
                outcome.data = {**outcome.data, "commits": commits}
        except ToolError as error:
            refusals = {PLANNING: "not while planning", DENIED: "a rule of yours forbids it"}
            reason = refusals.get(error.info.kind)
            short = f"{REFUSED_BECAUSE}{reason}" if reason else str(error)
            return ToolOutcome(text=f"Error: {error}", success=False, error=short), started
        except Exception as error:
            log.exception("tool %s failed", call.tool_name)
            text = f"Error: {call.tool_name} failed unexpectedly ({type(error).__name__}: {error})."
            return ToolOutcome(text=text, success=False, error=text), started
        self._record_outcome(key, prepared, outcome)
        return outcome, started

    async def _refusal(self, reply: Message, call: ToolCall, prepared: PreparedCall) -> ToolOutcome | None:
        """Return the outcome of a call that must not run; None for one that needs no approval or has it."""
        if prepared.approval is None:
            return None
        await self._recall(call, prepared.approval)
        allowed, feedback = await self._permission(reply, call, prepared, prepared.approval)
        if not allowed:
            return _refused(feedback)
        self._toolbox.check(call.tool_name)  # the mode may have changed while the user decided
        return None

    async def _run_in_place(self, reply: Message, call: ToolCall, prepared: PreparedCall) -> ToolOutcome:
        """Run a call, a command in its sandbox; ask about an access that the sandbox refused."""
        sandboxed.set(walls := await self._approvals.walls(prepared, call, self._mode()))
        try:
            return await prepared.run()
        except SandboxRefusal as refusal:
            need = prepared.reading or prepared.approval
            assert need is not None
            self._toolbox.check(call.tool_name)
            asked = {"why": refusal.why} if walls == "reading" else {"beyond": refusal.why}
            prepared.reading, prepared.approval = None, msgspec.structs.replace(need, **asked)
            if (refused := await self._refusal(reply, call, prepared)) is not None:
                return refused
            return await self._run_in_place(reply, call, prepared)

    async def _recall(self, call: ToolCall, need: ApprovalNeed) -> None:
        """Look up what memory says about a call, once."""
        if self._remind is not None and call.uuid not in self._remembered:
            self._remembered[call.uuid] = mask_secrets(storable(await self._remind(need)))

    async def _permission(
        self, reply: Message, call: ToolCall, prepared: PreparedCall, need: ApprovalNeed
    ) -> tuple[bool, str]:
        """Return whether a call may run, and the user's comment if not; asks about the rest of the reply as well."""
        shown, allowed, comment = self._answers.pop(call.uuid, (None, False, ""))
        if shown == need or (shown is not None and not allowed):
            return allowed, comment
        if self._objection:
            return False, self._objection
        asked = [(need, call)]
        by_user = self._approvals.answered_by_user
        if by_user and prepared.access in CHANGING and await self._approvals.is_asked(need, self._mode()):
            asked += await self._needs_ahead(prepared)
        answers = await self._approvals.ask(
            asked,
            reply.conversation_id,
            reply.turn_index,
            self._emit,
            mode=self._mode(),
            remembered=self._remembered,
        )
        for (each, later), (allowed, comment) in zip(asked, answers, strict=True):
            self._answers[later.uuid] = each, allowed, comment
            if by_user and not allowed and comment not in NOT_ASKED:
                self._objection = self._objection or comment
        _, allowed, comment = self._answers.pop(call.uuid)
        return allowed, comment

    async def _needs_ahead(self, first: PreparedCall) -> list[tuple[ApprovalNeed, ToolCall]]:
        """Return what the user must be asked about later calls of the reply, as far as that is known before they run.

        Each is prepared as if those before it had run, and again when its turn comes; if it is then another one than
        was shown, it is asked about by itself. So is one that cannot be prepared yet.
        """
        contents = dict(first.contents)
        found = []
        reset = foreseen.set(contents)
        try:
            for call in self._rest:
                if self._toolbox.access(call.tool_name) not in CHANGING or self._is_idle_repetition(_identity(call)):
                    continue
                try:
                    prepared = await self._toolbox.prepare(call.tool_name, self._raw_arguments[call.uuid])
                except Exception:
                    continue
                contents.update(prepared.contents)
                if prepared.approval is not None and await self._approvals.is_asked(prepared.approval, self._mode()):
                    await self._recall(call, prepared.approval)
                    found.append((prepared.approval, call))
        finally:
            foreseen.reset(reset)
        return found

    def _shorten_known(self, call: ToolCall, outcome: ToolOutcome) -> None:
        """Replace the lines of a file that the model still sees, by the place where it sees them."""
        if len(outcome.text) < SHORTEST_KNOWN or tool_info(call.tool_name).result != "numbered":
            return
        if where := self._shown_in(outcome.text):
            outcome.text = f"Unchanged since {where}: what you see there, above, is what it still contains."
            outcome.full_size = 0

    def _reporter(self, reply: Message, call: ToolCall) -> Callable[[list[str]], None]:
        """Return a function that shows output of a call, without secrets."""

        def report(lines: list[str]) -> None:
            text = storable(mask_secrets("\n".join(lines)))
            where: dict[str, Any] = {"conversation_id": reply.conversation_id, "turn_index": reply.turn_index}
            self._emit(ToolCallOutput(call_id=call.uuid, lines=text.split("\n"), **where))

        return report

    def _is_idle_repetition(self, key: str) -> bool:
        seen = self._outcomes.get(key, [])
        return len(seen) >= IDENTICAL_CALLS and len(set(seen[-IDENTICAL_CALLS:])) == 1

    def _record_outcome(self, key: str, prepared: PreparedCall, outcome: ToolOutcome) -> None:
        if prepared.access in ("write", "command"):
            self._outcomes.clear()
        self._outcomes.setdefault(key, []).append(hashlib.sha256(outcome.text.encode("utf-8", "replace")).hexdigest())

    async def _finish(self, reply: Message, call: ToolCall, outcome: ToolOutcome, started: float) -> None:
        data = {"text": outcome.text, **outcome.data}
        body = mask_secrets(msgspec.json.encode(storable_value(data)).decode())
        call.duration_ms = round((time.monotonic() - started) * 1000)
        call.success = outcome.success
        call.files = outcome.files
        call.changes = outcome.changes
        call.result = ToolResult(
            uuid=uuid.uuid5(_ID_SPACE, f"{call.uuid}/result").hex,
            tool_call_id=call.uuid,
            success=outcome.success,
            result=body,
            error=mask_secrets(storable(outcome.error)) if outcome.error else None,
            timestamp=now(),
            result_size_bytes=outcome.full_size or len(body.encode()),
        )
        await self._recorder.finish_tool_call(call, str(self._workspace))
        call.changes = []
        where: dict[str, Any] = {"conversation_id": reply.conversation_id, "turn_index": reply.turn_index}
        self._emit(ToolCallFinished(call=msgspec.structs.replace(call), **where))
        reply.tool_calls = sorted([*reply.tool_calls, call], key=lambda each: each.ordinal)
        if outcome.files:
            self._emit(FilesAccessed(files=outcome.files, **where))
        if "todos" in outcome.data and outcome.success:
            self._emit(TodosUpdated(todos=msgspec.convert(outcome.data["todos"], list[Todo]), **where))
        if "notice" in outcome.data:
            self._emit(
                Notice(
                    text=str(outcome.data["notice"]),
                    level=outcome.data.get("level", "info"),
                    conversation_id=reply.conversation_id,
                )
            )


def _record(reply: Message, request: ToolRequest, iteration: int, ordinal: int) -> ToolCall:
    return ToolCall(
        uuid=uuid.uuid5(_ID_SPACE, f"{reply.uuid}/{ordinal}").hex,
        message_id=reply.uuid,
        tool_name=request.name,
        arguments=mask_secrets(request.arguments),
        reasoning=mask_secrets(given_reason(request.arguments)) or reply.content,
        iteration=iteration,
        ordinal=ordinal,
        timestamp=now(),
    )


def _started(reply: Message, call: ToolCall) -> ToolCallStarted:
    return ToolCallStarted(
        conversation_id=reply.conversation_id, turn_index=reply.turn_index, call=msgspec.structs.replace(call)
    )


def _refused(feedback: str) -> ToolOutcome:
    comment = f" The user's comment: {feedback}" if feedback else ""
    text = f"The user refused this call; it did not run.{comment} Do not repeat it: ask, or choose another approach."
    if feedback in NOT_ASKED:
        error = f"{REFUSED_BECAUSE}{feedback}"
    else:
        error = f"{REFUSED}: {feedback}" if feedback else REFUSED
    return ToolOutcome(text=text, success=False, error=error)


def _identity(call: ToolCall) -> str:
    try:
        arguments = decode_json(call.arguments)
        if isinstance(arguments, dict):
            arguments.pop("reason", None)
        canonical = json.dumps(arguments, sort_keys=True)
    except msgspec.DecodeError:
        canonical = call.arguments
    return f"{call.tool_name} {canonical}"
