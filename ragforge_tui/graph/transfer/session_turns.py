"""Turns of another agent's session against those in the graph: new, changed, or held by another conversation.

A turn is known by the id of its first message, which is the same in every copy of it. So a turn is stored once, and one
that has grown since is stored again. A session that was forked from another one is linked to it as a branch with its
own turns alone: what it copied is in the conversation that it came from.
"""

from __future__ import annotations

import hashlib
import uuid

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import TITLE_CHARS, Conversation, Message, Turn

_NAMESPACE = uuid.UUID("7d3f6f0e-2b6c-5f0b-8f8a-0f1c3a5e9d42")


class SessionTurns(msgspec.Struct, frozen=True):
    """Turns of a session with their places in the graph.

    Attributes:
        conversation: The session's conversation, a branch if another one holds its first turns.
        created: Whether the conversation is new.
        fresh: Turns that are not in the graph.
        changed: Turns that are there in an earlier form.
    """

    conversation: Conversation
    created: bool
    fresh: list[Turn]
    changed: list[Turn]


class _Held(msgspec.Struct, frozen=True):
    """Place of a turn in the graph, with the digest of its form there."""

    conversation_id: str
    turn: int
    digest: str
    deleted: bool


def turn_digest(turn: Turn) -> str:
    """Return a digest of a turn's content, wherever it is stored."""
    messages = [msgspec.structs.replace(m, uuid="", conversation_id="", turn_index=0) for m in turn.messages]
    calls = [[(c.tool_name, c.arguments, c.result and c.result.result) for c in m.tool_calls] for m in messages]
    plain = [msgspec.structs.replace(message, tool_calls=[]) for message in messages]
    return hashlib.sha256(msgspec.json.encode((plain, calls))).hexdigest()


async def session_turns(graph: Graph, e: ConversationExport) -> SessionTurns:
    """Compare a session with the graph."""
    own = e.conversation.uuid
    copies = [_as_own(turn, own) for turn in e.turns]
    held = await _held(graph, [turn.messages[0].uuid for turn in (*e.turns, *copies)])
    row = await graph.one(
        "MATCH (c:Conversation {uuid: $uuid}) OPTIONAL MATCH (m:Message {conversation_id: $uuid}) "
        "RETURN max(m.turn_index) AS last, c.importing IS NOT NULL AS interrupted",
        uuid=own,
    )
    created, interrupted = row is None, row is not None and row["interrupted"]
    first: Turn | None = None
    fresh: list[Turn] = []
    changed: list[Turn] = []
    parent = ""
    for turn, copy in zip(e.turns, copies, strict=True):
        known, digest = held.get(turn.messages[0].uuid), turn_digest(turn)
        if known is not None and known.conversation_id != own:
            copied = held.get(copy.messages[0].uuid)
            if copied is None and not known.deleted and (known.digest == digest or not created):
                parent = parent if first else known.conversation_id
                continue
            turn, known = copy, copied
        first = first or turn
        if known is None:
            fresh.append(turn)
        elif known.digest != digest or interrupted:
            _place(turn, own, known.turn)
            changed.append(turn)
    conversation = e.conversation
    if parent:
        title = _title_of(conversation.title, e.turns[0], first)
        conversation = msgspec.structs.replace(conversation, title=title)
    if parent and created:
        conversation = msgspec.structs.replace(conversation, branch_of=parent, branch_turn=0)
    for index, turn in enumerate(fresh, start=1 + ((row and row["last"]) or 0)):
        _place(turn, own, index)
    return SessionTurns(conversation=conversation, created=created, fresh=fresh, changed=changed)


def _title_of(title: str, first: Turn, own: Turn | None) -> str:
    """Return the title of a branch: the agent's own, or else its first own words rather than those of its parent."""
    copied = " ".join(first.messages[0].content.split()).startswith(title.rstrip("…"))
    return " ".join(own.messages[0].content.split())[:TITLE_CHARS] if own and copied else title


async def _held(graph: Graph, uuids: list[str]) -> dict[str, _Held]:
    rows = await graph.rows(
        "UNWIND $ids AS id MATCH (m:Message {uuid: id}) MATCH (c:Conversation {uuid: m.conversation_id}) "
        "RETURN id, c.uuid AS conversation_id, m.turn_index AS turn, coalesce(m.import_digest, '') AS digest, "
        "c.status = 'deleted' AS deleted",
        ids=uuids,
    )
    return {row.pop("id"): msgspec.convert(row, _Held) for row in map(dict, rows)}


def _place(turn: Turn, conversation: str, index: int) -> None:
    turn.turn_index = index
    for message in turn.messages:
        message.turn_index, message.conversation_id = index, conversation


def _as_own(turn: Turn, conversation: str) -> Turn:
    """Return a turn with ids of this conversation alone, for a copy that differs from its original."""
    return Turn(turn_index=turn.turn_index, messages=[_own_message(m, conversation) for m in turn.messages])


def _own_message(message: Message, conversation: str) -> Message:
    def own(id: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{conversation}\x1f{id}"))

    calls = [
        msgspec.structs.replace(call, uuid=own(call.uuid), message_id=own(message.uuid)) for call in message.tool_calls
    ]
    for call in calls:
        if call.result is not None:
            call.result = msgspec.structs.replace(call.result, uuid=own(call.result.uuid), tool_call_id=call.uuid)
    return msgspec.structs.replace(message, uuid=own(message.uuid), tool_calls=calls)
