"""Which words of a question other conversations are searched for: the rarer ones, told from a sample of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, OtherTurn
from ragforge_tui.graph.store.recall import Span, spread
from ragforge_tui.memory.retrieval import question
from ragforge_tui.memory.retrieval.question import WordFrequencies
from ragforge_tui.shared.errors import GraphUnavailableError
from tests.support.recall_conversations import TALK, ready, recall_of, talked
from tests.support.records import conversation, one_turn

HARBOURS = [(f"What of ship {n}?", "It lies in the harbour.") for n in range(60)]


@pytest.fixture
def small_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits a test's graph can exceed."""
    monkeypatch.setattr(question, "FEWEST_TURNS", 30)
    monkeypatch.setattr(question, "PLACES", 40)
    monkeypatch.setattr(question, "SAMPLE", 20)


async def learnt(store: Store) -> WordFrequencies:
    known = WordFrequencies()
    await known.learn(store)
    return known


async def common_harbours(store: Store, **fields: object) -> None:
    """A conversation in which every turn has the harbour, one the violin."""
    talk = [*HARBOURS, ("Who plays the violin?", "Ida.")]
    c = await talked(store, talk, **{"title": "Ships", **fields})
    await ready(recall_of(store, c))


@pytest.mark.usefixtures("small_places")
async def test_common_words_are_left_out(store: Store) -> None:
    await common_harbours(store)
    known = await learnt(store)
    assert known.rarest(["harbour", "violin", "sloop"]) == ["violin", "sloop"]
    assert known.rarest(["violin", "Harbours", "sloop"]) == ["violin", "sloop"]
    # However common they are, two are asked for.
    assert known.rarest(["harbour", "violin"]) == ["harbour", "violin"]
    assert len(known.rarest(["harbour", "ship", "lies"])) == 2


async def test_small_graphs_are_asked_for_all_words(store: Store) -> None:
    await common_harbours(store)
    assert (await learnt(store)).rarest(["harbour", "violin", "sloop"]) == ["harbour", "violin", "sloop"]


@pytest.mark.usefixtures("small_places")
async def test_a_graph_is_looked_at_again_when_it_has_grown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    sampled = store.recall.sample_keys

    async def counted(spans: Sequence[Span], size: int) -> list[str]:
        looked.append(sum(span.last - span.first + 1 for span in spans))
        return await sampled(spans, size)

    await common_harbours(store)
    monkeypatch.setattr(store.recall, "sample_keys", counted)
    known = await learnt(store)
    await known.learn(store)
    await talked(store, HARBOURS, title="More")
    await known.learn(store)
    assert looked == [61, 121]


@pytest.mark.usefixtures("small_places")
async def test_other_conversations_are_asked_for_the_rarer_words(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await common_harbours(store)
    asked: list[tuple[str, ...]] = []
    search = store.other_conversations.turns

    async def heard(others: Others, words: Sequence[str], *rest: Any, **named: Any) -> list[OtherTurn]:
        asked.append(tuple(words))
        return await search(others, words, *rest, **named)

    monkeypatch.setattr(store.other_conversations, "turns", heard)
    recall = recall_of(store, await talked(store, [("Hello.", "Hello.")]))
    await ready(recall)
    found = await recall.recall("Which violin and which sloop is in the harbour?")
    assert asked == [("violin", "sloop")]
    assert {turn.turn_index for turn in found.turns if not turn.own} == {61}


async def test_a_branch_adds_its_own_turns_alone(store: Store) -> None:
    parent = await talked(store, TALK)
    branch = await store.conversations.create(conversation(branch_of=parent.uuid, branch_turn=4, next_turn=5))
    assert await store.recall.sample_spans() == [Span(parent.uuid, 1, 6)]
    await one_turn(store, branch.uuid, "And then?")
    assert set(await store.recall.sample_spans()) == {Span(parent.uuid, 1, 6), Span(branch.uuid, 5, 5)}


@pytest.mark.parametrize(
    ("size", "places"),
    [
        (100, [("a", 1), ("a", 2), ("a", 3), ("b", 7), ("c", 1), ("c", 2)]),
        (6, [("a", 1), ("a", 2), ("a", 3), ("b", 7), ("c", 1), ("c", 2)]),
        (3, [("a", 1), ("a", 3), ("c", 1)]),
        (1, [("a", 1)]),
    ],
)
def test_places_are_evenly_spread(size: int, places: list[tuple[str, int]]) -> None:
    assert spread([Span("a", 1, 3), Span("b", 7, 7), Span("c", 1, 2)], size) == places
    assert spread([], size) == []


@pytest.mark.usefixtures("small_places")
async def test_private_and_deleted_conversations_teach_nothing(store: Store) -> None:
    await common_harbours(store, private=True)
    assert await store.recall.sample_spans() == []
    assert (await learnt(store)).rarest(["harbour", "violin", "sloop"]) == ["harbour", "violin", "sloop"]


async def test_a_graph_that_cannot_show_costs_nothing_but_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: WordFrequencies, __: Store) -> None:
        raise GraphUnavailableError("The graph is away.")

    monkeypatch.setattr(WordFrequencies, "learn", away)
    c = await talked(store, TALK)
    recall = recall_of(store, c)
    await ready(recall)
    assert (await recall.recall(TALK[0][0])).turns
