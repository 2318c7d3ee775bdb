"""One line of a journal: an operation of the store, and its application.

The store's operations are idempotent, so a line may be applied twice. A turn that began while the graph was away has an
index guessed by the engine; the store allocates the real one, and later records of that turn move with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ragforge_tui.shared.records import Conversation, Message, ToolCall, now
from ragforge_tui.shared.sanitize import storable_value

if TYPE_CHECKING:
    from ragforge_tui.graph.repositories import Store

_RECORDS: dict[str, type[Any]] = {
    "create_conversation": Conversation,
    "begin_turn": Message,
    "add_message": Message,
    "finish_message": Message,
    "start_tool_call": ToolCall,
    "finish_tool_call": ToolCall,
}
"""Operations on one record; further arguments are passed on. The names are part of the format of a journal."""

_PLAIN = frozenset({"update_conversation", "supersede", "index_turn", "store_context", "store_persona"})
"""Operations that take only named arguments."""

_TIMES = frozenset({"deleted_at", "updated_at"})


class Line(msgspec.Struct, omit_defaults=True):
    """One operation. `at` is when it was journalled; earlier releases did not note it."""

    op: str
    record: msgspec.Raw = msgspec.Raw(b"null")
    arguments: dict[str, Any] = {}
    at: datetime | None = None


class Named(msgspec.Struct):
    """The conversations that lines are about: those they create, and those that must exist already."""

    created: set[str]
    others: set[str]


def encode_line(op: str, record: Any, arguments: Mapping[str, Any]) -> bytes:
    """Return an operation as a line of a journal.

    Raises:
        ValueError: The store's operation is not one that can be journalled.
    """
    if op not in _RECORDS and op not in _PLAIN:
        raise ValueError(f"the journal does not know {op!r}")
    body = msgspec.json.encode(storable_value(msgspec.to_builtins(record)))
    plain = storable_value(msgspec.to_builtins(dict(arguments)))
    return msgspec.json.encode(Line(op=op, record=msgspec.Raw(body), arguments=plain, at=now())) + b"\n"


def whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines: one without its end was cut short by a crash and never acknowledged."""
    for line in file:
        if line.endswith(b"\n") and line.strip():
            yield line.rstrip(b"\n")


async def apply_line(store: Store, line: Line, turns: dict[tuple[str, int], int]) -> None:
    """Do one operation.

    Args:
        turns: Guessed turn indexes by (conversation, guess), with those the store gave; extended here.

    Raises:
        GraphError: The graph is away, or refuses it.
    """
    arguments = _moved(line.arguments, turns)
    if line.op in _PLAIN:
        for name in _TIMES & arguments.keys():
            arguments[name] = msgspec.convert(arguments[name], datetime | None)
        await _method(store, line.op)(**arguments)
        return
    if line.op not in _RECORDS:
        raise ValueError(f"the journal does not know {line.op!r}")
    record = msgspec.json.decode(line.record, type=_RECORDS[line.op])
    if line.op == "begin_turn":
        guessed = record.turn_index
        stored = await store.messages.begin_turn(record)
        turns[record.conversation_id, guessed] = stored.turn_index
        return
    if isinstance(record, Message):
        record.turn_index = turns.get((record.conversation_id, record.turn_index), record.turn_index)
    await _method(store, line.op)(record, **arguments)


def _method(store: Store, op: str) -> Callable[..., Awaitable[object]]:
    """Return the method of a repository that does an operation of a journal."""
    methods: dict[str, Callable[..., Awaitable[object]]] = {
        "create_conversation": store.conversations.create,
        "update_conversation": store.conversations.update,
        "add_message": store.messages.add,
        "finish_message": store.messages.finish,
        "supersede": store.messages.supersede,
        "store_persona": store.messages.store_persona,
        "start_tool_call": store.tool_calls.start,
        "finish_tool_call": store.tool_calls.finish,
        "store_context": store.contexts.store,
        "index_turn": store.search.index_turn,
    }
    return methods[op]


def is_about(line: Line, conversation_id: str, messages: set[str]) -> bool:
    """Whether a line is about that conversation; `messages` gathers the ids of its messages for those that follow."""
    record = msgspec.json.decode(line.record)
    if isinstance(record, dict):
        if line.op != "create_conversation" and record.get("conversation_id") == conversation_id:
            messages.add(record.get("uuid", ""))
        if record.get("message_id") in messages:
            return True
    return conversation_id in _conversations(line, record) or line.arguments.get("message_uuid") in messages


def named_in(lines: Iterable[bytes]) -> Named:
    """Return the conversations that lines are about; what cannot be read is left out."""
    named = Named(created=set(), others=set())
    for raw in lines:
        try:
            line = msgspec.json.decode(raw, type=Line)
            found = _conversations(line, msgspec.json.decode(line.record))
        except msgspec.MsgspecError:
            continue
        if line.op == "create_conversation":
            named.created |= found
        else:
            named.others |= found
    named.others -= named.created
    return named


def _conversations(line: Line, record: Any) -> set[str]:
    found = {line.arguments.get("conversation_id"), line.arguments.get("uuid")}
    if isinstance(record, dict):
        found.add(record.get("uuid" if line.op == "create_conversation" else "conversation_id"))
    return {uuid for uuid in found if isinstance(uuid, str) and uuid}


def _moved(arguments: dict[str, Any], turns: dict[tuple[str, int], int]) -> dict[str, Any]:
    """The arguments with a guessed turn index replaced by the one the store gave."""
    key = (arguments.get("conversation_id", ""), arguments.get("turn_index", 0))
    return {**arguments, "turn_index": turns[key]} if key in turns else arguments
