"""What the engine wants to know from the person, put to them, and their answer given back.

Called by `dispatch.py`; how a question looks is in `panel.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ragforge_tui.events import ApprovalDecision, ApprovalRequested, CostLimitReached, TrustRequested
from ragforge_tui.protocol import AnswerApproval, AnswerTrust, Request
from ragforge_tui.tui.panel import approval_question, cost_question, trust_question

if TYPE_CHECKING:
    from ragforge_tui.tui.controller import ChatController

DECISIONS: tuple[ApprovalDecision, ...] = get_args(ApprovalDecision)


def ask_approval(chat: ChatController, event: ApprovalRequested) -> None:
    """A tool waits for the person; asked also for a conversation that is not on the screen."""

    def answer(decision: str, feedback: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _tell(chat, AnswerApproval(approval_id=event.approval_id, decision=choice, feedback=feedback))

    chat.show(event)
    chat.attention.call(event.question)
    chat.view.ask(approval_question(event, answer))


def ask_cost(chat: ChatController, event: CostLimitReached) -> None:
    """A turn would cost more than it may; asked also for a conversation that is not on the screen."""

    def answer(decision: str, _: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _tell(chat, AnswerApproval(approval_id=event.approval_id, decision=choice))

    question = cost_question(event, answer)
    chat.attention.call(question.title)
    chat.view.ask(question)


def ask_trust(chat: ChatController, event: TrustRequested) -> None:
    """Instructions that came with the folder wait for the person."""

    def answer(decision: str, _: str) -> None:
        _tell(chat, AnswerTrust(root=event.root, allow=decision == "yes"))
        if event.persona and decision != "yes":
            chat.spawn(chat.view.actions.persona_refused(event.persona), group="persona")

    question = trust_question(event, answer)
    chat.attention.call(question.title)
    chat.view.ask(question)


def _tell(chat: ChatController, request: Request[Any]) -> None:
    async def tell() -> None:
        await chat.ask(request)

    chat.spawn(tell(), group="answer")
