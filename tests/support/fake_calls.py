"""Answers of the fake engine about calls of tools, from the turns it keeps."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ToolCall, Turn
from ragforge_tui.shared.requests.work import CallEntry, CallPage, FetchCall
from tests.support.request_subjects import CallRequest


def answer(request: CallRequest, turns: Sequence[Turn]) -> CallPage | ToolCall:
    """As the engine would: a list without results, or one call whole."""
    entries = [
        CallEntry(turn_index=turn.turn_index, position=message.position, call=call)
        for turn in turns
        for message in turn.messages
        for call in message.tool_calls
    ]
    if isinstance(request, FetchCall):
        for entry in entries:
            if entry.call.uuid == request.call_id:
                return entry.call
        raise NotFoundError(f"Turn {request.turn_index} has no such call.")
    found = [entry for entry in entries if not request.before or entry.turn_index < request.before]
    first = found[-request.limit].turn_index if len(found) > request.limit else 1
    return CallPage(calls=[_listed(entry) for entry in found if entry.turn_index >= first], first_turn=first)


def _listed(entry: CallEntry) -> CallEntry:
    result = entry.call.result
    bare = msgspec.structs.replace(result, result="") if result is not None else None
    return msgspec.structs.replace(entry, call=msgspec.structs.replace(entry.call, result=bare, files=[]))
