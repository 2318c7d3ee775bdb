"""Summaries made and stored: the tree its rules demand, on both backends, with a model and without."""

from __future__ import annotations

from ragforge_tui.config import SummarizationSettings
from ragforge_tui.events import Event, SummaryCreated, SummaryStarted, TopicsChanged
from ragforge_tui.graph import Graph, Store
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.summaries.plan import frontier
from tests.support.records import conversation, one_turn, rows_of


async def held(store: Store, turns: int, **fields: object) -> str:
    """A conversation of so many turns."""
    made = await store.create_conversation(conversation(**fields))
    for turn in range(1, turns + 1):
        await one_turn(
            store,
            made.uuid,
            f"How does part {turn} of the retry policy work?",
            f"Part {turn} waits {turn} seconds before it asks the server again. It is set in client{turn}.py.",
        )
    return made.uuid


async def test_turns_become_summaries_of_three_levels(graph: Graph) -> None:
    store = Store(graph)
    uuid = await held(store, 60)
    events: list[Event] = []
    summarizer = Summarizer(store, SummarizationSettings(level_chars=1_500), None, events.append)
    made = await summarizer.run_due(uuid)
    tree = await store.summaries(uuid)
    assert {summary.uuid for summary in made} == {summary.uuid for summary in tree}
    assert {summary.level for summary in tree} >= {1, 2, 3}
    covered = [t for s in frontier(tree) for t in range(s.start_turn_index, s.end_turn_index + 1)]
    assert covered == list(range(1, 58))
    assert sum(isinstance(event, SummaryStarted) for event in events) == len(made)
    assert sum(isinstance(event, SummaryCreated) for event in events) == len(made)
    assert any(isinstance(event, TopicsChanged) for event in events)
    assert await rows_of(graph, "MATCH (:Summary {level: 1})-[r:SUMMARIZES]->(m:Message) RETURN r") == 2 * 57
    assert await summarizer.run_due(uuid) == []
    assert (await store.get_conversation(uuid)).summary
