"""Schedule of summaries: the next one due and its range. Pure functions over the tree and the sizes of the turns.

Used by the summarizer, which repeats until nothing is due. A plan depends on the turns alone, not on the time: an
import of a thousand turns, a conversation held turn by turn and one resumed after a crash get the same ranges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from ragforge_tui.graph.store.summary_tree import TurnSize, chosen_end
from ragforge_tui.settings.schema import SummarizationSettings
from ragforge_tui.shared.records import EXTRACTIVE, Summary

MIN_CHILDREN = 2
"""A summary of one summary would only repeat it."""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """Summary to be made.

    Attributes:
        ordinal: Its position on its level, from 1.
        char_start: Offset of its first turn in the user and assistant text of the conversation.
        children: The summaries it summarises; empty at level 1.
    """

    level: int
    ordinal: int
    start: int
    end: int
    turn_count: int
    char_start: int
    char_end: int
    children: list[Summary] = []


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Turns and characters missing until the next summary of a level; at level 1 one of the two is enough.

    Attributes:
        turns: Further turns; at higher levels, the least number of further summaries of the level below.
        chars: Further characters of the text to summarise.
    """

    level: int
    turns: int
    chars: int


def next_due(summaries: Sequence[Summary], sizes: Sequence[TurnSize], settings: SummarizationSettings) -> Due | None:
    """Return the next summary to make, the highest level first; None if nothing is due.

    Args:
        summaries: All of the conversation, as `Store.summaries` returns them; their texts are not used.
        sizes: Sizes of the turns, at least of those after the last one covered.
        settings: Thresholds at which a summary is due.
    """
    if not settings.enabled:
        return None
    for level in range(_highest(summaries), 0, -1):
        if due := _due_over(summaries, level, settings):
            return due
    return _due_over_turns(summaries, sizes, settings)


def pending(summaries: Sequence[Summary], sizes: Sequence[TurnSize], settings: SummarizationSettings) -> list[Pending]:
    """Return how far each level is from its next summary: level 1 first, last the level that has none yet."""
    if not settings.enabled:
        return []
    raw = _raw(summaries, sizes)
    result = [
        Pending(
            level=1,
            turns=max(0, settings.every_turns - sum(not s.own for s in raw), settings.keep_recent_turns + 1 - len(raw)),
            chars=max(0, settings.every_chars - sum(size.said for size in raw)),
        )
    ]
    for level in range(1, _highest(summaries) + 1):
        waiting = _waiting(summaries, level)
        result.append(
            Pending(
                level=level + 1,
                turns=max(0, MIN_CHILDREN + 1 - len(waiting)),
                chars=max(0, settings.level_chars - sum(s.summary_char_count for s in waiting)),
            )
        )
    return result


def frontier(summaries: Iterable[Summary]) -> list[Summary]:
    """Return the summaries without a parent, in order of turns: together they cover each summarised turn once."""
    return sorted((s for s in summaries if not s.parent), key=lambda s: s.start_turn_index)


def next_provisional(summaries: Iterable[Summary], leave: Collection[str] = ()) -> Summary | None:
    """Return the newest extracted summary that a model may write again; children come before their parent.

    Args:
        summaries: All that a conversation has, for a branch those of its shared turns too.
        leave: Ids of summaries to skip.
    """
    provisional = {s.uuid: s for s in summaries if s.made_by == EXTRACTIVE and s.uuid not in leave}
    ready = [s for s in provisional.values() if provisional.keys().isdisjoint(s.parent_summaries)]
    return max(ready, key=lambda s: (s.end_turn_index, s.level), default=None)


def due_for_rewrite(summary: Summary, summaries: Sequence[Summary]) -> Due:
    """Return the `Due` for writing an existing summary again.

    Args:
        summaries: All that the conversation has.
    """
    below = set(summary.parent_summaries)
    return Due(
        level=summary.level,
        ordinal=summary.ordinal,
        start=summary.start_turn_index,
        end=summary.end_turn_index,
        turn_count=summary.turn_count,
        char_start=summary.char_range_start,
        char_end=summary.char_range_end,
        children=[child for child in summaries if child.uuid in below],
    )


def _highest(summaries: Iterable[Summary]) -> int:
    return max((summary.level for summary in summaries), default=0)


def _waiting(summaries: Iterable[Summary], level: int) -> list[Summary]:
    """Return the summaries of a level that the next level does not cover yet."""
    summaries = list(summaries)
    reached = chosen_end(summaries, level + 1)
    waiting = [s for s in summaries if s.level == level and s.start_turn_index > reached]
    return sorted(waiting, key=lambda s: s.start_turn_index)


def _raw(summaries: Sequence[Summary], sizes: Sequence[TurnSize]) -> list[TurnSize]:
    """Return the turns not covered yet, up to the first that is still running."""
    reached = chosen_end(summaries, 1)
    raw: list[TurnSize] = []
    for size in sizes:
        if size.turn_index <= reached:
            continue
        if not size.finished:
            break
        raw.append(size)
    return raw


def _due_over_turns(
    summaries: Sequence[Summary], sizes: Sequence[TurnSize], settings: SummarizationSettings
) -> Due | None:
    raw = _raw(summaries, sizes)
    chars = answered = 0
    for count, size in enumerate(raw, 1):
        chars += size.said
        # What the user did without the model is covered with the turns around it, but makes no summary due.
        answered += not size.own
        covered = raw[: max(0, count - settings.keep_recent_turns)]
        if covered and (answered >= settings.every_turns or chars >= settings.every_chars):
            before = [s for s in summaries if s.level == 1]
            offset = max((s.char_range_end for s in before), default=0)
            return Due(
                level=1,
                ordinal=len(before) + 1,
                start=chosen_end(before, 1) + 1,
                end=covered[-1].turn_index,
                turn_count=len(covered),
                char_start=offset,
                char_end=offset + sum(turn.chars for turn in covered),
            )
    return None


def _due_over(summaries: Sequence[Summary], level: int, settings: SummarizationSettings) -> Due | None:
    """Return the summary due over this level; the level's last summary stays without a parent."""
    waiting = _waiting(summaries, level)
    chars = 0
    for count, summary in enumerate(waiting, 1):
        chars += summary.summary_char_count
        if count > MIN_CHILDREN and chars >= settings.level_chars:
            children = waiting[: count - 1]
            return Due(
                level=level + 1,
                ordinal=1 + sum(s.level == level + 1 for s in summaries),
                start=children[0].start_turn_index,
                end=children[-1].end_turn_index,
                turn_count=sum(child.turn_count for child in children),
                char_start=children[0].char_range_start,
                char_end=children[-1].char_range_end,
                children=children,
            )
    return None
