"""Helpers of the agent: conversations of their own that do one task with tools that only read, within a budget.

A helper's conversation is a branch that shares no turn with its parent. It names the call that started it, is private,
so that nothing of it is recalled elsewhere, and is not listed. No user answers it: what needs approval is refused.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from ragforge_tui.conversation.services import Services
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event, MessageFinished, ToolCallStarted, TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import SHORT_ID, STOPPED, TITLE_CHARS, Conversation, Usage, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import main_argument, tool_label
from ragforge_tui.shared.truncation import cut_lines
from ragforge_tui.tools.base import CallStopped, ToolOutcome, report_output, running_call
from ragforge_tui.tools.delegate import DELEGATE, HelperKind
from ragforge_tui.tools.shell.run_command import RunCommand

MOST_REQUESTS = 25
MOST_SECONDS = 600.0
MOST_TOKENS = 500_000
"""Tokens of all requests and replies of one helper, after which it is stopped."""
ANSWER_CHARS = 6_000
SHOWN_CALLS = 5
"""Newest calls that are shown while it runs."""
MOST_TRACED = 200

_TASKS: dict[HelperKind, str] = {
    "search": "Find out what is asked. Cite what you found as path:line, and say what you did not find.",
    "review": "Review what is named. Report real faults only, the worst first, each as path:line with its consequence.",
    "plan": "Make a plan: which files change and how, in which order, what is uncertain. Change nothing.",
}
_TASK = """\
You are a helper of another agent, which reads your last reply and nothing else. No user reads along or answers. Tools \
and commands that only read are allowed. {kind} Answer in at most 300 words.

Task:
{task}"""


class HelperConversation(Protocol):
    """The conversation of a helper, as far as it is run from here."""

    async def submit(self, text: str) -> int: ...

    def cancel(self) -> None: ...

    async def wait_idle(self) -> None: ...

    async def end(self) -> None: ...

    @property
    def mode(self) -> Mode: ...

    @mode.setter
    def mode(self, mode: Mode) -> None: ...


class Helpers:
    """Runs the helpers of one turn.

    Args:
        parent: The conversation of the turn.
        opened: Returns a new conversation of a record that is stored.
        on_usage: Receives what each request of a helper cost, and returns whether the turn may cost no more.
        mode: Returns the mode of the turn: a helper of a plan only reads, whatever the rules allow.
    """

    def __init__(
        self,
        services: Services,
        parent: Conversation,
        *,
        opened: Callable[[Services, Conversation], HelperConversation],
        on_usage: Callable[[Usage], bool],
        mode: Callable[[], Mode],
    ) -> None:
        self._services = services
        self._parent = parent
        self._mode = mode
        self._opened = opened
        self._on_usage = on_usage

    async def run(self, kind: HelperKind, task: str) -> ToolOutcome:
        """Run a helper to its end and return its answer.

        Raises:
            CallStopped: The turn was stopped, and the helper with it.
        """
        record = await self._services.recorder.create_conversation(self._record(kind, task))
        helper = self._opened(self._restricted(), record)
        if self._mode() == "plan":
            helper.mode = "plan"
        work = _Work(record, self._on_usage)
        try:
            with self._services.events.subscribe() as events:
                await helper.submit(_TASK.format(kind=_TASKS[kind], task=task))
                with suppress(TimeoutError):
                    async with asyncio.timeout(MOST_SECONDS):
                        await work.follow(events)
        except asyncio.CancelledError:
            raise CallStopped(work.outcome("", STOPPED)) from None
        except RagforgeError as error:
            return work.outcome(f"The helper failed: {error}", str(error))
        finally:
            helper.cancel()
            await helper.wait_idle()
            await helper.end()
        match work.ended:
            case TurnCompleted(text=text) if text.strip():
                return work.outcome(text)
            case TurnFailed(error=failure):
                return work.outcome(f"The helper failed: {failure.sentence()}", failure.what)
            case _:
                so_far = work.text or "nothing"
                return work.outcome(f"The helper used up its budget. So far: {so_far}", "budget used up")

    def _record(self, kind: HelperKind, task: str) -> Conversation:
        parent, created = self._parent, now()
        title = " ".join(mask_secrets(storable(f"{kind}: {task}")).split())
        return Conversation(
            uuid=str(uuid.uuid4()),
            title=title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…",
            created_at=created,
            updated_at=created,
            persona=parent.persona,
            model=parent.model,
            workspace=parent.workspace,
            owner=parent.owner,
            private=True,
            branch_of=parent.uuid,
            branch_turn=0,
            helper_of=running_call.get(),
        )

    def _restricted(self) -> Services:
        """Return the services with reading tools, no user to ask, and fewer requests."""
        services, toolbox = self._services, self._services.toolbox
        reading = {name for name in toolbox.names() if toolbox.access(name) == "read"} - {DELEGATE}
        most = min(services.settings.model.max_iterations, MOST_REQUESTS)
        model = msgspec.structs.replace(services.settings.model, max_iterations=most)
        return replace(
            services,
            settings=msgspec.structs.replace(services.settings, model=model),
            toolbox=toolbox.only({*reading, RunCommand.info.name}),
            approvals=services.approvals.unattended(),
        )


class _Work:
    """What a helper has done so far."""

    def __init__(self, record: Conversation, on_usage: Callable[[Usage], bool]) -> None:
        self._record = record
        self._on_usage = on_usage
        self._report = report_output.get()
        self._trace: list[str] = []
        self._requests = 0
        self._tokens = 0
        self._spent = False
        self.text = ""
        self.ended: TurnEnd | None = None

    async def follow(self, events: asyncio.Queue[Event]) -> None:
        """Note the events of the helper until its turn ends, or its tokens or the turn's money are used up."""
        while self.ended is None and self._tokens < MOST_TOKENS and not self._spent:
            event = await events.get()
            if getattr(event, "conversation_id", "") == self._record.uuid:
                self._note(event)

    def _note(self, event: Event) -> None:
        match event:
            case ToolCallStarted(call=call):
                self._trace.append(f"{tool_label(call.tool_name)} {main_argument(call)}".strip())
                self._report(self._trace[-SHOWN_CALLS:])
            case MessageFinished(message=message):
                self._requests += 1
                self.text = message.content or self.text
                if message.usage is not None:
                    self._tokens += message.usage.input_tokens + message.usage.output_tokens
                    self._spent = self._on_usage(message.usage) or self._spent
            case _ if isinstance(event, TurnEnd):
                self.ended = event
            case _:
                pass

    def outcome(self, text: str, error: str = "") -> ToolOutcome:
        """Return the outcome of the call, with the trace and the conversation of the helper."""
        data: dict[str, Any] = {
            "helper": self._record.uuid,
            "trace": [
                *self._trace[-MOST_TRACED:],
                f"{self._requests} requests, {counted(self._tokens)} tokens · /resume {self._record.uuid[:SHORT_ID]}",
            ],
        }
        return ToolOutcome(text=cut_lines(text, ANSWER_CHARS), success=not error, error=error or None, data=data)
