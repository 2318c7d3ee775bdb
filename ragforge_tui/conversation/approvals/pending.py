"""Approvals of tool calls: the policy as one table, and the questions that wait for the user's answer.

A question is an event; the answer counts once or for the session, or saves a rule in `Rules`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from ragforge_tui.conversation.approvals.reading_commands import only_reads
from ragforge_tui.conversation.approvals.rules import Rules
from ragforge_tui.shared.events import (
    ApprovalDecision,
    ApprovalRequested,
    ApprovalResolved,
    AskedChoice,
    CostLimitReached,
    Event,
    QuestionAsked,
)
from ragforge_tui.shared.records import Message, ToolCall
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.rules import PROGRAMS
from ragforge_tui.shared.sanitize import revealed, visible
from ragforge_tui.tools.base import ApprovalNeed, Ruling, Walls
from ragforge_tui.tools.registry import PreparedCall

log = logging.getLogger(__name__)

Emit = Callable[[Event], None]
Approve = Callable[[ApprovalRequested], bool | str | Awaitable[bool | str]]
"""Function of a program that answers for the user: True allows the call, False or a reason for the model refuses it."""
ApprovalMode = Literal["ask", "edits", "auto", "yes"]
Verdict = Literal["run", "ask"]

NO_USER = "No user is available to ask."
UNDECIDED = "The program could not decide."
TERMINAL_CLOSED = "The user's terminal is closed; no one could be asked."
NOT_ASKED = frozenset({NO_USER, UNDECIDED, TERMINAL_CLOSED})
"""Comments of refusals that no user made."""
NO_RULE = Ruling()


class ApprovalPolicy:
    """Decision from the need, the session's grants and the mode alone.

    | need                              | mode  | granted    | verdict |
    |-----------------------------------|-------|------------|---------|
    | a file of the program's           | any   | any        | ask     |
    | none                              | any   | any        | run     |
    | any                               | yes   | any        | run     |
    | a call that a rule asks about     | other | any        | ask     |
    | a command outside the sandbox     | other | any        | ask     |
    |   after one planted something     |       |            |         |
    | a call that a rule allows         | other | any        | run     |
    | a write, without a reason to ask  | edits | any        | run     |
    | the same                          | auto  | any        | run     |
    | a command that the sandbox is for | auto  | any        | run     |
    | offered for the session           | other | its key    | run     |
    | offered for the session           | other | other keys | ask     |
    | not offered for the session       | other | any        | ask     |

    A write has a reason to ask if its file may hold secrets or runs by itself (`Guard`).
    """

    @staticmethod
    def decide(
        need: ApprovalNeed | None, granted: AbstractSet[str], mode: ApprovalMode, ruling: Ruling = NO_RULE
    ) -> Verdict:
        """Decide on one call, given what the user's rules say about it."""
        if need is None:
            return "run"
        if need.in_every_mode:
            return "ask"
        # In auto the code of the workspace may be what a command in the sandbox has written.
        held = bool(need.planted) or (mode == "auto" and ruling.by_kind and need.beyond != "")
        if mode == "yes" or (ruling.effect == "allow" and not held):
            return "run"
        if ruling.effect == "ask":
            return "ask"
        offered = bool(need.session_scope and need.session_key)
        if offered and not need.why and need.kind == "write" and mode in ("edits", "auto"):
            return "run"
        if mode == "auto" and need.beyond == "":
            return "run"
        return "run" if offered and need.session_key in granted and not need.planted else "ask"


