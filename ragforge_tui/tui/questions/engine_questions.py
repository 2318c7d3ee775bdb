"""Questions of the engine: shown to the user, and their answers sent back.

`question_panel.py` draws them.
"""

from __future__ import annotations

from typing import Any, Protocol, get_args

from ragforge_tui.shared.events import ApprovalDecision, ApprovalRequested, CostLimitReached, TrustRequested
from ragforge_tui.shared.wire import AnswerApproval, AnswerTrust, Request
from ragforge_tui.tui.questions.question_panel import Question, approval_question, cost_question, trust_question
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.terminal import Attention

DECISIONS: tuple[ApprovalDecision, ...] = get_args(ApprovalDecision)


class QuestionHost(Protocol):
    """The screen as far as questions need it."""

    @property
    def session(self) -> EngineSession:
        """Receives the answers."""
        ...

    @property
    def attention(self) -> Attention:
        """Calls the user back to the terminal."""
        ...

    def ask_user(self, question: Question) -> None:
        """Show a question above the prompt."""

    def persona_refused(self, name: str) -> None:
        """Go back to the previous persona."""


def ask_approval(host: QuestionHost, event: ApprovalRequested) -> None:
    """Ask whether a tool may run, also for a conversation that is not open."""

    def answer(decision: str, feedback: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _send(host, AnswerApproval(approval_id=event.approval_id, decision=choice, feedback=feedback))

    host.attention.call(event.question)
    host.ask_user(approval_question(event, answer))


def ask_cost(host: QuestionHost, event: CostLimitReached) -> None:
    """Ask whether a turn may exceed its cost limit, also for a conversation that is not open."""

    def answer(decision: str, _: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _send(host, AnswerApproval(approval_id=event.approval_id, decision=choice))

    question = cost_question(event, answer)
    host.attention.call(question.title)
    host.ask_user(question)


def ask_trust(host: QuestionHost, event: TrustRequested) -> None:
    """Ask whether instructions that came with the folder may be used."""

    def answer(decision: str, _: str) -> None:
        _send(host, AnswerTrust(root=event.root, allow=decision == "yes"))
        if event.persona and decision != "yes":
            host.persona_refused(event.persona)

    question = trust_question(event, answer)
    host.attention.call(question.title)
    host.ask_user(question)


def _send(host: QuestionHost, request: Request[Any]) -> None:
    async def send() -> None:
        await host.session.ask(request)

    host.session.spawn(send(), group="answer")
