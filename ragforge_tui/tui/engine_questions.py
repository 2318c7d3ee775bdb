"""The questions of the engine, and what happens with their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from ragforge_tui.shared import events
from ragforge_tui.shared.plans import CARRY_OUT, is_plan
from ragforge_tui.shared.requests.turns import CancelTurn
from ragforge_tui.shared.requests.work import MODES, AnswerApproval, AnswerTrust
from ragforge_tui.tui.commands.persona_commands import restore_persona
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.questions.asked_question import asked_question
from ragforge_tui.tui.questions.question_panel import (
    PLAN_KEY,
    Question,
    approval_question,
    cost_question,
    plan_question,
    trust_question,
)
from ragforge_tui.tui.terminal import Attention

DECISIONS: tuple[events.ApprovalDecision, ...] = get_args(events.ApprovalDecision)


class EngineQuestions:
    """Asks the user what the engine wants to know, also about a conversation that is not open."""

    def __init__(self, host: Host, attention: Attention) -> None:
        self._host = host
        self._session = host.session
        self._attention = attention
        self._planned = ""
        self._batch = ""

    def approval(self, event: events.ApprovalRequested) -> None:
        """Ask whether a tool call may run."""
        question = approval_question(event, self._sender(event.approval_id))
        if event.batch and event.batch == self._batch:
            self._host.ask_user(question)  # The user was called to the first one of them.
            return
        self._batch = event.batch
        self._ask(question)

    def asked(self, event: events.QuestionAsked) -> None:
        """Ask what the agent wants to know."""
        send = self._sender(event.approval_id)

        def stop() -> None:
            self._session.spawn(self._session.ask(CancelTurn(conversation_id=event.conversation_id)), group="stop")

        self._ask(asked_question(event, lambda text: send("once", text), stop))

    def cost(self, event: events.CostLimitReached) -> None:
        """Ask whether to exceed a limit."""
        self._ask(cost_question(event, self._sender(event.approval_id)))

    def trust(self, event: events.TrustRequested) -> None:
        """Ask whether to follow instructions of the folder."""

        def answer(decision: str, _: str) -> None:
            request = AnswerTrust(root=event.root, allow=decision == "yes")
            self._session.spawn(self._session.ask(request), group="answer")
            if event.persona and decision != "yes":
                self._session.spawn(restore_persona(self._host, event.persona), group="persona")

        self._ask(trust_question(event, answer))

    def plan(self, event: events.TurnCompleted) -> None:
        """Ask whether to carry out a plan, unless the user has already sent something else."""
        session, state = self._session, self._session.state
        if state.mode != "plan" or not is_plan(event.text) or event.conversation_id != state.conversation_id:
            return
        if session.message_queue.items or self._host.prompt.text.strip():
            return

        def answer(decision: str, _: str) -> None:
            mode = next(known for known in MODES if known == decision)
            if mode != "plan":
                state.mode, state.mode_unsent = mode, True
                session.send(CARRY_OUT)

        self._planned = event.conversation_id
        self._host.ask_user(plan_question(answer))

    def withdraw_plan(self) -> None:
        """Drop the question about a plan once the user has continued without answering it."""
        state, panel = self._session.state, self._host.questions
        asked = any(question.key == PLAN_KEY for question in panel.waiting)
        if asked and (state.busy or state.mode != "plan" or state.conversation_id != self._planned):
            panel.withdraw(PLAN_KEY)

    def _ask(self, question: Question) -> None:
        """Show a question and call the user to it."""
        self._attention.call(question.title)
        self._host.ask_user(question)

    def _sender(self, approval_id: str) -> Callable[[str, str], None]:
        def send(decision: str, feedback: str) -> None:
            known: events.ApprovalDecision = next((one for one in DECISIONS if one == decision), "no")
            answer = AnswerApproval(approval_id=approval_id, decision=known, feedback=feedback)
            self._session.spawn(self._session.ask(answer), group="answer")

        return send
