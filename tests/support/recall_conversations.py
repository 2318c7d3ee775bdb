"""Conversations to recall from: as an import leaves them, and talked in as the chat does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval import Questions, Recall
from ragforge_tui.settings.schema import MemorySettings, RecallSettings
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Conversation, Message, Turn
from tests.support.fake_embedder import FakeEmbedder
from tests.support.records import conversation, message, one_turn

MORNING = datetime(2024, 5, 6, 9, tzinfo=UTC)
TALK = (
    ("Which harbour did we choose?", "The eastern harbour, for its depth."),
    ("And the boat?", "A blue sloop."),
    ("Write down the recipe of the onion soup.", "Onions, butter, broth."),
    ("What does the compiler warn about?", "An unused variable in parser.py."),
    ("Who teaches violin?", "Ida Lindqvist, on Tuesdays."),
    ("Good night.", "Good night!"),
)


def recall_of(
    store: Store, c: Conversation, embedder: FakeEmbedder | None = None, *, pace: Pace | None = None, **settings: Any
) -> Recall:
    async def ready() -> Store:
        return store

    chosen = MemorySettings(recall=RecallSettings(**settings))
    questions = Questions(ready, embedder, chosen.recall, c.workspace)
    return Recall(questions, chosen, conversation_id=c.uuid, workspace=c.workspace, pace=pace)


async def talked(store: Store, talk: Sequence[tuple[str, str]] = TALK, **fields: Any) -> Conversation:
    """A conversation as an import leaves it, without keys and vectors; from the fourth turn on a second sitting."""
    c = conversation(**{"title": "Harbours", "workspace": "/w", "next_turn": len(talk) + 1, **fields})
    turns = []
    for turn, (said, answered) in enumerate(talk, 1):
        at = MORNING + timedelta(minutes=turn if turn < 4 else 90 + turn)
        turns.append(
            Turn(
                turn_index=turn,
                messages=[
                    message(c.uuid, turn_index=turn, content=said, timestamp=at),
                    message(c.uuid, turn_index=turn, position=1, role="assistant", content=answered, timestamp=at),
                ],
            )
        )
    return (await store.transfer.import_(ConversationExport(conversation=c, turns=turns))).conversation


async def hold(store: Store, recall: Recall, c: Conversation, said: str, answered: str) -> Message:
    """A turn as the chat holds it, and what follows in the background."""
    asked = await one_turn(store, c.uuid, said, answered)
    [turn] = await store.turns.between(c.uuid, start=asked.turn_index, end=asked.turn_index + 1)
    await recall.turn_stored(turn)
    await recall.embed()
    return asked


async def ready(recall: Recall) -> None:
    """Do all that the chat does in the background when a conversation is opened."""
    await recall.load()
    await recall.store_missing()
    await recall.embed()


def said(found: Any) -> list[int]:
    return [turn.turn_index for turn in found.turns]


async def first_messages(store: Store, c: Conversation) -> list[dict[str, Any]]:
    return await store.graph.query_readonly(
        f"MATCH (m:Message {{conversation_id: '{c.uuid}', position: 0}}) RETURN m.turn_index AS turn, "
        "m.lex_key AS key, m.turn_text AS text, m.sitting AS sitting, m.embed_model AS model, "
        "m.language AS language ORDER BY turn"
    )
