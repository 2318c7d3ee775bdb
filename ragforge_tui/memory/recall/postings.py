"""Growing inverted index: from each term to the turns that contain it, with frequencies.

The storage of `ConversationIndex`, separate from it because it is independent of ranking. Adding a text costs its
terms; a term's frequencies over all turns are returned as one array, from which neighbours and sittings are summed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Postings:
    """Term frequencies of rows, which are numbered from 0."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._terms: dict[int, Counter[str]] = {}

    def put(self, row: int, terms: Iterable[str]) -> int:
        """Set the terms of a row, replacing any earlier ones, and return how many there are."""
        counted = Counter(terms)
        if row in self._terms:
            self._remove(row)
        for term, count in counted.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("i"), array("i")
            self._rows[term].append(row)
            self._counts[term].append(count)
        self._terms[row] = counted
        return counted.total()

    def frequencies(self, terms: Iterable[str], size: int) -> Floats | None:
        """Return how often each row contains any of the terms; None if no row does."""
        frequencies: Floats | None = None
        for term in terms:
            rows = self._rows.get(term)
            if not rows:
                continue
            if frequencies is None:
                frequencies = np.zeros(size, np.float32)
            frequencies[np.array(rows)] += np.array(self._counts[term], dtype=np.float32)
        return frequencies

    def terms_of(self, row: int) -> Counter[str]:
        """Return the terms of a row with their counts."""
        return self._terms.get(row, Counter())

    def _remove(self, row: int) -> None:
        for term in self._terms.pop(row):
            rows, counts = self._rows[term], self._counts[term]
            place = rows.index(row)
            del rows[place], counts[place]
            if not rows:
                del self._rows[term], self._counts[term]
