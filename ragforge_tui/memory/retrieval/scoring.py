"""Arithmetic of ranking: BM25 over arrays, sums over neighbours, z-scores, decay with age.

Pure functions over NumPy arrays with an entry for each turn, used by the index and tested alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

SMALLEST_SIMILAR = 0.01
EQUAL = 1e-6
"""Deviation, as a share of the largest value, up to which values count as equal: about eight times the rounding error
of single precision. Without it, the z-scores of equal cosines would be those of their rounding errors."""
Floats = npt.NDArray[np.float32]
View = tuple[Floats, npt.NDArray[np.bool_]]
"""Scores, and which of them are known."""

K1 = 1.2
B = 0.75


def bm25(frequencies: Iterable[tuple[Floats, float]], lengths: Floats, documents: int) -> Floats:
    """Return the BM25 score of every row for a question's words.

    Args:
        frequencies: For each word of the question, its frequency in each row and its weight.
        lengths: Terms of each row; rows of length 0 do not count.
        documents: Number of rows that count.
    """
    scores = np.zeros(len(lengths), np.float32)
    average = float(lengths.sum()) / max(documents, 1) or 1.0
    norm = K1 * (1 - B + B * lengths / average)
    for frequency, importance in frequencies:
        having = int(np.count_nonzero(frequency))
        weight = importance * math.log(1 + (documents - having + 0.5) / (having + 0.5)) * (K1 + 1)
        scores += weight * frequency / (frequency + norm)
    return scores


def rarity(having: float, documents: float) -> float:
    """Return a word's inverse document frequency as a share of the highest possible: 1 for a word of one document."""
    having = max(having, 1.0)
    return math.log(1 + (documents - having + 0.5) / (having + 0.5)) / math.log(1 + (documents - 0.5) / 1.5)


def relevance(matched: float, cosine: float | None, similar: float, *, by_words: bool = False) -> float:
    """Return how much a text has to do with a message, in units of one rare word in common.

    Args:
        by_words: The cosine does not count alone, as for the vector of a message with the one before.
        matched: Summed `rarity` of the words in common.
        cosine: Similarity of the two; None if it is unknown, which counts as `similar`.
        similar: Cosine that counts as much as one rare word; with 0 or less nearly everything is relevant.
    """
    if by_words and not matched:
        return 0.0
    return matched + (1.0 if cosine is None else max(cosine, 0.0) / max(similar, SMALLEST_SIMILAR))


def neighbours(values: Floats, weight: float = 1.0) -> Floats:
    """Return the sum of each entry with those before and after it."""
    summed = values.copy()
    summed[1:] += weight * values[:-1]
    summed[:-1] += weight * values[1:]
    return summed


def zscores(values: Floats, among: npt.NDArray[np.bool_]) -> Floats:
    """Return values in standard deviations from their mean, both over the marked ones; zeros if all are equal."""
    chosen = values[among]
    if not chosen.size:
        return np.zeros_like(values)
    deviation = float(chosen.std())
    if deviation <= EQUAL * float(np.abs(chosen).max()):
        return np.zeros_like(values)
    return ((values - float(chosen.mean())) / deviation).astype(np.float32)


def known_zscores(view: View, among: npt.NDArray[np.bool_]) -> Floats:
    """Return z-scores of a view over the marked entries that are known, and 0 for unknown ones.

    A turn without a vector is neither favoured nor penalised. Mean and deviation must not count unknown entries: with
    ten of five thousand vectors made, a mean put in for the others would shrink the deviation and make the score of
    each known turn some twenty times as large as that of any other view.
    """
    values, known = view
    return np.where(known, zscores(values, known & among), np.float32(0.0))


def fused(views: Iterable[tuple[float, View]], among: npt.NDArray[np.bool_]) -> Floats:
    """Return the score of each entry over all views: the weighted sum of their z-scores over the marked entries."""
    scores = np.zeros(len(among), np.float32)
    for weight, view in views:
        scores += weight * known_zscores(view, among)
    return scores


def best(scores: Floats, among: npt.NDArray[np.bool_], limit: int | None = None) -> list[int]:
    """Return the marked rows with the highest scores, best first; of equal ones the later comes first."""
    rows = np.flatnonzero(among)
    values = scores[rows]
    if limit is not None and 0 < limit < len(rows):
        # Sorting all rows to keep a few costs more than the ranking itself.
        rows = rows[values >= np.partition(values, -limit)[-limit]]
    # np.lexsort sorts by its last key.
    return [int(row) for row in rows[np.lexsort((-rows, -scores[rows]))][:limit]]


def recency(age_days: float, boost: float, decay_days: float) -> float:
    """Return the factor of age in a summary's score: 1 for a new one, 1 - boost for an old one."""
    return 1 - boost + boost * math.exp(-max(age_days, 0.0) / decay_days)


def level_factor(level: int, boosts: Mapping[int, float]) -> float:
    """Return the factor of a summary's level; levels above the highest configured one use its factor."""
    configured = [lower for lower in boosts if lower <= level]
    return boosts[max(configured)] if configured else 1.0