class Approvals:
    """Granted permissions and pending questions.

    Args:
        approve_all: Run every call without asking (`ask --yes`).
        interactive: A user answers; otherwise questions are shown and refused at once.
        rules: The user's rules.
        approve: Answers questions about calls in place of a user; a sync function runs in a thread.
    """

    def __init__(
        self,
        *,
        approve_all: bool = False,
        interactive: bool = True,
        rules: Rules,
        approve: Approve | None = None,
    ) -> None:
        self._approve = approve
        self._policy = ApprovalPolicy()
        self._interactive = interactive
        self._approve_all = approve_all
        self._granted: set[str] = set()
        self.rules = rules
        self._pending: dict[str, asyncio.Future[tuple[ApprovalDecision, str]]] = {}
        self._asked: dict[str, ApprovalRequested | CostLimitReached | QuestionAsked] = {}
        self._needs: dict[str, tuple[str, ApprovalNeed, Ruling]] = {}
        self._by_sandbox: set[str] = set()
        """Calls that the mode auto let through while they waited for an answer."""
        self._closed = False

    def unattended(self) -> Approvals:
        """Return approvals for background work: what the user always allows runs, and nobody is asked."""
        return Approvals(interactive=False, rules=self.rules)

    @property
    def attended(self) -> bool:
        """Return whether a user is available to answer."""
        return self._interactive and not self._closed

    @property
    def answered_by_user(self) -> bool:
        """Return whether a user, rather than a program, answers questions about calls."""
        return self.attended and self._approve is None

    async def walls(self, prepared: PreparedCall, call: ToolCall, mode: Mode) -> Walls:
        """Return the sandbox in which the commands of a call run."""
        if prepared.approval is None:
            return "" if prepared.reading is None else "reading"
        return "workspace" if await self._is_sandboxed(prepared.approval, call, mode) else ""

    async def _is_sandboxed(self, need: ApprovalNeed, call: ToolCall, mode: Mode) -> bool:
        """Return whether a call runs only because the sandbox holds it, by its mode now or when it was let through."""
        if call.uuid in self._by_sandbox:
            return True
        if need.beyond != "" or mode != "auto":
            return False
        ruling = await self._judged(need)
        if self._approve_all:
            return False
        return ruling.by_kind or self._policy.decide(need, self._granted, "ask", ruling) == "ask"

    async def is_asked(self, need: ApprovalNeed, mode: Mode) -> bool:
        """Return whether the user is asked about a call."""
        return self._decide(need, mode, await self._judged(need)) == "ask"

    async def ask(
        self,
        calls: Sequence[tuple[ApprovalNeed, ToolCall]],
        conversation_id: str,
        turn_index: int,
        emit: Emit,
        *,
        mode: Mode,
        remembered: Mapping[str, str] | None = None,
    ) -> list[tuple[bool, str]]:
        """Return, for each of these calls, whether it may run, and the user's comment if not; ask about all at once.

        Args:
            remembered: What memory says about them, by their ids.
            mode: What the agent may currently do in that conversation without asking.
        """
        batch = uuid.uuid4().hex if len(calls) > 1 else ""
        questions: list[ApprovalRequested | None] = []
        rulings = [await self._judged(need) for need, _ in calls]
        for (need, call), ruling in zip(calls, rulings, strict=True):
            if self._decide(need, mode, ruling) == "run" or self._closed:
                if mode == "auto" and need.beyond == "" and self._decide(need, "ask", ruling) == "ask":
                    self._by_sandbox.add(call.uuid)  # It stays there, whatever the mode is when it starts.
                questions.append(None)
                continue
            asked = ruling.effect == "ask"
            always = [] if asked or not need.command else await asyncio.to_thread(self.rules.offer, need.command)
            why = f"Your rule is: {ruling.why}" if asked else ruling.why or need.why
            if mode == "auto" and need.beyond and not asked:
                why = need.beyond
            if need.planted and not asked:
                why = need.planted
            questions.append(
                ApprovalRequested(
                    conversation_id=conversation_id,
                    turn_index=turn_index,
                    approval_id=uuid.uuid4().hex,
                    call=call,
                    kind=need.kind,
                    question=revealed(f"{need.question} {visible(why)}." if why else need.question),
                    detail=revealed(need.detail),
                    remembered=revealed((remembered or {}).get(call.uuid, "")),
                    session_scope="" if asked else _scope_of(always) or need.session_scope,
                    always=always,
                    batch=batch,
                )
            )
        async with asyncio.TaskGroup() as tasks:
            # Tasks start in the order in which they are made and await nothing before they ask: the order of the calls.
            waiting = [
                tasks.create_task(self._answer_to(question, need, ruling, emit, mode))
                for question, (need, _), ruling in zip(questions, calls, rulings, strict=True)
            ]
        return [task.result() for task in waiting]

    async def _answer_to(
        self, question: ApprovalRequested | None, need: ApprovalNeed, ruling: Ruling, emit: Emit, mode: Mode
    ) -> tuple[bool, str]:
        if question is None:
            return (False, TERMINAL_CLOSED) if self._closed and await self.is_asked(need, mode) else (True, "")
        self._needs[question.approval_id] = question.conversation_id, need, ruling
        try:
            decision, feedback = await self._wait_for_answer(question, emit)
        finally:
            del self._needs[question.approval_id]
        if decision == "session" and _scope_of(question.always):
            self.rules.allow_in_session(question.always)
        elif decision == "session":
            self._granted.add(need.session_key)
        if decision == "always" and question.always:
            emit(await self.rules.allow(question.always))
        if decision in ("session", "always"):
            await self._answer_granted()
        return decision != "no", feedback

    async def _answer_granted(self) -> None:
        """Approve, once, pending calls that an answer to another one permits."""
        for approval_id, (_, need, _) in list(self._needs.items()):
            if not await self.is_asked(need, "ask"):
                self.answer(approval_id, "once")

    async def _judged(self, need: ApprovalNeed) -> Ruling:
        if need.subject is None:
            return NO_RULE
        return await asyncio.to_thread(self.rules.judge, need.subject, careful=bool(need.why))

    async def judge(self, prepared: PreparedCall) -> Ruling:
        """Return what the user's rules say about a call; a command that only reads needs no approval in any mode."""
        need, subject = prepared.approval, prepared.subject
        ruling = await asyncio.to_thread(self.rules.judge, subject, careful=need is not None and bool(need.why))
        if ruling.effect in ("ask", "deny") or not subject.command:
            return ruling
        return ruling._replace(reads=await asyncio.to_thread(only_reads, subject.command, self.rules.guard))

    def mode_changed(self, conversation_id: str, mode: Mode) -> None:
        """Approve, once, pending calls of a conversation that need no approval in its new mode."""
        if mode == "plan":
            return  # even granted calls are not allowed while planning
        for approval_id, (pending_in, need, ruling) in list(self._needs.items()):
            if pending_in == conversation_id and self._decide(need, mode, ruling) == "run":
                question = self._asked[approval_id]
                if mode == "auto" and need.beyond == "" and isinstance(question, ApprovalRequested):
                    # Its turn may come when the mode is another one.
                    self._by_sandbox.add(question.call.uuid)
                self.answer(approval_id, "once")

    async def ask_cost(self, question: Callable[[str], CostLimitReached], emit: Emit) -> ApprovalDecision:
        """Return the user's decision about a cost limit; "no" if no user is available.

        Args:
            question: Creates the event for an approval id.
        """
        if self._closed:
            return "no"
        decision, _ = await self._wait_for_answer(question(uuid.uuid4().hex), emit)
        return decision

    async def ask_user(
        self,
        question: str,
        choices: list[AskedChoice],
        call: ToolCall,
        reply: Message,
        emit: Emit,
        *,
        draft: str = "",
    ) -> str | None:
        """Return the user's answer to a question of the agent, None if no user is available.

        Args:
            draft: Text that an answer of the user's own starts with.
        """
        if not self.attended:
            return None
        asked = QuestionAsked(
            conversation_id=reply.conversation_id,
            turn_index=reply.turn_index,
            approval_id=uuid.uuid4().hex,
            call=call,
            question=question,
            choices=choices,
            draft=draft,
        )
        decision, answer = await self._wait_for_answer(asked, emit)
        return answer if decision != "no" else None

    def turns_moved(self, conversation_id: str, moved: Mapping[int, int]) -> None:
        """Correct the turns of pending questions: new indexes by the guessed ones."""
        for question in self._asked.values():
            if question.conversation_id == conversation_id:
                question.turn_index = moved.get(question.turn_index, question.turn_index)

    async def _wait_for_answer(
        self, question: ApprovalRequested | CostLimitReached | QuestionAsked, emit: Emit
    ) -> tuple[ApprovalDecision, str]:
        answer: asyncio.Future[tuple[ApprovalDecision, str]] = asyncio.get_running_loop().create_future()
        self._pending[question.approval_id] = answer
        self._asked[question.approval_id] = question
        if not self._interactive:
            answer.set_result(("no", NO_USER))
        emit(question)
        decision: ApprovalDecision = "no"
        feedback = ""
        try:
            if self._approve is not None and isinstance(question, ApprovalRequested):
                decision, feedback = await self._ask_program(self._approve, question)
            else:
                decision, feedback = await answer
        finally:
            self._pending.pop(question.approval_id, None)
            del self._asked[question.approval_id]
            emit(
                ApprovalResolved(
                    conversation_id=question.conversation_id,
                    turn_index=question.turn_index,
                    approval_id=question.approval_id,
                    decision=decision,
                )
            )
        return decision, feedback

    async def _ask_program(self, approve: Approve, question: ApprovalRequested) -> tuple[ApprovalDecision, str]:
        try:
            given = await asyncio.to_thread(approve, question)
            verdict = await given if inspect.isawaitable(given) else given
        except Exception:
            log.exception("the program's function for approvals failed")
            return "no", UNDECIDED
        if isinstance(verdict, str):
            return "no", verdict
        return ("once" if verdict and not self._closed else "no"), ""

    def _decide(self, need: ApprovalNeed, mode: Mode, ruling: Ruling) -> Verdict:
        return self._policy.decide(need, self._granted, self._effective(mode), ruling)

    def _effective(self, mode: Mode) -> ApprovalMode:
        if self._approve_all:
            return "yes"
        return mode if mode in ("edits", "auto") and not self._closed else "ask"

    def answer(self, approval_id: str, decision: ApprovalDecision, feedback: str = "") -> None:
        """Apply the user's answer; an answer to a question that is no longer pending is ignored.

        A refusal with a reason is about the whole reply: it refuses the rest of the batch too.
        """
        question = self._asked.get(approval_id)
        refused = [approval_id]
        if decision == "no" and feedback and isinstance(question, ApprovalRequested) and question.batch:
            refused = [key for key, one in self._asked.items() if getattr(one, "batch", "") == question.batch]
        for key in refused:
            future = self._pending.get(key)
            if future is not None and not future.done():
                future.set_result((decision, feedback))

    def close(self) -> None:
        """Refuse all pending and later questions, because no user is left to answer."""
        self._closed = True
        self._approve_all = False
        self._granted.clear()
        for future in self._pending.values():
            if not future.done():
                future.set_result(("no", TERMINAL_CLOSED))


def _scope_of(always: Sequence[str]) -> str:
    """Return what "this session" allows if all of a command are programs of a known kind; else nothing."""
    return " and ".join(PROGRAMS[one] for one in always) if all(one in PROGRAMS for one in always) else ""
