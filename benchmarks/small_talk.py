"""How often a message that needs nothing recalls a turn: ``python -m benchmarks.small_talk [--graph neo4j]``.

`data/small-talk.json` holds 90 messages (thanks, go on, are you sure, run the tests), each with the conversation of
`data/` it is said in and the turn it follows; the last three turns count as sent anyway. The rule was chosen on 30
(`tuned`) and corrected after 30 more (`seen`); the last 30 (`unseen`) were written before and looked at after that.
Beside them the conversations' own questions are asked: a floor that lets nothing pass would be easy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from benchmarks.dialogues import read
from benchmarks.recall import KnownQuestions, Score, ask, imported, open_store
from ragforge_tui.llm.embeddings import make_embedder
from ragforge_tui.memory.retrieval import ConversationIndex, Recall
from ragforge_tui.settings.schema import EmbeddingSettings, MemorySettings

DATA = Path(__file__).with_name("data")
SENT = 3
"""Newest turns a request holds in any case."""


async def main(graph: str) -> None:
    """Ask everything, print what was recalled and the last line."""
    messages = json.loads((DATA / "small-talk.json").read_text("utf-8"))
    embedder = make_embedder(EmbeddingSettings())
    known = KnownQuestions(embedder) if embedder else None
    recalled: dict[str, list[bool]] = {"tuned": [], "seen": [], "unseen": []}
    score = Score([500, 2_000])
    async with open_store(graph) as store:
        for name in dict.fromkeys(message["conversation"] for message in messages):
            [dialogue] = read(DATA / f"{name}.json", f"/{name}")
            whole = await imported(store, dialogue, MemorySettings(), known)
            for question in dialogue.questions:
                await ask(whole, dialogue, question, score)
            for message in messages:
                if message["conversation"] == name:
                    text = await said_after(whole, message["after"], message["text"])
                    recalled[message["split"]].append(bool(text))
                    if text:
                        print(f"{message['split']:>8}: {message['text']!r} recalls {text[:80]!r}")
    shares = {split: 100 * sum(flags) / len(flags) for split, flags in recalled.items()}
    for split, flags in recalled.items():
        print(f"{split}: {sum(flags)} of {len(flags)} messages recall a turn")
    figures = " ".join(f"{split}={share:.1f}" for split, share in shares.items())
    print(f"small_talk {figures} questions={score.mean()[len(score.budgets)]:.1f}")


async def said_after(recall: Recall, turn: int, text: str) -> str:
    """Return what is recalled for a message that follows a turn, as if the conversation ended there."""
    whole = recall.index
    recall.index = ConversationIndex()
    for number in range(1, turn + 1):
        moment = whole.timestamp(number)
        assert moment is not None
        recall.index.put(
            number,
            text=whole.turn_text(number),
            timestamp=moment,
            ended=whole.ended(number),
            embedding=whole.vector(number),
        )
    found = await recall.recall(text, exclude=range(turn - SENT + 1, turn + 1), summaries=False)
    recall.index = whole
    return found.text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How often a message that needs nothing recalls a turn.")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    asyncio.run(main(parser.parse_args().graph))
