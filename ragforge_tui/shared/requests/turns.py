"""Requests about single turns of a conversation; other modules import them from `wire`."""

from __future__ import annotations

from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.base import Request


class FindText(Request[list[int]]):
    """Indexes of the turns that contain a text, ascending; the search ignores case.

    It covers messages, reasoning, and the arguments and results of tool calls.
    """

    conversation_id: str
    text: str


class BranchConversation(Request[Conversation]):
    """Create a conversation that shares the turns up to and including `turn_index` (0 for none) with its parent.

    The parent stays unchanged. Fails with kind ``not_found`` if there is no such turn.
    """

    conversation_id: str
    turn_index: int


TurnRequest = FindText | BranchConversation
