"""The requests about single turns of a conversation: a part of `protocol`, which everybody imports them from."""

from __future__ import annotations

from ragforge_tui.models import Conversation
from ragforge_tui.requests.base import Request


class FindText(Request[list[int]]):
    """Indexes of the turns that hold a text, ascending; upper and lower case are the same.

    Looked at are messages, what was thought, and the arguments and results of tool calls.
    """

    conversation_id: str
    text: str


class BranchConversation(Request[Conversation]):
    """A new conversation that shares the turns up to and including `turn_index` (0: none) with this one.

    The one it comes from stays as it is. Fails with kind ``not_found`` when there is no such turn.
    """

    conversation_id: str
    turn_index: int


TurnRequest = FindText | BranchConversation
