"""How common words are in the graph, estimated from a sample of its turns, so that the rarer ones are asked for.

Used by `Recall` for other conversations. A full-text index reads every place where a word stands, however little the
word tells: the common words of a question take nearly all of its time and hardly change which turns come first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from ragforge_tui.graph import Store
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recall.terms import FALLBACK, terms, variants

SAMPLE = 400
"""Turns looked at: a word in a tenth of all is told from one in a twentieth."""
FEWEST_TURNS = 2_000
"""Smaller graphs answer whatever the words are."""
GROWTH = 1.5
"""Times as many turns as at the last look are a reason to look again."""
PLACES = 10_000
"""Places the words of one question may have together: what an index reads in some ten milliseconds."""
FEWEST_WORDS = 2
"""Asked for however common they are."""


class Rarity:
    """Shares of the graph's turns that words stand in."""

    def __init__(self) -> None:
        self._turns = 0
        self._shares: dict[str, float] = {}
        self._languages: set[str] = set()

    async def learn(self, store: Store) -> None:
        """Look at some turns of the graph, when it has become much larger than at the last look."""
        spans = await store.word_samples.spans()
        turns = sum(span.last - span.first + 1 for span in spans)
        if turns < max(FEWEST_TURNS, self._turns * GROWTH):
            return
        keys = await store.word_samples.keys(spans, SAMPLE)
        if keys:
            await asyncio.to_thread(self._count, keys, turns)

    def rarest(self, words: Sequence[str]) -> list[str]:
        """The words to ask the graph for, in their order: the rarest, as many as it reads in little time."""
        shares = {word: self._share(word) for word in words}
        chosen: set[str] = set()
        places = 0.0
        for word in sorted(shares, key=lambda word: shares[word]):
            places += shares[word] * self._turns
            if places > PLACES and len(chosen) >= FEWEST_WORDS:
                break
            chosen.add(word)
        return [word for word in words if word in chosen]

    def _count(self, keys: Sequence[str], turns: int) -> None:
        counted: Counter[str] = Counter()
        languages = set()
        for key in keys:
            language = language_of(key) or FALLBACK
            languages.add(language)
            counted.update(set(terms(key, language)))
        # One turn of the sample says nothing of the graph.
        self._shares = {term: count / len(keys) for term, count in counted.items() if count > 1}
        self._languages, self._turns = languages, turns

    def _share(self, word: str) -> float:
        return max((self._shares.get(term, 0.0) for term in variants(word, self._languages)), default=0.0)
