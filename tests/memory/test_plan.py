"""When a summary is due and over what: boundaries by table, the tree's rules by property. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.graph.store.summary_tree import TurnSize, frontier_marked, summary_uuid, text_size
from ragforge_tui.memory.summaries.plan import (
    Due,
    Pending,
    due_for_rewrite,
    frontier,
    next_due,
    next_provisional,
    pending,
)
from ragforge_tui.settings.schema import SummarizationSettings
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Summary, now


def written(due: Due, chars: int) -> Summary:
    """A summary of that many characters where one was due."""
    summary = Summary(
        uuid=summary_uuid("c", due.level, due.start, due.end),
        conversation_id="c",
        level=due.level,
        ordinal=due.ordinal,
        conversation_summary="x" * chars,
        key_findings=[],
        start_turn_index=due.start,
        end_turn_index=due.end,
        turn_count=due.turn_count,
        char_range_start=due.char_start,
        char_range_end=due.char_end,
        parent_summaries=[child.uuid for child in due.children],
        created_at=now(),
    )
    summary.summary_char_count = text_size(summary)
    return summary


def grown(sizes: list[TurnSize], settings: SummarizationSettings, chars: list[int]) -> list[Summary]:
    """The tree over these turns, made until nothing is due; summaries get the lengths given, in turn, by place."""
    tree: list[Summary] = []
    return extended(tree, sizes, settings, chars)


def extended(
    tree: list[Summary], sizes: list[TurnSize], settings: SummarizationSettings, chars: list[int]
) -> list[Summary]:
    while due := next_due(tree, sizes, settings):
        length = chars[(due.start * 7 + due.level) % len(chars)]
        tree = frontier_marked([*tree, written(due, length)])
    return tree


def turns(count: int, chars: int = 100) -> list[TurnSize]:
    return [TurnSize(index, chars) for index in range(1, count + 1)]


def test_user_commands_alone_make_no_summary_due_but_are_covered() -> None:
    settings = SummarizationSettings(every_turns=3, every_chars=100_000, keep_recent_turns=1)
    own = [TurnSize(index, 10, own=True) for index in range(1, 9)]
    assert next_due([], own, settings) is None
    assert pending([], own, settings)[0].turns == 3
    mixed = [*own, *(TurnSize(index, 100) for index in (9, 10))]
    assert next_due([], mixed, settings) is None and pending([], mixed, settings)[0].turns == 1
    due = next_due([], [*mixed, TurnSize(11, 100)], settings)
    assert due is not None and (due.start, due.end, due.turn_count) == (1, 10, 10)
    many = [TurnSize(index, 50_000, own=True) for index in (1, 2)]
    assert next_due([], many, settings) is not None, "its text counts"


@pytest.mark.parametrize(
    ("settings", "count", "chars", "ranges"),
    [
        # By turns: the fifth unsummarised one makes all but the last two due.
        (SummarizationSettings(), 4, 10, []),
        (SummarizationSettings(), 5, 10, [(1, 3)]),
        (SummarizationSettings(), 6, 10, [(1, 3)]),
        (SummarizationSettings(), 15, 10, [(1, 3), (4, 6), (7, 9), (10, 12)]),
        # By characters: reached exactly, one short, one over, and many times in one import.
        (SummarizationSettings(every_turns=100, every_chars=1_000), 4, 249, []),
        (SummarizationSettings(every_turns=100, every_chars=1_000), 4, 250, [(1, 2)]),
        (SummarizationSettings(every_turns=100, every_chars=1_000), 4, 251, [(1, 2)]),
        (SummarizationSettings(every_turns=100, every_chars=1_000), 12, 250, [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]),
        # However long, the newest turns stay raw.
        (SummarizationSettings(every_chars=1_000), 2, 5_000, []),
        (SummarizationSettings(every_chars=1_000), 3, 5_000, [(1, 1)]),
        (SummarizationSettings(keep_recent_turns=0), 5, 10, [(1, 5)]),
        (SummarizationSettings(keep_recent_turns=0, every_turns=1), 3, 10, [(1, 1), (2, 2), (3, 3)]),
        (SummarizationSettings(keep_recent_turns=4), 5, 10, [(1, 1)]),
        (SummarizationSettings(keep_recent_turns=10), 10, 10, []),
        (SummarizationSettings(keep_recent_turns=10), 11, 10, [(1, 1)]),
        (SummarizationSettings(enabled=False), 50, 10_000, []),
    ],
)
def test_first_level(settings: SummarizationSettings, count: int, chars: int, ranges: list[tuple[int, int]]) -> None:
    made = grown(turns(count, chars), settings, [10])
    assert [(s.start_turn_index, s.end_turn_index) for s in made if s.level == 1] == ranges


@pytest.mark.parametrize(
    ("level_chars", "length", "second"),
    [
        # Four summaries of the first level; the last always stays without a parent.
        (1_201, 300, []),
        (1_200, 300, [(1, 9)]),
        (1_199, 300, [(1, 9)]),
        (900, 300, [(1, 6)]),
        # One summary of one summary says nothing new: two at least.
        (300, 300, [(1, 6)]),
        (1, 300, [(1, 6)]),
    ],
)
def test_second_level(level_chars: int, length: int, second: list[tuple[int, int]]) -> None:
    made = grown(turns(14), SummarizationSettings(level_chars=level_chars), [length])
    assert [(s.start_turn_index, s.end_turn_index) for s in made if s.level == 1] == [(1, 3), (4, 6), (7, 9), (10, 12)]
    assert [(s.start_turn_index, s.end_turn_index) for s in made if s.level == 2] == second


def test_a_paste_makes_no_summary_of_one_turn() -> None:
    chosen = SummarizationSettings()
    sizes = [TurnSize(1, 12_000, pasted=10_000), TurnSize(2, 300), TurnSize(3, 300), TurnSize(4, 300)]
    assert next_due([], sizes, chosen) is None
    assert pending([], sizes, chosen)[0].chars == 10_000 - 2_900
    due = next_due([], [*sizes, TurnSize(5, 300)], chosen)
    assert due is not None
    # The range is that of the whole text all the same.
    assert (due.start, due.end, due.char_end) == (1, 3, 12_600)


def test_a_turn_still_continuing_is_waited_for() -> None:
    sizes = turns(12)
    sizes[6] = TurnSize(7, 100, finished=False)
    assert [(s.start_turn_index, s.end_turn_index) for s in grown(sizes, SummarizationSettings(), [10])] == [(1, 3)]


def test_findings_count_as_text_of_a_summary() -> None:
    due = next_due([], turns(5), SummarizationSettings())
    assert due is not None
    summary = written(due, 10)
    summary.key_findings = [Finding(text="12345", turns=[1])]
    assert text_size(summary) == 15


def test_pending_shows_what_is_missing() -> None:
    settings = SummarizationSettings(level_chars=1_000)
    assert pending([], turns(3), settings) == [Pending(level=1, turns=2, chars=9_700)]
    tree = grown(turns(8), settings, [300])
    assert pending(tree, turns(8), settings) == [
        Pending(level=1, turns=3, chars=9_800),
        Pending(level=2, turns=1, chars=400),
    ]
    assert pending(tree, turns(8), SummarizationSettings(enabled=False)) == []


SIZES = st.lists(st.integers(0, 6_000), max_size=120)
SETTINGS = st.builds(
    SummarizationSettings,
    every_turns=st.integers(1, 9),
    every_chars=st.integers(1, 20_000),
    keep_recent_turns=st.integers(0, 6),
    level_chars=st.integers(1, 5_000),
)
LENGTHS = st.lists(st.integers(1, 1_200), min_size=1, max_size=5)


@given(SIZES, SETTINGS, LENGTHS, st.lists(st.integers(0, 120), max_size=6))
def test_ranges_partition_and_the_frontier_covers_each_turn_once(
    chars: list[int], settings: SummarizationSettings, lengths: list[int], stops: list[int]
) -> None:
    sizes = [TurnSize(index, size) for index, size in enumerate(chars, 1)]
    tree = grown(sizes, settings, lengths)
    reached = max((s.end_turn_index for s in tree), default=0)
    assert reached <= max(0, len(sizes) - settings.keep_recent_turns)
    assert covered(frontier(tree)) == list(range(1, reached + 1))
    for level in range(1, max((s.level for s in tree), default=0) + 1):
        of_level = sorted((s for s in tree if s.level == level), key=lambda s: s.start_turn_index)
        assert covered(of_level) == list(range(1, of_level[-1].end_turn_index + 1))
        assert not of_level[-1].parent
        assert [s.ordinal for s in of_level] == list(range(1, len(of_level) + 1))
        assert covered(of_level, chars=True) == list(range(sum(chars[: of_level[-1].end_turn_index])))
    by_id = {s.uuid: s for s in tree}
    for summary in tree:
        children = [by_id[uuid] for uuid in summary.parent_summaries]
        if summary.level > 1:
            assert len(children) >= 2
            assert covered(children) == covered([summary])
    # Made turn by turn, with pauses anywhere, the tree is the same.
    later: list[Summary] = []
    for stop in [*sorted(stops), len(sizes)]:
        later = extended(later, sizes[:stop], settings, lengths)
    assert shape(later) == shape(tree)


def covered(summaries: list[Summary], *, chars: bool = False) -> list[int]:
    if chars:
        return [c for s in summaries for c in range(s.char_range_start, s.char_range_end)]
    return [turn for s in summaries for turn in range(s.start_turn_index, s.end_turn_index + 1)]


def shape(tree: list[Summary]) -> list[tuple[int, int, int]]:
    return sorted((s.level, s.start_turn_index, s.end_turn_index) for s in tree)


def test_extracts_are_written_again_newest_first_and_after_what_they_summarise() -> None:
    chosen = SummarizationSettings(level_chars=1_500)
    tree = grown([TurnSize(n, 100) for n in range(1, 41)], chosen, [600])
    for extracted in tree:
        extracted.made_by = EXTRACTIVE
    order: list[tuple[int, int, int]] = []
    while (found := next_provisional(tree)) is not None:
        again = due_for_rewrite(found, tree)
        assert (again.level, again.start, again.end) == (found.level, found.start_turn_index, found.end_turn_index)
        assert {child.uuid for child in again.children} == set(found.parent_summaries)
        assert all(child.made_by == "model" for child in again.children)
        order.append((found.level, found.start_turn_index, found.end_turn_index))
        found.made_by = "model"
    assert sorted(order) == sorted(shape(tree))
    firsts = [start for level, start, _ in order if level == 1]
    assert firsts == sorted(firsts, reverse=True)
    tree[0].made_by = EXTRACTIVE
    assert next_provisional(tree) is tree[0]
    assert next_provisional(tree, {tree[0].uuid}) is None
