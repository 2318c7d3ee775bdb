"""Records for tests, with what a test does not care about filled in."""

from __future__ import annotations

import uuid
from typing import Any

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.records import Conversation, Message, ToolCall, now


def conversation(**fields: Any) -> Conversation:
    """A new conversation."""
    moment = now()
    return Conversation(**{"uuid": str(uuid.uuid4()), "created_at": moment, "updated_at": moment, **fields})


def message(conversation_id: str, **fields: Any) -> Message:
    """A new message, the person's unless said otherwise."""
    return Message(
        **{
            "uuid": str(uuid.uuid4()),
            "conversation_id": conversation_id,
            "role": "user",
            "timestamp": now(),
            **fields,
        }
    )


def call_of(message_id: str, **fields: Any) -> ToolCall:
    """A new tool call of a message."""
    return ToolCall(
        **{
            "uuid": str(uuid.uuid4()),
            "message_id": message_id,
            "tool_name": "read_file",
            "arguments": "{}",
            "timestamp": now(),
            **fields,
        }
    )


async def turn_id(store: Store, conversation_id: str, index: int) -> str:
    """Return the uuid of the message that begins a turn; of a branch, the turn of the conversation it shares."""
    found = await store.graph.one(
        "MATCH (q:Message {conversation_id: $id, turn_index: $turn, position: 0}) RETURN q.uuid AS uuid",
        id=conversation_id,
        turn=index,
    )
    return str(found["uuid"]) if found else "no such turn"


async def add_reply(store: Store, reply: Message) -> Message:
    """Add a message to the turn of its index."""
    return await store.messages.add(reply, await turn_id(store, reply.conversation_id, reply.turn_index))


async def finish_reply(store: Store, reply: Message) -> None:
    """Store the final state of a message of the turn of its index."""
    await store.messages.finish(reply, await turn_id(store, reply.conversation_id, reply.turn_index))


async def supersede(store: Store, conversation_id: str, index: int, from_position: int = 1) -> None:
    """Mark the answer of the turn of this index as superseded."""
    turn = await turn_id(store, conversation_id, index)
    await store.messages.supersede(conversation_id, turn, from_position)


async def one_turn(store: Store, conversation_id: str, text: str, answer: str = "") -> Message:
    """Store a turn: a question, and an answer."""
    asked = await store.messages.begin_turn(message(conversation_id, content=text))
    await store.messages.add(
        message(conversation_id, role="assistant", content=answer or f"answer to {text}"), asked.uuid
    )
    return asked


async def rows_of(graph: Graph, cypher: str) -> int:
    """How many rows a query has."""
    return len(await graph.query_readonly(cypher))
