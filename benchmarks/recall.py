"""How much of what answers a question is recalled: ``python -m benchmarks.recall --data FILE [--graph neo4j]``.

Imports every conversation of a file in LoCoMo's format (see `dialogues`) with its dates, lets recall index it as it
does any imported conversation, and asks its questions. No language model takes part, unless summaries are asked for
that a model writes: with ``--summaries model`` by the one that is configured for the chat, or named by ``--model``.
With ``--at-once N`` each message asks N of the questions; the category of its line is N then.
Printed are the share of evidence utterances whose text stands in what is recalled within 500, 1 000 and 2 000 tokens,
labels and headings counted, the share of evidence turns among the first five, how often the first recalled turn is one
of them (hit@1), the mean reciprocal rank of the first that is (MRR), and how long a question takes; beside them, from
the same index and packed by the same rules, three baselines: one vector per turn, full text (BM25) alone, and both by
reciprocal rank fusion. Times leave the embedding of the question out; it stands in a line of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from benchmarks.dialogues import Dialogue, Question, read
from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server
from ragforge_tui.llm import ChatModel, choose_model, make_model
from ragforge_tui.llm.embeddings import Embedder, make_embedder
from ragforge_tui.memory.retrieval import Candidate, ConversationIndex, Questions, Recall
from ragforge_tui.memory.retrieval.packing import pack
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import EmbeddingSettings, MemorySettings, Paths, SummarizationSettings
from ragforge_tui.shared.records import EXTRACTIVE

SMALLER = (500, 1_000)
FIRST = 5
RRF = 60
Ranking = Callable[[ConversationIndex, str, "npt.NDArray[np.float32] | None"], list[tuple[int, float]]]


class KnownQuestions:
    """An embedder that has made the questions' vectors before, so that what is timed is recall alone."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        self._known: dict[str, npt.NDArray[np.float32]] = {}
        self.times: list[float] = []

    async def learn(self, texts: Sequence[str]) -> None:
        """Make vectors to be given out later."""
        for text in texts:
            start = time.perf_counter()
            self._known[text] = (await self._embedder.embed([text]))[0]
            self.times.append((time.perf_counter() - start) * 1000)

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """See `Embedder`."""
        if len(texts) == 1 and texts[0] in self._known:
            return self._known[texts[0]][None, :]
        return await self._embedder.embed(texts)


class Score:
    """Shares of evidence among the first turns and by budget, then hit@1 and MRR by budget; a row for each question."""

    def __init__(self, budgets: Sequence[int]) -> None:
        self.budgets = budgets
        self.rows: list[tuple[str, int, list[float]]] = []

    def add(
        self, dialogue: Dialogue, question: Question, first: Sequence[int], packed: Sequence[Sequence[Candidate]]
    ) -> None:
        """Count what of a question's evidence is among the first turns and in each of the packed texts."""
        turns = {dialogue.turn_of[one] for one in question.evidence}
        shares = [len(turns.intersection(first)) / len(turns)]
        for recalled in packed:
            texts = {turn.turn_index: _flat(turn.text) for turn in recalled if turn.own}
            found = [
                one for one in question.evidence if _flat(dialogue.text_of[one]) in texts.get(dialogue.turn_of[one], "")
            ]
            shares.append(len(found) / len(question.evidence))
        ranks = [_rank(turns, recalled) for recalled in packed]
        shares += [float(rank == 1) for rank in ranks]
        shares += [1 / rank if rank else 0.0 for rank in ranks]
        self.rows.append((dialogue.name, question.category, shares))

    def mean(self, name: str = "", category: int | None = None) -> list[float]:
        """Percent: among the first turns, then by budget; of one conversation or category when given."""
        rows = [r for n, c, r in self.rows if (not name or n == name) and (category is None or c == category)]
        return [100 * statistics.fmean(column) for column in zip(*rows, strict=True)]


async def main(
    data: Path,
    graph: str,
    budget: int,
    *,
    embeddings: bool,
    others: bool,
    summaries: bool,
    writer: ChatModel | None = None,
    at_once: int = 1,
) -> None:
    """Measure, print the tables and the last line; summaries are extracted when there is no `writer`."""
    budgets = [*(size for size in SMALLER if size < budget), budget]
    settings = MemorySettings(embeddings=EmbeddingSettings(enabled=embeddings))
    embedder = make_embedder(settings.embeddings)
    known = KnownQuestions(embedder) if embedder else None
    dialogues = read(data, "/benchmark")
    if at_once > 1:
        dialogues = [msgspec.structs.replace(one, questions=joined(one.questions, at_once)) for one in dialogues]
    if others:
        one = dialogues[0].export.conversation.workspace
        for dialogue in dialogues:
            dialogue.export.conversation.workspace = one
    recipe = Score(budgets)
    baselines = {name: Score(budgets) for name in RANKINGS}
    times: list[float] = []
    async with open_store(graph) as store:
        try:
            recalls = [await imported(store, dialogue, settings, known) for dialogue in dialogues]
            for dialogue, recall in zip(dialogues, recalls, strict=True):
                if summaries:
                    await summarised(store, recall, dialogue.export.conversation.uuid, writer)
                if known:
                    await known.learn([question.text for question in dialogue.questions])
                for question in dialogue.questions:
                    times.append(await ask(recall, dialogue, question, recipe))
                    for name, ranking in RANKINGS.items():
                        vector = (await known.embed([question.text]))[0] if known else None
                        ask_baseline(recall.index, ranking, dialogue, question, vector, baselines[name])
        finally:
            for dialogue in dialogues:
                await store.purges.purge(dialogue.export.conversation.uuid)
    report(recipe, baselines, times, known)


