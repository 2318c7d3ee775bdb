"""Conversations of any length, made up: for measuring what grows with them.

Used by `benchmarks.context` and `benchmarks.large_graph`. Words are drawn with the frequencies of real text (a few
very often, most rarely), so that postings have the lengths they have in life; the same seed gives the same turns.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from ragforge_tui.llm.embeddings import LOCAL_MODEL
from ragforge_tui.memory.retrieval import ConversationIndex
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Conversation, Message, Turn

WORDS = 20_000
SMALL_WORDS = 150
"""The most frequent words: in life those that say nothing, which recall leaves out of a question."""
WORDS_PER_MESSAGE = 45
TURNS_PER_SITTING = 12
BEGAN = datetime(2024, 1, 8, 9, tzinfo=UTC)
DIMENSION = 512

Vector = npt.NDArray[np.float32]


class Text:
    """Sentences of made-up words."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os")]
        self._words = ["".join(self._random.choice(syllables, 3)) for _ in range(WORDS)]
        weights = 1 / np.arange(1, WORDS + 1)
        self._weights = weights / weights.sum()
        weights[:SMALL_WORDS] = 0
        self._telling = weights / weights.sum()

    def message(self, words: int = WORDS_PER_MESSAGE) -> str:
        """A text of so many words."""
        return self._drawn(words, self._weights)

    def question(self, words: int = 8) -> str:
        """A text of so many words that are not among the most frequent: what is left of a question in life."""
        return self._drawn(words, self._telling)

    def vector(self) -> Vector:
        """A unit vector."""
        drawn = self._random.standard_normal(DIMENSION).astype(np.float32)
        unit: Vector = drawn / np.linalg.norm(drawn)
        return unit

    def _drawn(self, words: int, weights: npt.NDArray[np.float64]) -> str:
        return " ".join(self._words[n] for n in self._random.choice(WORDS, words, p=weights))


class WordVectors:
    """An embedder that costs nothing: the mean of a direction for each word, the same for a word in every process.

    It has the name of the local model, so that a graph with its vectors is searched by the program as any other.
    """

    name = LOCAL_MODEL
    dimension = DIMENSION

    def __init__(self) -> None:
        self._words: dict[str, Vector] = {}

    async def embed(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`."""
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> Vector:
        """Return the unit vector of a text, zeros for one without words."""
        total = np.sum([self._direction(word) for word in text.split()], axis=0, dtype=np.float32)
        length = float(np.linalg.norm(total))
        unit: Vector = (total / length if length else np.zeros(DIMENSION)).astype(np.float32)
        return unit

    def _direction(self, word: str) -> Vector:
        known = self._words.get(word)
        if known is None:
            seed = zlib.crc32(word.encode())
            known = self._words[word] = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        return known


def moment(turn: int) -> datetime:
    """When a turn begins: a dozen a day, two minutes apart."""
    return BEGAN + timedelta(days=turn // TURNS_PER_SITTING, minutes=2 * (turn % TURNS_PER_SITTING))


def fill(index: ConversationIndex, turns: int, text: Text) -> None:
    """Put turns with vectors into an index."""
    for turn in range(index.last + 1, turns + 1):
        said = f"> {text.message()}\n{text.message()}"
        index.put(turn, text=said, timestamp=moment(turn), embedding=text.vector())


def conversation(turns: int, text: Text, workspace: str) -> ConversationExport:
    """A conversation to import."""
    uid = str(uuid.uuid4())
    made = [
        Turn(
            turn_index=turn,
            messages=[
                Message(
                    uuid=str(uuid.uuid4()),
                    conversation_id=uid,
                    turn_index=turn,
                    position=position,
                    role="user" if position == 0 else "assistant",
                    content=said,
                    char_count=len(said),
                    timestamp=moment(turn) + position * timedelta(seconds=20),
                )
                for position, said in enumerate((text.message(), text.message()))
            ],
        )
        for turn in range(1, turns + 1)
    ]
    record = Conversation(
        uuid=uid,
        title=f"{turns} turns",
        created_at=moment(1),
        updated_at=moment(turns),
        message_count=2 * turns,
        next_turn=turns + 1,
        workspace=workspace,
    )
    return ConversationExport(conversation=record, turns=made)
