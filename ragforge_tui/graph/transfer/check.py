"""Checks of an exported file before any of it is imported.

A file may come from anywhere, so all of it is checked before the first request to the graph: a refused file leaves
nothing behind. Ids become file names and turn indexes become loops, so both must have the form this program writes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import msgspec

from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Message, Summary, ToolCall

_UUID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_LEVEL = 64
"""Each level of summaries covers at least two of the level below, so 64 are more than turns can be counted for."""
_LARGEST = 2**63
"""Integers of the graph have 64 bits."""
_SHOWN_CHARS = 60


def check_export(e: ConversationExport) -> None:
    """Check that all parts of an export belong together and have the form this program writes.

    Raises:
        GraphError: An id is no UUID, a turn is out of order, or a record belongs to something the file does not hold.
    """
    for what, uuid in _ids(e):
        if not _UUID.fullmatch(uuid):
            raise bad_import(f"the id of a {what} is no UUID: {uuid[:_SHOWN_CHARS]!r}")
    for record in _records(e):
        for name in record.__struct_fields__:
            value = getattr(record, name)
            if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
                raise bad_import(f"{name} of a {type(record).__name__} is too large")
    _check_turns(e)
    _check_branch(e)
    _check_memory(e)


def bad_import(why: str) -> GraphError:
    """Return the error of a file that cannot be imported."""
    return GraphError(
        f"This file cannot be imported: {why}.",
        kept="Nothing of it was stored.",
        todo="Export the conversation again with this program.",
        kind="bad_import",
    )


def _messages(e: ConversationExport) -> Iterator[Message]:
    for turn in e.turns:
        yield from turn.messages


def _calls(e: ConversationExport) -> Iterator[ToolCall]:
    for message in _messages(e):
        yield from message.tool_calls


def _ids(e: ConversationExport) -> Iterator[tuple[str, str]]:
    """Every id of the file, with what it is the id of."""
    yield "conversation", e.conversation.uuid
    if e.conversation.branch_of is not None:
        yield "parent conversation", e.conversation.branch_of
    for message in _messages(e):
        yield "message", message.uuid
        yield "conversation", message.conversation_id
    for call in _calls(e):
        yield "tool call", call.uuid
        if call.result is not None:
            yield "tool result", call.result.uuid
    for context in e.contexts:
        yield "context", context.uuid
    for spoken in e.spoken:
        yield "persona", spoken.persona
    memory = e.memory
    for summary in memory.summaries:
        yield "summary", summary.uuid
        yield "conversation", summary.conversation_id
        for below in summary.parent_summaries:
            yield "summary", below
        if summary.parent:
            yield "summary", summary.parent
    for topic in memory.topics:
        yield "topic", topic.uuid
    for edge in memory.topic_edges:
        yield "summary" if edge.kind == "has" else "topic", edge.source
        yield "topic", edge.target
        if edge.conversation_id:
            yield "conversation", edge.conversation_id
    for persona in memory.personas:
        yield "persona", persona.uuid
    for text in memory.system_texts:
        yield "system text", text.uuid


def _records(e: ConversationExport) -> Iterator[msgspec.Struct]:
    yield e.conversation
    for message in _messages(e):
        yield message
        if message.usage is not None:
            yield message.usage
    for call in _calls(e):
        yield call
        if call.result is not None:
            yield call.result
    yield from e.contexts
    yield from e.memory.summaries


def _check_turns(e: ConversationExport) -> None:
    """Turns count from 1 without a gap, so that no loop over them is longer than the file."""
    for expected, turn in enumerate(e.turns, start=1):
        if turn.turn_index != expected:
            raise bad_import(f"turn {turn.turn_index} is where turn {expected} belongs")
        if not turn.messages:
            raise bad_import(f"turn {expected} has no message")
        if len({m.conversation_id for m in turn.messages}) != 1:
            raise bad_import(f"turn {expected} belongs to several conversations")
        positions = [m.position for m in turn.messages]
        if positions[0] != 0 or any(b <= a for a, b in itertools.pairwise(positions)):
            raise bad_import(f"the messages of turn {expected} are not in order")
        for message in turn.messages:
            if message.turn_index != expected:
                raise bad_import(f"a message of turn {expected} says that it is of turn {message.turn_index}")
            for call in message.tool_calls:
                if call.message_id != message.uuid:
                    raise bad_import(f"a tool call of turn {expected} names another message")
                if call.result is not None and call.result.tool_call_id != call.uuid:
                    raise bad_import(f"a tool result of turn {expected} names another call")
    _once("message", (m.uuid for m in _messages(e)))
    _once("tool call", (c.uuid for c in _calls(e)))
    _once("tool result", (c.result.uuid for c in _calls(e) if c.result is not None))


def _once(what: str, uuids: Iterable[str]) -> None:
    seen: set[str] = set()
    for uuid in uuids:
        if uuid in seen:
            raise bad_import(f"the {what} {uuid} is in it twice")
        seen.add(uuid)


def _check_branch(e: ConversationExport) -> None:
    """The turns a branch shares with its parents come first; all others are its own."""
    own, shared = e.conversation.uuid, e.conversation.branch_turn or 0
    if e.conversation.branch_of is None and shared:
        raise bad_import("it names a turn it left its parent at, but no parent")
    if e.conversation.branch_of == own:
        raise bad_import("its conversation is a branch of itself")
    if not 0 <= shared <= len(e.turns):
        raise bad_import(f"it branches after turn {shared}, but holds {len(e.turns)}")
    owners = [turn.messages[0].conversation_id for turn in e.turns]
    for index, owner in enumerate(owners, start=1):
        if (owner == own) != (index > shared):
            raise bad_import(f"turn {index} belongs to another conversation")
        if index > 1 and owner != owners[index - 2] and owner in owners[: index - 2]:
            raise bad_import(f"turn {index} returns to a conversation that was left before")


def _check_memory(e: ConversationExport) -> None:
    """Check that summaries, contexts and personas refer to turns and messages of the file."""
    held = {m.uuid for m in _messages(e)}
    conversations = {m.conversation_id for m in _messages(e)} | {e.conversation.uuid}
    if e.conversation.branch_of is not None:
        conversations.add(e.conversation.branch_of)
    for summary in e.memory.summaries:
        _check_summary(summary, last=len(e.turns), conversations=conversations)
    _once("summary", (summary.uuid for summary in e.memory.summaries))
    for context in e.contexts:
        if not held.issuperset(context.messages):
            raise bad_import(f"a context of turn {context.turn_index} names a message that is not in it")
    for spoken in e.spoken:
        if spoken.message not in held:
            raise bad_import("a persona speaks a message that is not in it")


def _check_summary(summary: Summary, *, last: int, conversations: set[str]) -> None:
    if not 1 <= summary.level <= MAX_LEVEL:
        raise bad_import(f"a summary has level {summary.level}")
    if not 1 <= summary.start_turn_index <= summary.end_turn_index <= last:
        raise bad_import(
            f"a summary covers turns {summary.start_turn_index} to {summary.end_turn_index}, but it holds {last}"
        )
    if summary.conversation_id not in conversations:
        raise bad_import("a summary belongs to another conversation")