def joined(questions: Sequence[Question], count: int) -> tuple[Question, ...]:
    """Messages of `count` questions each, far from each other in their conversation, with the evidence of all."""
    size = len(questions) // count
    asked = [[questions[place + part * size] for part in range(count)] for place in range(size)]
    return tuple(
        Question(
            " ".join(one.text for one in several),
            tuple(dict.fromkeys(evidence for one in several for evidence in one.evidence)),
            count,
        )
        for several in asked
    )


async def imported(
    store: Store, dialogue: Dialogue, settings: MemorySettings, embedder: KnownQuestions | None
) -> Recall:
    """A conversation brought in and indexed."""
    start = time.perf_counter()
    record = (await store.transfer.import_(dialogue.export)).conversation

    async def ready() -> Store:
        return store

    questions = Questions(ready, embedder, settings.recall, record.workspace)
    recall = Recall(questions, settings, conversation_id=record.uuid, workspace=record.workspace)
    await recall.load()
    await recall.store_missing()
    await recall.embed()
    took = time.perf_counter() - start
    print(f"{dialogue.name}: {recall.index.turns} turns, {len(dialogue.questions)} questions, ready after {took:.1f} s")
    return recall


async def configured(name: str) -> ChatModel:
    """The model a chat would have write its summaries: the named one, else what files, environment and machine give."""
    settings = load().settings
    name = name or settings.agent.memory.summarization.model or settings.model.name
    chosen = msgspec.structs.replace(settings.model, name=name)
    choice = await choose_model(chosen, os.environ)
    if choice.offline:
        raise SystemExit(f"No model to write summaries: {choice.origin}.")
    print(f"summaries by {choice.name}, {choice.destination}")
    return make_model(choice, chosen)


async def summarised(store: Store, recall: Recall, conversation_id: str, writer: ChatModel | None) -> None:
    """Summaries of all levels, taken in by recall; said is how many of them a model wrote."""
    start = time.perf_counter()
    summarizer = Summarizer(store, SummarizationSettings(), writer, lambda event: None)
    await summarizer.run_due(conversation_id)
    made = await store.summaries.of(conversation_id)
    await recall.summaries_changed(made)
    await recall.embed()
    extracted = sum(summary.made_by == EXTRACTIVE for summary in made)
    took = time.perf_counter() - start
    print(f"{len(made)} summaries: {len(made) - extracted} by a model, {extracted} extracted, after {took:.1f} s")


async def ask(recall: Recall, dialogue: Dialogue, question: Question, score: Score) -> float:
    """Recall for each budget; the milliseconds of the largest."""
    packed, took = list[list[Candidate]](), 0.0
    for budget in score.budgets:
        start = time.perf_counter()
        found = await recall.recall(question.text, max_tokens=budget)
        took = (time.perf_counter() - start) * 1000
        assert found.tokens <= budget
        packed.append(found.turns)
    best = [turn.turn_index for turn in packed[-1] if turn.own][:FIRST]
    score.add(dialogue, question, best, packed)
    return took


def ask_baseline(
    index: ConversationIndex,
    ranking: Ranking,
    dialogue: Dialogue,
    question: Question,
    vector: npt.NDArray[np.float32] | None,
    score: Score,
) -> None:
    """The same for a plain ranking, packed by the same rules."""
    ranked = ranking(index, question.text, vector)
    tried = [_candidate(index, turn, value) for turn, value in ranked[:200]]
    packed = [pack(tried, budget) for budget in score.budgets]
    score.add(dialogue, question, [turn for turn, _ in ranked[:FIRST]], packed)


def _candidate(index: ConversationIndex, turn: int, score: float) -> Candidate:
    date = index.timestamp(turn)
    assert date is not None
    return Candidate(conversation_id="", turn_index=turn, date=date, text=index.turn_text(turn), score=score)


def dense(index: ConversationIndex, text: str, vector: npt.NDArray[np.float32] | None) -> list[tuple[int, float]]:
    """One vector per turn."""
    return [(one.turn_index, one.score) for one in index.rank(text, vector, weights={"cosine": 1.0})]


def full_text(index: ConversationIndex, text: str, vector: npt.NDArray[np.float32] | None) -> list[tuple[int, float]]:
    """BM25 of each turn's own text."""
    return [(one.turn_index, one.score) for one in index.rank(text, None, weights={"turn": 1.0})]


