"""What requests were spent on: their parts, results sent again, cache misses, repetitions, background work, helpers.

A provider counts a request as a whole. What precedes the turn's own messages is divided by the tokens of its stored
context; the growth from one request of a turn to the next one is the reply, which the provider counted, and the
results of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from ragforge_tui.memory.context.sections import MESSAGE_SECTION, PAST_SECTION, TITLES
from ragforge_tui.memory.spending.sent_parts import SentParts, first_change
from ragforge_tui.memory.spending.sums import PartSums, row_of
from ragforge_tui.shared.usage_records import SpentRequest, UsageRow

PARTS = "Sent, by part of the request"
RESULTS = "Of it, results of tools sent again"
MISSES = "Sent although it was in the provider's cache"
REPEATED = "Asked more than once"
BACKGROUND = "In the background"
HELPERS = "Helpers of the agent"

LEAST_MISS = 1_024
"""Tokens below which a difference is how providers round what they cache."""
CACHE_LIFE = timedelta(minutes=5)
"""Time after which most providers forget what they cached."""
_PURPOSES = {
    "title": "titles",
    "summary": "summaries and topics",
    "insight": "insights",
    "code": "descriptions of code",
    "answer": "answers of recall",
}
_OWN_STEPS = "Replies of the running turn"
_OWN_RESULTS = "Results of the running turn"

Place = tuple[str, int]
"""A turn: its conversation and its index."""


class Causes:
    """Division of requests by what they were spent on.

    Args:
        requests: In the order of their turns; earlier ones than `since` only explain later ones.
        parts: Parts of the requests by the ids of their contexts.
    """

    def __init__(
        self, requests: Sequence[SpentRequest], parts: Mapping[str, SentParts], since: datetime | None
    ) -> None:
        self._requests = requests
        self._parts = parts
        self._since = since
        self._by_part = PartSums(PARTS)
        self._results = PartSums(RESULTS)
        self._misses = PartSums(MISSES)
        self._words: dict[Place, int] = {}
        """Tokens of a turn's message and replies."""
        self._result_tokens: dict[Place, int] = {}
        """Tokens of the results of a turn's calls."""

    def rows(self) -> list[UsageRow]:
        """Return the causes by group, largest first inside."""
        for _, turn in groupby(self._replies(), key=lambda one: (one.conversation_id, one.turn_index)):
            self._divide(list(turn))
        for _, conversation in groupby(self._replies(), key=lambda one: one.conversation_id):
            self._compare(list(conversation))
        return [
            *self._by_part.rows(),
            *self._results.rows(),
            *self._misses.rows(),
            *self._repeated(),
            *self._background(),
            *self._helpers(),
        ]

    def _replies(self) -> Iterator[SpentRequest]:
        return (one for one in self._requests if not one.purpose and not one.unknown)

    def _counts(self, one: SpentRequest) -> bool:
        return self._since is None or one.timestamp >= self._since

    # --- parts of requests

    def _divide(self, turn: Sequence[SpentRequest]) -> None:
        """Divide what the requests of one turn sent."""
        place = (turn[0].conversation_id, turn[0].turn_index)
        message: int | None = None
        replies = results = 0
        before: SpentRequest | None = None
        for one in turn:
            if before is not None and before.superseded and not one.superseded:
                # The turn began again, without what the answer before had read.
                before, replies, results = None, 0, 0
            sent = one.usage.input_tokens
            parts = self._parts.get(one.context)
            fixed = min(parts.tokens, sent) if parts else 0
            if before is not None:
                replies += before.usage.output_tokens
                results += max(0, sent - before.usage.input_tokens - before.usage.output_tokens)
            grown = min(sent - fixed, replies + results) if before is not None else 0
            of_results = min(results, grown)
            before = one
            message = sent - fixed if message is None else message
            if not self._counts(one):
                continue
            self._fixed(one, parts, fixed)
            self._by_part.add(TITLES[MESSAGE_SECTION], sent - fixed - grown)
            self._by_part.add(_OWN_STEPS, grown - of_results)
            self._by_part.add(_OWN_RESULTS, of_results)
            self._results.add("in the same turn", of_results)
        last = turn[-1].usage.output_tokens
        self._words[place] = (message or 0) + replies + last
        self._result_tokens[place] = results

    def _fixed(self, one: SpentRequest, parts: SentParts | None, fixed: int) -> None:
        """Add the parts before the turn's own messages, scaled to what the provider counted."""
        if parts is None or not parts.tokens:
            return
        scale = fixed / parts.tokens
        for title, tokens in parts.sections:
            self._by_part.add(title, round(tokens * scale))
        by_age: dict[str, int] = {}
        for turn, tokens in parts.past:
            place = (one.conversation_id, turn)
            of_results = min(max(0, tokens - self._words.get(place, tokens)), self._result_tokens.get(place, 0))
            age = _age(one.turn_index - turn)
            by_age[age] = by_age.get(age, 0) + round(of_results * scale)
        for age, tokens in by_age.items():
            self._results.add(age, tokens)

    # --- caches

    def _compare(self, requests: Sequence[SpentRequest]) -> None:
        """Find what a provider that keeps a cache had to read again, and why."""
        caching = {one.model for one in requests if one.usage.cached_tokens}
        for before, one in pairwise(requests):
            if one.model not in caching or not self._counts(one):
                continue
            missed = min(before.usage.input_tokens, one.usage.input_tokens) - one.usage.cached_tokens
            if missed > LEAST_MISS:
                self._misses.add(self._why(before, one), missed)

    def _why(self, before: SpentRequest, one: SpentRequest) -> str:
        if before.model != one.model:
            return "another model was asked"
        earlier, later = self._parts.get(before.context), self._parts.get(one.context)
        change = first_change(earlier, later) if earlier and later else None
        if change is not None and change.section != PAST_SECTION:
            return f"changed: {change.title}"
        if one.timestamp - before.timestamp > CACHE_LIFE:
            return "a pause of more than five minutes"
        if change is not None:
            return "earlier turns were shortened or left out"
        if before.turn_index != one.turn_index:
            return "a new message moves the memory looked up for it"
        return "the provider had not kept it, or the turn was shortened"

    # --- whole requests

    def _counted(self) -> Iterator[SpentRequest]:
        return (one for one in self._requests if self._counts(one))

    def _repeated(self) -> list[UsageRow]:
        everything = list(self._counted())
        again = [one for one in everything if one.usage.retries]
        retries = sum(one.usage.retries for one in again)
        rows = [row_of("answers replaced by /retry", [one for one in everything if one.superseded], group=REPEATED)]
        if retries:
            rows.append(UsageRow(name="sent again after a failure", group=REPEATED, requests=retries, retries=retries))
        cut = row_of("answers cut off, their tokens not counted", [o for o in everything if o.unknown], group=REPEATED)
        return [row for row in (*rows, cut) if row.requests]

    def _background(self) -> list[UsageRow]:
        return _sorted(
            row_of(_PURPOSES.get(purpose, purpose), requests, group=BACKGROUND)
            for purpose, requests in _by_purpose(self._counted()).items()
        )

    def _helpers(self) -> list[UsageRow]:
        requests = [one for one in self._counted() if one.helper and not one.purpose]
        return [row_of("tasks given to helpers", requests, group=HELPERS)] if requests else []


def _by_purpose(requests: Iterable[SpentRequest]) -> dict[str, list[SpentRequest]]:
    found: dict[str, list[SpentRequest]] = {}
    for one in requests:
        if one.purpose:
            found.setdefault(one.purpose, []).append(one)
    return found


def _sorted(rows: Iterable[UsageRow]) -> list[UsageRow]:
    return sorted(rows, key=lambda row: (-row.input_tokens, row.name))


def _age(turns: int) -> str:
    """Return how many turns later results were sent again, in steps."""
    if turns <= 1:
        return "one turn later"
    return "two to four turns later" if turns <= 4 else "five turns later and more"
