"""Requests about tool calls; other modules import them from `wire`."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.base import Request


class CallEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a list.

    Attributes:
        position: Position within the turn of the message that made the call.
        call: The call with truncated arguments and without the text of its result; `FetchCall` returns all of it.
    """

    turn_index: int
    position: int
    call: ToolCall


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of whole turns, in order.

    Attributes:
        first_turn: First turn that was searched; 1 means that there are no earlier calls.
    """

    calls: list[CallEntry]
    first_turn: int


class ListCalls(Request[CallPage]):
    """Tool calls of a stored conversation before a turn, searched from the newest turn back.

    Attributes:
        before: Only turns below this index; 0 for all turns.
        limit: Number of calls after which the page ends, with a whole turn. It also ends after many turns.
    """

    conversation_id: str
    before: int = 0
    limit: int = 200


class FetchCall(Request[ToolCall]):
    """One call with its full arguments and result. Fails with kind ``not_found`` if the turn has no such call."""

    conversation_id: str
    turn_index: int
    call_id: str


CallRequest = ListCalls | FetchCall
