"""What the summariser waits for, asked again when it may have changed. Called by `dispatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import RagforgeError
from ragforge_tui.protocol import FetchDue

if TYPE_CHECKING:
    from ragforge_tui.tui.controller import ChatController


def learn_due(chat: ChatController, conversation_id: str) -> None:
    """Ask, when that conversation is open and its memory can answer."""
    graph = chat.state.graph
    if conversation_id == chat.state.conversation_id and graph is not None and graph.phase == "ready":
        chat.spawn(_learn(chat, conversation_id), group="due", exclusive=True)


async def _learn(chat: ChatController, conversation_id: str) -> None:
    try:
        due = await chat.ask(FetchDue(conversation_id=conversation_id))
    except RagforgeError:
        return  # Nobody asked for it; what cannot be known is not said.
    if conversation_id == chat.state.conversation_id:
        chat.state.due = due
        chat.view.sidebar.due_changed()
        chat.view.refresh_chrome()
