"""Vectors of turns as rows of one array, compared with a question's vector all at once.

Separate from `ConversationIndex`, which uses two views: each turn's own cosine, and that of the turn pooled with its
neighbours. The pooled vectors are never built: the product of a sum is the sum of the products, so shifting the
products and knowing the sums' lengths is enough.
"""

from __future__ import annotations

import numpy as np

from ragforge_tui.memory.recall import scoring
from ragforge_tui.memory.recall.scoring import Floats, View

POOL_WEIGHT = 0.5
"""Weight of the neighbours' vectors in the pooled view; a turn's own weighs 1."""
TINY = 1e-6


class TurnVectors:
    """Unit vectors by row; a row may have none."""

    def __init__(self, size: int) -> None:
        self._rows: Floats | None = None
        self._used = 0
        """Rows up to the last one that was set; the rest is spare capacity."""
        self.known = np.zeros(size, bool)
        self._norms: Floats | None = None

    def grow(self, size: int) -> None:
        """Enlarge the arrays to `size` rows."""
        more = size - len(self.known)
        self.known = np.pad(self.known, (0, more))
        if self._rows is not None:
            self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._norms = None

    def put(self, row: int, vector: Floats | None) -> None:
        """Set a row's vector; None marks it as unknown."""
        if vector is not None:
            if self._rows is None:
                self._rows = np.zeros((len(self.known), len(vector)), np.float32)
            self._rows[row] = vector
        elif self._rows is not None:
            self._rows[row] = 0
        self._used = max(self._used, row + 1)
        self.known[row] = vector is not None
        self._update_norms(row)

    def get(self, row: int) -> Floats | None:
        """Return a row's vector, None if it is unknown."""
        return self._rows[row] if self._rows is not None and self.known[row] else None

    def views(self, question: Floats) -> dict[str, View]:
        """Return cosines of a question with each row, and with each row pooled with its neighbours; empty without rows.

        A row without a vector has no cosine; pooled, it has one as soon as a neighbour has a vector.
        """
        if self._rows is None:
            return {}
        # Not BLAS, whose threads wait for each other on a busy machine: this always takes 1 ms at 10 000 turns.
        products: Floats = np.zeros(len(self._rows), np.float32)
        np.einsum("ij,j->i", self._rows[: self._used], question.astype(np.float32), out=products[: self._used])
        norms = self._pooled_norms(self._rows)
        pooled = scoring.neighbours(products, POOL_WEIGHT) / norms
        return {"cosine": (products, self.known), "pooled": (pooled, norms > TINY)}

    def _pooled_norms(self, rows: Floats) -> Floats:
        if self._norms is None:
            pooled = rows.copy()
            pooled[1:] += POOL_WEIGHT * rows[:-1]
            pooled[:-1] += POOL_WEIGHT * rows[1:]
            self._norms = np.maximum(np.linalg.norm(pooled, axis=1), TINY).astype(np.float32)
        return self._norms

    def _update_norms(self, changed: int) -> None:
        if self._norms is None or self._rows is None:
            return
        for row in range(max(changed - 1, 0), min(changed + 2, len(self._rows))):
            pooled = self._rows[row].copy()
            if row > 0:
                pooled += POOL_WEIGHT * self._rows[row - 1]
            if row + 1 < len(self._rows):
                pooled += POOL_WEIGHT * self._rows[row + 1]
            self._norms[row] = max(float(np.linalg.norm(pooled)), TINY)
