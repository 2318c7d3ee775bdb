"""The one place where events of the engine become what is shown.

Called by the controller for each event, in order. Turn events of the open conversation go to the transcript as
they are; here is only what the rest of the screen makes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.events import (
    ApprovalRequested,
    ApprovalResolved,
    ConversationChanged,
    CostLimitReached,
    Event,
    FilesAccessed,
    GraphChanged,
    MessageFinished,
    MessageQueued,
    MessageStarted,
    ModelChanged,
    ModelRetry,
    ModelWaiting,
    Notice,
    ReasoningDelta,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TextDelta,
    TodosUpdated,
    ToolCallFinished,
    ToolCallStarted,
    TopicsChanged,
    TrustRequested,
    TurnCancelled,
    TurnCompleted,
    TurnElsewhere,
    TurnFailed,
    TurnReset,
    TurnStarted,
)
from ragforge_tui.tui.due import learn_due
from ragforge_tui.tui.listening import tell
from ragforge_tui.tui.questions import ask_approval, ask_cost, ask_trust
from ragforge_tui.tui.state import sent_tokens

if TYPE_CHECKING:
    from ragforge_tui.tui.controller import ChatController


def dispatch(chat: ChatController, event: Event) -> None:
    """Make one event visible."""
    state = chat.state
    if isinstance(event, TextDelta) and state.answering:
        # Hundreds a second; only the first of a reply changes what the frame says.
        chat.show(event)
        return
    match event:
        case TurnStarted():
            chat.turn_started(event)
        case TurnCompleted() | TurnCancelled() | TurnFailed():
            chat.turn_ended(event)
            learn_due(chat, event.conversation_id)
        case TurnElsewhere():
            chat.elsewhere.take_in(event)
        case TurnReset():
            state.stale = state.stale or event.conversation_id == state.conversation_id
        case ApprovalRequested():
            ask_approval(chat, event)
        case CostLimitReached():
            ask_cost(chat, event)
        case ApprovalResolved():
            chat.view.questions.withdraw(event.approval_id)
            chat.show(event)
        case MessageStarted() | ReasoningDelta():
            if event.conversation_id == state.conversation_id:
                state.answering = False
            chat.show(event)
        case TextDelta():
            if event.conversation_id == state.conversation_id:
                state.answering = True
            chat.show(event)
        case MessageFinished():
            state.spent.add(event.message.usage)
            if event.conversation_id == state.conversation_id:
                state.context_used = sent_tokens([event.message]) or state.context_used
            chat.show(event)
        case ToolCallStarted():
            if event.conversation_id == state.conversation_id:
                state.tools.add(event.call.uuid)
            chat.show(event)
        case ToolCallFinished():
            state.tools.discard(event.call.uuid)
            chat.show(event)
        case TodosUpdated() | FilesAccessed() | ModelRetry() | ModelWaiting():
            chat.show(event)
        case SummaryStarted():
            if event.conversation_id == state.conversation_id:
                state.summarising.add((event.level, event.start_turn_index))
        case SummaryCreated(summary=summary):
            state.summarising.discard((summary.level, summary.start_turn_index))
            learn_due(chat, event.conversation_id)
        case SummaryFailed():
            state.summarising.discard((event.level, event.start_turn_index))
            learn_due(chat, event.conversation_id)
        case TopicsChanged():
            pass  # Topics are asked for when they are looked at.
        case MessageQueued():
            pass  # This screen's own messages are in its outbox since `SendAccepted` said they wait.
        case Notice():
            if event.conversation_id in ("", state.conversation_id):
                chat.notice(event.text, event.level)
        case TrustRequested():
            ask_trust(chat, event)
        case ConversationChanged():
            if event.conversation.uuid == state.conversation_id:
                state.conversation = event.conversation
        case GraphChanged():
            chat.graph_changed(event)
        case ModelChanged():
            chat.model_changed(event)
    chat.view.sidebar.event(event)
    tell(chat.view.screen_stack, event)
    chat.view.refresh_chrome()
