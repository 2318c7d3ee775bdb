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


async def one_turn(store: Store, conversation_id: str, text: str, answer: str = "") -> Message:
    """Store a turn: a question, and an answer."""
    asked = await store.messages.begin_turn(message(conversation_id, content=text))
    await store.messages.add(
        message(conversation_id, role="assistant", turn_index=asked.turn_index, content=answer or f"answer to {text}")
    )
    return asked


async def rows_of(graph: Graph, cypher: str) -> int:
    """How many rows a query has."""
    return len(await graph.query_readonly(cypher))
