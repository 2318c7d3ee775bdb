"""An own model client and an own embedding model: ``python -m examples.own_model``."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

from ragforge_tui import ConversationAgent, FunctionEmbedder, FunctionModel

DIMENSION = 16


async def parrot(messages: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Stream an answer word by word, as a client of your own would."""
    question = str(messages[-1]["content"]).splitlines()[-1]  # above it: workspace and memory
    for word in question.split():
        yield f"{word} "


def bags_of_words(texts: list[str]) -> list[list[float]]:
    """Return a vector for each text; a real model would be asked here."""
    vectors = [[0.01] * DIMENSION for _ in texts]
    for vector, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".,?!").encode()) % DIMENSION] += 1.0
    return vectors


async def main() -> None:
    async with ConversationAgent(
        model=FunctionModel(parrot, name="parrot", context_window=16_000),
        embedder=FunctionEmbedder(bags_of_words, name="bags of words", dimension=DIMENSION),
    ) as agent:
        for title, text in (
            ("Auth", "We split authentication into a service and its store."),
            ("Deploys", "The release waits for the migration of the database."),
        ):
            conversation = await agent.create_conversation(title)
            answer = await conversation.send_message(text)
            print(f"{title}: {answer.content}")
            await conversation.memory.settle()  # its vectors are made in the background

        # A conversation without a summary is compared by its turns.
        for similar in await agent.find_similar("authentication service", limit=3, min_score=0.2):
            print(round(similar.score, 2), similar.conversation.title)


if __name__ == "__main__":
    asyncio.run(main())
