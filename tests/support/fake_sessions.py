"""What the scripted engine knows of its sessions as a list: filtered, followed, peeked at, searched."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import (
    Conversation,
    ConversationChanges,
    ConversationFilter,
    ConversationPeek,
    Message,
    SearchHit,
    Turn,
)
from ragforge_tui.shared.requests.sessions import FollowConversations, LeaveConversation, PeekConversation, Search
from ragforge_tui.shared.wire import Empty
from tests.support.request_subjects import SessionRequest


def listed(conversations: dict[str, Conversation], wanted: ConversationFilter) -> list[Conversation]:
    """Those that pass the filter, newest first; copies, as what comes through a pipe."""
    found = [
        msgspec.structs.replace(one)
        for one in conversations.values()
        if wanted.status in ("any", one.status) and wanted.workspace in (None, one.workspace)
    ]
    return sorted(found, key=lambda one: one.updated_at, reverse=True)[: wanted.limit]


def answer(
    conversations: dict[str, Conversation], turns: dict[str, list[Turn]], request: SessionRequest | Search
) -> Any:
    """As the engine would."""
    match request:
        case FollowConversations(since=since, workspace=workspace):
            return _changes(conversations, since, workspace)
        case PeekConversation(conversation_id=uuid):
            said = [message for one in turns[uuid] for message in one.messages]
            first, last = (said[0].content, said[-1].content) if said else ("", "")
            return ConversationPeek(conversation=conversations[uuid], first=first, last=last, last_role="assistant")
        case LeaveConversation():
            return Empty()
        case Search():
            if request.topic and request.topic != "retries":
                raise NotFoundError(f"There is no topic {request.topic!r}.")
            return [hit for uuid in turns for hit in _hits(conversations[uuid], turns[uuid], request)]


def _changes(conversations: dict[str, Conversation], since: datetime, workspace: str | None) -> ConversationChanges:
    every = listed(conversations, ConversationFilter(status="any", workspace=workspace, limit=10_000))
    return ConversationChanges(changed=[one for one in every if one.updated_at >= since], count=len(every))


def _hits(owner: Conversation, turns: list[Turn], request: Search) -> list[SearchHit]:
    if request.workspace not in (None, owner.workspace) or request.conversation_id not in ("", owner.uuid):
        return []
    said = [message for one in turns for message in one.messages]
    return [_hit(owner, message, request.query) for message in said if request.query in message.content]


def _hit(owner: Conversation, message: Message, word: str) -> SearchHit:
    at = message.content.index(word)
    return SearchHit(
        conversation_id=owner.uuid,
        title=owner.title,
        turn_index=message.turn_index,
        message_uuid=message.uuid,
        role=message.role,
        snippet=message.content,
        highlights=[(at, at + len(word))],
        timestamp=message.timestamp,
        score=1.0,
    )
