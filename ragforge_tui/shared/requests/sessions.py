"""Requests about the list of stored conversations; other modules import them from `wire`."""

from __future__ import annotations

from datetime import datetime

from ragforge_tui.shared.records import ConversationChanges, ConversationPeek
from ragforge_tui.shared.requests.base import Empty, Request


class PeekConversation(Request[ConversationPeek]):
    """Start and end of a stored conversation, without opening it. Also works for deleted ones."""

    conversation_id: str
    chars: int = 600
    """Most characters of each message."""


class FollowConversations(Request[ConversationChanges]):
    """Changed conversations of a workspace or of all, regardless of their status.

    A list on the screen polls it: without changes the cost does not depend on the number of conversations.
    """

    since: datetime
    """Earliest time of the changes, inclusive."""
    workspace: str | None = None


class LeaveConversation(Request[Empty]):
    """Stop reporting changes by other processes, because no conversation is displayed any more."""


SessionRequest = PeekConversation | FollowConversations | LeaveConversation
