"""Plain rankings of scopes that a search for code has to beat: grep, BM25 alone, vectors alone.

All work in memory over the same scopes, with the same words and vectors as the search that is measured.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ragforge_tui.code.query_words import query_words
from ragforge_tui.memory.language import STOP_WORDS
from ragforge_tui.memory.retrieval.scoring import K1, B
from ragforge_tui.memory.retrieval.terms import FALLBACK, stems
from ragforge_tui.shared.code_records import Scope, ScopeHit
from ragforge_tui.shared.code_words import search_text

Floats = npt.NDArray[np.float32]
_WORD = re.compile(r"\w+")


class Baselines:
    """Scopes of one repository with their words and vectors."""

    def __init__(self, scopes: Sequence[Scope], vectors: Floats) -> None:
        self.scopes = list(scopes)
        self._vectors = vectors
        self._texts = [scope.text.casefold() for scope in self.scopes]
        rows: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = np.zeros(len(self.scopes), np.float32)
        for row, scope in enumerate(self.scopes):
            words = _analysed(search_text(scope))
            lengths[row] = len(words)
            for word, count in Counter(words).items():
                rows[word].append((row, count))
        self._norm = K1 * (1 - B + B * lengths / (float(lengths.mean()) or 1.0))
        self._postings = {
            word: (np.array([row for row, _ in found]), np.array([count for _, count in found], np.float32))
            for word, found in rows.items()
        }

    def grep(self, query: str) -> list[Scope]:
        """Return scopes by the number of places that match any word of the question, as written."""
        words = [word.casefold() for word in _WORD.findall(query) if len(word) > 2]
        counts = np.array([sum(text.count(word) for word in words) for text in self._texts], np.float32)
        return self._best(counts)

    def bm25(self, query: str) -> list[Scope]:
        """Return scopes by BM25."""
        return self._best(self._bm25(query))

    def vector(self, vector: Floats) -> list[Scope]:
        """Return scopes by cosine."""
        return self._best(self._vectors @ vector)

    def candidates(self, query: str, vector: Floats | None, limit: int) -> list[ScopeHit]:
        """Return what the graph's two indexes would find, from memory."""
        words = self._bm25(query)
        cosines = None if vector is None else self._vectors @ vector
        found = [row for row in np.argsort(-words, kind="stable")[:limit] if words[row] > 0]
        if cosines is not None:
            found += list(np.argsort(-cosines, kind="stable")[:limit])
        return [
            ScopeHit(
                scope=self.scopes[row],
                words=float(words[row]),
                meaning=None if cosines is None else float(cosines[row]),
            )
            for row in dict.fromkeys(int(row) for row in found)
        ]

    def _bm25(self, query: str) -> Floats:
        scores = np.zeros(len(self.scopes), np.float32)
        for word in _analysed(" ".join(query_words(query))):
            if word in self._postings:
                rows, counts = self._postings[word]
                idf = np.log(1 + (len(self.scopes) - len(rows) + 0.5) / (len(rows) + 0.5))
                scores[rows] += idf * counts * (K1 + 1) / (counts + self._norm[rows])
        return scores

    def _best(self, scores: Floats, limit: int = 10) -> list[Scope]:
        return [self.scopes[row] for row in np.argsort(-scores, kind="stable")[:limit] if scores[row] > 0]


def _analysed(text: str) -> list[str]:
    """Return the terms of a text as the analyzer of the full-text index makes them, about."""
    stop = STOP_WORDS[FALLBACK]
    return stems((word for word in text.lower().split() if word not in stop), FALLBACK)
