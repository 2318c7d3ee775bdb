"""Conversations of many turns for tests, brought in at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragforge_tui.graph import Store
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Turn
from tests.support.records import conversation, message


def turn_of(conversation_id: str, index: int, asked: str, answer: str = "", **fields: Any) -> Turn:
    """A turn: a question, and an answer unless it is empty."""
    messages = [message(conversation_id, turn_index=index, content=asked, char_count=len(asked))]
    if answer:
        messages.append(
            message(
                conversation_id,
                **{
                    "turn_index": index,
                    "position": 1,
                    "role": "assistant",
                    "content": answer,
                    "char_count": len(answer),
                    **fields,
                },
            )
        )
    return Turn(turn_index=index, messages=messages)


async def imported(store: Store, exchanges: Sequence[tuple[str, str]], **fields: Any) -> str:
    """A conversation of these questions and answers; its id."""
    made = conversation(**fields)
    turns = [turn_of(made.uuid, index, *exchange) for index, exchange in enumerate(exchanges, 1)]
    made.next_turn = len(turns) + 1
    made.message_count = sum(len(turn.messages) for turn in turns)
    made.total_chars = sum(len(m.content) for turn in turns for m in turn.messages)
    await store.transfer.import_(ConversationExport(conversation=made, turns=turns))
    return made.uuid


def exchanges(count: int) -> list[tuple[str, str]]:
    """That many different questions with their answers."""
    return [
        (
            f"How does part {n} of the retry policy work?",
            f"Part {n} waits {n} seconds before it asks the server again. It is set in client{n}.py.",
        )
        for n in range(1, count + 1)
    ]
