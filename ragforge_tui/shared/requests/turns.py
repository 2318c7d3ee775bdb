"""Requests about an open conversation and its turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ragforge_tui.shared.records import Conversation, Turn
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.wire import Empty, Request


class TurnPage(msgspec.Struct, kw_only=True, frozen=True):
    """Stored turns in ascending order; `first` is the lowest existing turn index, `last` the highest."""

    turns: list[Turn]
    first: int
    last: int


class ConversationView(msgspec.Struct, kw_only=True, frozen=True):
    """Conversation that is open for reading and writing.

    Attributes:
        page: Its newest turns.
        active_turn: Index of the turn being answered now, here or by another process; None if idle.
        interrupted_turn: Index of the last turn if it ended without an answer, so that a retry is offered.
        mode: What the agent may do in it without approval.
    """

    conversation: Conversation
    page: TurnPage
    active_turn: int | None = None
    interrupted_turn: int | None = None
    mode: Mode = "ask"


class CreateConversation(Request[ConversationView]):
    title: str = ""
    tags: list[str] = msgspec.field(default_factory=list)
    persona: str = ""
    private: bool = False


class OpenConversation(Request[ConversationView]):
    """Open a conversation by id or unique prefix; with neither, the newest one of this workspace.

    Fails with kind ``not_found`` if no conversation matches, or more than one.
    """

    ref: str = ""
    turns: int = 12
    """Number of newest turns to return: one screenful, so that a long conversation opens as fast as a short one."""


class BranchConversation(Request[Conversation]):
    """Create a conversation that shares the turns up to and including `turn_index` (0 for none) with its parent.

    The parent stays unchanged. Fails with kind ``not_found`` if there is no such turn.
    """

    conversation_id: str
    turn_index: int


class FetchTurns(Request[TurnPage]):
    """Fetch the turns with index in [start, end), both counted from 1."""

    conversation_id: str
    start: int
    end: int


class FindText(Request[list[int]]):
    """Indexes of the turns that contain a text, ascending; the search ignores case.

    It covers messages, reasoning, and the arguments and results of tool calls.
    """

    conversation_id: str
    text: str


class SendAccepted(msgspec.Struct, kw_only=True, frozen=True):
    """Confirmation that a message is stored in graph or journal, or queued behind the current turn (`turn_index` 0)."""

    turn_index: int
    queued: bool = False


class TurnLimits(msgspec.Struct, kw_only=True, frozen=True):
    """Limits of one turn that only its caller knows.

    Attributes:
        max_requests: Requests to the model, the last of which asks for the answer; 0: as the settings say.
        output_schema: JSON Schema of the last reply; None for none.
    """

    max_requests: int = 0
    output_schema: dict[str, Any] | bool | None = None


class SendMessage(Request[SendAccepted]):
    """Send a user's message. The caller generates `message_id`, which makes the request idempotent.

    With `steer` a running turn gets it before its next request to the model, else it starts the next turn.

    Attributes:
        materials: Texts in it that the user did not type, such as pastes: they are never the user's word.
    """

    conversation_id: str
    message_id: str
    text: str
    materials: Sequence[str] = ()
    limits: TurnLimits = TurnLimits()
    steer: bool = False


class CancelTurn(Request[Empty]):
    """Stop the current turn and keep the text received. Stops a turn of another process too, through the graph."""

    conversation_id: str


class Unqueue(Request[bool]):
    """Drop a message queued behind the current turn; false if it is no longer queued."""

    conversation_id: str
    message_id: str


class RetryTurn(Request[SendAccepted]):
    """Request another answer for the last turn, which supersedes the earlier attempt."""

    conversation_id: str
