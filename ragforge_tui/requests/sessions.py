"""The requests about stored conversations as a list: a part of `protocol`, which everybody imports them from."""

from __future__ import annotations

from datetime import datetime

from ragforge_tui.models import ConversationChanges, ConversationPeek
from ragforge_tui.requests.base import Empty, Request


class PeekConversation(Request[ConversationPeek]):
    """How a stored conversation begins and ends, without opening it. Deleted ones answer too."""

    conversation_id: str
    chars: int = 600
    """Most characters of each message."""


class FollowConversations(Request[ConversationChanges]):
    """What changed among the conversations of a workspace, or of all, whatever their status.

    A list on a screen asks this again and again: with nothing new it costs the same for ten and ten thousand.
    """

    since: datetime
    """Those changed at that moment or later."""
    workspace: str | None = None


class LeaveConversation(Request[Empty]):
    """No conversation is looked at any more: what other processes do to the last one opened need not be said."""


SessionRequest = PeekConversation | FollowConversations | LeaveConversation
