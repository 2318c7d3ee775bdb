"""Hooks: commands of the user that run at certain moments, with the names and the JSON of Claude Code.

Each gets JSON on its standard input. Exit status 2 refuses, with the reason on standard error; JSON on standard output
may decide, and may add to what the model reads. Hooks come from the user's own settings alone. What they print is
foreign text, and one that fails or takes too long is told and changes nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from ragforge_tui.settings.schema import HookCommand, HookSettings
from ragforge_tui.shared.errors import RagforgeError, ToolError
from ragforge_tui.shared.events import ApprovalRequested, Event, Notice
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.sanitize import fenced, plain_text, storable, visible
from ragforge_tui.tools.base import ApprovalNeed, ToolOutcome
from ragforge_tui.tools.registry import PreparedCall
from ragforge_tui.tools.shell.process import shell_arguments

log = logging.getLogger(__name__)

HookEvent = Literal[
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop", "Notification"
]
BLOCKED = 2
"""Exit status with which a hook refuses."""
OUTPUT_CHARS = 10_000
"""What is used of a hook's output."""
STOPS = 3
"""Times that hooks may have one turn go on."""
END_SECONDS = 5.0
"""Most that closing waits for the hooks of the session's end."""

_NAMES = {
    "run_command": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "create_file": "Write",
    "edit_file": "Edit",
    "apply_patch": "Edit",
    "grep_files": "Grep",
    "search_files": "Grep",
    "glob_files": "Glob",
    "list_directory": "Glob",
    "update_todos": "TodoWrite",
    "fetch_web_page": "WebFetch",
    "delegate": "Task",
}
"""Claude Code's names of tools: what hooks get and may match, beside our own."""
_MODES: dict[Mode, str] = {"plan": "plan", "ask": "default", "edits": "acceptEdits", "auto": "auto"}
_SAYS_CONTEXT = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks add what they print as it is."""


class Verdict(msgspec.Struct, kw_only=True):
    """What the hooks of one moment decided together.

    Attributes:
        decision: The strictest one; empty if none decided.
        context: What the model is told.
    """

    decision: Literal["", "allow", "ask", "deny"] = ""
    reason: str = ""
    context: list[str] = []


class Hooks:
    """The user's hooks in one session."""

    def __init__(self, settings: HookSettings, workspace: Path, emit: Callable[[Event], None]) -> None:
        self._settings = settings
        self._workspace = workspace
        self._emit = emit
        self._sessions: set[str] = set()
        self._told: set[str] = set()
        self._notifying: set[asyncio.Task[Verdict]] = set()

    # --- moments -----------------------------------------------------------------------------------------------------

    async def message(self, conversation_id: str, text: str, mode: Mode, *, resumed: bool) -> str:
        """Return what hooks add to a message of the user.

        Raises:
            RagforgeError: A hook refused the message.
        """
        verdicts = []
        if conversation_id not in self._sessions:
            self._sessions.add(conversation_id)
            source = "resume" if resumed else "startup"
            started = {"source": source, "permission_mode": _MODES[mode]}
            verdicts.append(await self._run("SessionStart", conversation_id, source, started))
        submitted = {"prompt": text, "permission_mode": _MODES[mode]}
        verdict = await self._run("UserPromptSubmit", conversation_id, "", submitted)
        if verdict.decision == "deny":
            raise RagforgeError(
                f"A hook refused the message: {verdict.reason or 'it gave no reason'}.",
                todo="Change the message, or hooks.UserPromptSubmit in the settings.",
                kind="hook",
            )
        verdicts.append(verdict)
        return _told([text for one in verdicts for text in one.context])

    async def before_call(self, prepared: PreparedCall, name: str, conversation_id: str, mode: Mode) -> None:
        """Let hooks allow a call, ask about it or refuse it.

        Raises:
            ToolError: A hook refused it.
        """
        verdict = await self._run(
            "PreToolUse", conversation_id, name, {**self._call(prepared, name), "permission_mode": _MODES[mode]}
        )
        if verdict.decision == "deny":
            raise ToolError(
                f"A hook of the user refused this call: {verdict.reason or 'it gave no reason'}.",
                todo="Follow its reason, or choose another approach.",
                kind="hook",
            )
        if verdict.decision == "ask" and prepared.approval is not None:
            prepared.approval = msgspec.structs.replace(
                prepared.approval,
                question=f"{prepared.approval.question} A hook of yours asks: {visible(verdict.reason)}",
                why="a hook of yours asks",
                session_scope="",
                session_key="",
                command="",
                subject=None,
                beyond="A hook of yours asks",
            )
        elif verdict.decision == "ask":
            detail = visible(msgspec.json.format(msgspec.json.encode(prepared.arguments)).decode())
            question = f"Run this call of {name}? A hook of yours asks: {visible(verdict.reason)}"
            prepared.approval = ApprovalNeed(kind="secret", question=question, detail=detail)
        if verdict.decision == "allow" and prepared.approval is not None and not prepared.approval.in_every_mode:
            prepared.approval = None

    async def after_call(self, prepared: PreparedCall, name: str, outcome: ToolOutcome, conversation_id: str) -> None:
        """Add to a call's result what hooks say about it."""
        response = {"text": mask_secrets(outcome.text), "success": outcome.success}
        given = {**self._call(prepared, name), "tool_response": response}
        verdict = await self._run("PostToolUse", conversation_id, name, given)
        said = [*([verdict.reason] if verdict.decision == "deny" and verdict.reason else []), *verdict.context]
        if said:
            outcome.text = f"{outcome.text}\n\n{_told(said)}"

    async def stopping(self, conversation_id: str, text: str, mode: Mode, *, times: int) -> str:
        """Return why the turn goes on although the model has ended it; empty if it ends."""
        if times >= STOPS:
            return ""
        given = {
            "stop_hook_active": times > 0,
            "last_assistant_message": mask_secrets(text),
            "permission_mode": _MODES[mode],
        }
        verdict = await self._run("Stop", conversation_id, "", given)
        return _told([verdict.reason or "Go on."]) if verdict.decision == "deny" else ""

    def on_event(self, event: Event) -> None:
        """Run the hooks of notifications when the user is asked something."""
        if isinstance(event, ApprovalRequested) and self._settings.Notification:
            given = {"message": event.question, "notification_type": "permission_prompt"}
            task = asyncio.create_task(self._run("Notification", event.conversation_id, "permission_prompt", given))
            self._notifying.add(task)
            task.add_done_callback(self._notifying.discard)

    async def close(self) -> None:
        """Run the hooks of the end for each conversation that had a message."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                for conversation_id in sorted(self._sessions):
                    await self._run("SessionEnd", conversation_id, "other", {"reason": "other"})
        for task in list(self._notifying):
            task.cancel()
        await asyncio.gather(*self._notifying, return_exceptions=True)

    # --- running -----------------------------------------------------------------------------------------------------

    def _call(self, prepared: PreparedCall, name: str) -> dict[str, Any]:
        arguments = prepared.arguments.get("values", prepared.arguments)
        path = arguments.get("path") or next(iter(prepared.contents), "")  # A patch names its files within.
        named = {"file_path": str(self._workspace / path)} if isinstance(path, str | Path) and path else {}
        return {"tool_name": _known_name(name), "tool_input": {**arguments, **named}}

    async def _run(self, event: HookEvent, conversation_id: str, subject: str, given: dict[str, Any]) -> Verdict:
        """Run the hooks of one moment at the same time and return what they decided together."""
        hooks = [
            hook for entry in getattr(self._settings, event) if _matches(entry.matcher, subject) for hook in entry.hooks
        ]
        if not hooks:
            return Verdict()
        common = {"session_id": conversation_id, "transcript_path": "", "cwd": str(self._workspace)}
        data = msgspec.json.encode({**common, "hook_event_name": event, **given})
        return _together(await asyncio.gather(*(self._run_one(event, hook, data) for hook in hooks)))

    async def _run_one(self, event: HookEvent, hook: HookCommand, data: bytes) -> Verdict:
        try:
            process = await asyncio.create_subprocess_exec(
                *shell_arguments(hook.command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._workspace,
                env={**os.environ, "CLAUDE_PROJECT_DIR": str(self._workspace)},
                start_new_session=True,
            )
        except OSError as error:
            self._tell(event, hook, f"could not start: {error.strerror}")
            return Verdict()
        try:
            async with asyncio.timeout(hook.timeout):
                out, err = await process.communicate(data)
        except TimeoutError:
            self._tell(event, hook, f"was ended after {hook.timeout:g} s")
            return Verdict()
        finally:
            # Also what it left in the background, which would hold its pipes.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        said, failure = _text(out), _text(err)
        if process.returncode == BLOCKED:
            return Verdict(decision="deny", reason=failure)
        if process.returncode != 0:
            self._tell(event, hook, f"ended with status {process.returncode}: {failure or said}")
            return Verdict()
        return self._verdict(event, said)

    def _verdict(self, event: HookEvent, said: str) -> Verdict:
        answer = json_object(said) if said.startswith("{") else {}
        if not answer:
            return Verdict(context=[said] if said and event in _SAYS_CONTEXT else [])
        if message := answer.get("systemMessage"):
            self._emit(Notice(text=mask_secrets(plain_text(str(message)))))
        more = answer.get("hookSpecificOutput")
        specific: dict[str, Any] = more if isinstance(more, dict) else {}
        decided = specific.get("permissionDecision") or answer.get("decision")
        if answer.get("continue") is False:
            decided = "deny"
        decisions: dict[Any, Literal["allow", "ask", "deny"]] = {
            "allow": "allow",
            "approve": "allow",
            "ask": "ask",
            "deny": "deny",
            "block": "deny",
        }
        reason = specific.get("permissionDecisionReason") or answer.get("reason") or answer.get("stopReason") or ""
        context = specific.get("additionalContext")
        return Verdict(
            decision=decisions.get(decided, "") if isinstance(decided, str) else "",
            # Escapes in JSON became characters only now.
            reason=storable(plain_text(str(reason)))[:OUTPUT_CHARS],
            context=[storable(plain_text(str(context)))[:OUTPUT_CHARS]] if context else [],
        )

    def _tell(self, event: HookEvent, hook: HookCommand, what: str) -> None:
        text = f"The {event} hook {plain_text(hook.command)[:80]!r} {what[:300]}. The work went on without it."
        log.info("%s", mask_secrets(text))
        if text not in self._told:
            self._told.add(text)
            self._emit(Notice(text=mask_secrets(text), level="warning"))


def _matches(matcher: str, subject: str) -> bool:
    if matcher in ("", "*"):
        return True
    names = {subject, _known_name(subject)}
    try:
        return any(re.fullmatch(matcher, name) for name in names)
    except re.error:
        return matcher in names


def _known_name(name: str) -> str:
    return _NAMES.get(name) or (f"mcp__{name}" if "__" in name else name)


def _together(verdicts: Iterable[Verdict]) -> Verdict:
    whole = Verdict()
    order = ("", "allow", "ask", "deny")
    for one in verdicts:
        whole.context += one.context
        if order.index(one.decision) > order.index(whole.decision):
            whole.decision, whole.reason = one.decision, one.reason
    return whole


def _told(texts: list[str]) -> str:
    """Return what hooks said as a block of data; empty if they said nothing."""
    if not texts:
        return ""
    said = mask_secrets("\n".join(texts))
    return f"[Said by a hook that the user set up:]\n{fenced('hook', said)}"


def _text(output: bytes) -> str:
    return storable(plain_text(output[: 4 * OUTPUT_CHARS].decode("utf-8", "replace"))[:OUTPUT_CHARS].strip())
