"""Answers of the fake engine about calls of tools, from the turns it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.work import CallEntry, CallPage, FetchCall, ListCalls
from ragforge_tui.shared.tool_calls import command_end
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine


class CallShelf:
    """Answers the requests about calls."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    @answers(FetchCall)
    def _fetch_call(self, request: FetchCall) -> ToolCall:
        for entry in self._entries(request.conversation_id):
            if entry.call.uuid == request.call_id:
                return entry.call
        raise NotFoundError(f"Turn {request.turn_index} has no such call.")

    @answers(ListCalls)
    def _list_calls(self, request: ListCalls) -> CallPage:
        entries = self._entries(request.conversation_id)
        found = [entry for entry in entries if not request.before or entry.turn_index < request.before]
        first = found[-request.limit].turn_index if len(found) > request.limit else 1
        return CallPage(calls=[_listed(entry) for entry in found if entry.turn_index >= first], first_turn=first)

    def _entries(self, uuid: str) -> list[CallEntry]:
        return [
            CallEntry(turn_index=turn.turn_index, position=message.position, call=call)
            for turn in self._engine.turns[uuid]
            for message in turn.messages
            for call in message.tool_calls
        ]


def _listed(entry: CallEntry) -> CallEntry:
    result = entry.call.result
    bare = None
    if result is not None:
        end = "" if result.success else command_end(result.result)
        bare = msgspec.structs.replace(result, result=end)
    return msgspec.structs.replace(entry, call=msgspec.structs.replace(entry.call, result=bare, files=[]))
