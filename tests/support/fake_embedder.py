"""An embedder for tests: words that mean the same point the same way, and it counts what it is asked."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ragforge_tui.shared.errors import ModelError
from tests.support.sizes import DIMENSION

ALIKE = {"automobile": "car", "vehicle": "car", "auto": "car", "kitten": "cat", "feline": "cat", "soup": "meal"}


class FakeEmbedder:
    """Bags of words, hashed."""

    def __init__(self, name: str = "fake", dimension: int = DIMENSION) -> None:
        self.name = name
        self.dimension = dimension
        self.texts: list[str] = []
        self.broken = False
        self.stuck_after: int | None = None
        """Texts after which it never answers again; None: it always answers."""

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """See `Embedder`."""
        if self.broken:
            raise ModelError("The embedding model is away.", kind="provider")
        if self.stuck_after is not None and len(self.texts) >= self.stuck_after:
            await asyncio.Event().wait()
        self.texts += texts
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def _vector(self, text: str) -> npt.NDArray[np.float32]:
        vector = np.zeros(self.dimension, np.float32)
        for word in re.findall(r"\w+", text.casefold()):
            code = zlib.crc32(ALIKE.get(word, word).encode())
            vector[code % self.dimension] += 1 if code & 64 else -1
            vector[(code >> 8) % self.dimension] += 0.5
        norm = np.linalg.norm(vector)
        unit: npt.NDArray[np.float32] = vector / norm if norm else vector
        return unit
