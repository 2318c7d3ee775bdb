"""The requests about calls of tools: a part of `protocol`, which everybody imports them from."""

from __future__ import annotations

import msgspec

from ragforge_tui.models import ToolCall
from ragforge_tui.requests.base import Request


class CallEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a list.

    Attributes:
        position: Of the message that made it, within its turn.
        call: Its arguments are cut, its result is without text: `FetchCall` gives the whole.
    """

    turn_index: int
    position: int
    call: ToolCall


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of whole turns, in order.

    Attributes:
        first_turn: The turns from this one on were looked at; 1: there are no earlier calls.
    """

    calls: list[CallEntry]
    first_turn: int


class ListCalls(Request[CallPage]):
    """The calls a stored conversation made before a turn, newest turns first looked at.

    Attributes:
        before: Only turns below this index; 0: up to the newest.
        limit: Enough calls; a page ends with the turn that reaches it, or where many turns were looked at.
    """

    conversation_id: str
    before: int = 0
    limit: int = 200


class FetchCall(Request[ToolCall]):
    """One call with all it was given and gave back. Fails with kind ``not_found`` when the turn has no such call."""

    conversation_id: str
    turn_index: int
    call_id: str


CallRequest = ListCalls | FetchCall
