"""What the scripted engine knows of its sessions as a list: filtered, followed, peeked at, searched."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

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
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine


def listed(conversations: dict[str, Conversation], wanted: ConversationFilter) -> list[Conversation]:
    """Those that pass the filter, newest first; copies, as what comes through a pipe."""
    found = [
        msgspec.structs.replace(one)
        for one in conversations.values()
        if wanted.status in ("any", one.status) and wanted.workspace in (None, one.workspace)
    ]
    return sorted(found, key=lambda one: one.updated_at, reverse=True)[: wanted.limit]


class SessionShelf:
    """Answers the requests about sessions as a list."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    @answers(FollowConversations)
    def _follow(self, request: FollowConversations) -> ConversationChanges:
        return _changes(self._engine.conversations, request.since, request.workspace)

    @answers(PeekConversation)
    def _peek(self, request: PeekConversation) -> ConversationPeek:
        uuid = request.conversation_id
        said = [message for one in self._engine.turns[uuid] for message in one.messages]
        first, last = (said[0].content, said[-1].content) if said else ("", "")
        owner = self._engine.conversations[uuid]
        return ConversationPeek(conversation=owner, first=first, last=last, last_role="assistant")

    @answers(LeaveConversation)
    def _leave(self, request: LeaveConversation) -> Empty:
        return Empty()

    @answers(Search)
    def _search(self, request: Search) -> list[SearchHit]:
        if request.topic and request.topic != "retries":
            raise NotFoundError(f"There is no topic {request.topic!r}.")
        known, turns = self._engine.conversations, self._engine.turns
        return [hit for uuid in turns for hit in _hits(known[uuid], turns[uuid], request)]


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