def fused(index: ConversationIndex, text: str, vector: npt.NDArray[np.float32] | None) -> list[tuple[int, float]]:
    """Both, by reciprocal ranks."""
    scores: dict[int, float] = {}
    for ranked in (dense(index, text, vector), full_text(index, text, vector)):
        for rank, (turn, _) in enumerate(ranked, 1):
            scores[turn] = scores.get(turn, 0.0) + 1 / (RRF + rank)
    return sorted(scores.items(), key=lambda item: -item[1])


RANKINGS: dict[str, Ranking] = {"dense": dense, "bm25": full_text, "rrf": fused}


def report(recipe: Score, baselines: dict[str, Score], times: list[float], known: KnownQuestions | None) -> None:
    """The tables and the last line."""
    measures = ("", "hit@1 ", "MRR ")
    head = "".join(f"{f'{measure}{size}':>11}" for measure in measures for size in recipe.budgets)
    print(f"\n{'percent of evidence, by tokens':<32}{'R@5':>6}{head}")
    rows = {"recipe": recipe.mean()}
    for name in dict.fromkeys(name for name, _, _ in recipe.rows):
        rows[f"  {name}"] = recipe.mean(name)
    for category in sorted({category for _, category, _ in recipe.rows}):
        rows[f"  category {category}"] = recipe.mean(category=category)
    rows |= {f"baseline {name}": score.mean() for name, score in baselines.items()}
    for label, values in rows.items():
        print(f"{label:<32}{values[0]:>6.1f}" + "".join(f"{value:>11.1f}" for value in values[1:]))
    p50, p95 = (statistics.quantiles(times, n=100, method="inclusive")[percent - 1] for percent in (50, 95))
    print(f"\n{len(times)} questions; recall p50 {p50:.1f} ms, p95 {p95:.1f} ms")
    if known:
        print(f"embedding a question: p50 {statistics.median(known.times):.1f} ms")
    sizes = len(recipe.budgets)
    mean = recipe.mean()
    figures = {"recipe": mean[sizes], "r5": mean[0]}
    figures |= {name: score.mean()[sizes] for name, score in baselines.items()}
    figures |= {"p50_ms": p50, "p95_ms": p95}
    figures |= {f"hit1_{size}": mean[1 + sizes + place] for place, size in enumerate(recipe.budgets)}
    figures |= {f"mrr_{size}": mean[1 + 2 * sizes + place] for place, size in enumerate(recipe.budgets)}
    print("recall " + " ".join(f"{name}={value:.1f}" for name, value in figures.items()))


@asynccontextmanager
async def open_store(graph: str) -> AsyncIterator[Store]:
    """A store in a folder of its own, or in the Neo4j that NEO4J_URI names."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(config=f"{folder}/config", data=f"{folder}/data", state=f"{folder}/state")
        target = GraphTarget(embedded=True, chosen_by="benchmark")
        if graph == "neo4j":
            target = GraphTarget(
                uri=os.environ["NEO4J_URI"],
                username=os.environ.get("NEO4J_USERNAME", "neo4j"),
                password=os.environ.get("NEO4J_PASSWORD", ""),
                database=os.environ.get("NEO4J_DATABASE", ""),
                chosen_by="benchmark",
            )
        opened = await Graph.open(target, paths)
        try:
            yield Store(opened)
        finally:
            await opened.close()
            if target.embedded:
                await asyncio.to_thread(stop_server, paths)


def _rank(turns: set[int], recalled: Sequence[Candidate]) -> int:
    """The place of the first turn that holds evidence, 0 if none does."""
    return next((place for place, turn in enumerate(recalled, 1) if turn.own and turn.turn_index in turns), 0)


def _flat(text: str) -> str:
    """A text without what separates its words, for telling whether it is there."""
    return " ".join(text.replace("\n> ", " ").split())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How much of what answers a question is recalled.")
    parser.add_argument("--data", type=Path, required=True, help="a file in LoCoMo's format")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    parser.add_argument("--budget", type=int, default=2_000)
    parser.add_argument("--no-embeddings", action="store_true", help="go by words alone")
    parser.add_argument("--others", action="store_true", help="one workspace for all: others may be recalled, too")
    parser.add_argument(
        "--summaries",
        nargs="?",
        const=EXTRACTIVE,
        choices=(EXTRACTIVE, "model"),
        help="with summaries, their facts and priors: extracted, or written by a model",
    )
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="N questions in each message")
    parser.add_argument("--model", default="", help="who writes them; else the one configured for the chat")
    given = parser.parse_args()
    if given.model and given.summaries != "model":
        parser.error("--model writes summaries: it needs --summaries model")

    async def measure() -> None:
        """With the model, if one is wanted."""
        await main(
            given.data,
            given.graph,
            given.budget,
            embeddings=not given.no_embeddings,
            others=given.others,
            summaries=given.summaries is not None,
            writer=await configured(given.model) if given.summaries == "model" else None,
            at_once=given.at_once,
        )

    asyncio.run(measure())
