"""Token counts, offline.

The cl100k vocabulary in LiteLLM's wheel is used for every model: the counts of others differ by a few percent, which
a budget can bear. Used by conversation and memory; `litellm_loader` gives the folder.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from typing import TYPE_CHECKING

from ragforge_tui.llm.litellm_loader import litellm_folder

if TYPE_CHECKING:
    import tiktoken

logger = logging.getLogger(__name__)

CHARS_PER_TOKEN = 4
"""Rough average, for estimates that must cost nothing."""
EXACT_LIMIT = 100_000
"""Characters up to which every token is counted; longer texts are sampled."""
_SAMPLES = 8
_SAMPLE_CHARS = 4_000
_LOCK = threading.Lock()


def count_tokens(text: str) -> int:
    """Return the tokens in a text; an estimate from samples above `EXACT_LIMIT` characters."""
    if not text:
        return 0
    if len(text) <= EXACT_LIMIT:
        return _count(text)
    step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
    counted = sum(_count(text[i * step : i * step + _SAMPLE_CHARS]) for i in range(_SAMPLES))
    return max(1, round(counted * len(text) / (_SAMPLES * _SAMPLE_CHARS)))


def _count(text: str) -> int:
    encoding = _encoding()
    if encoding is None:
        return max(1, len(text.encode("utf-8", "replace")) // 4)
    return len(encoding.encode_ordinary(text))


def _encoding() -> tiktoken.Encoding | None:
    # The lock keeps a second thread from loading it while the environment is changed.
    with _LOCK:
        return _load_encoding()


@functools.cache
def _load_encoding() -> tiktoken.Encoding | None:
    folder = litellm_folder()
    vocabularies = folder / "litellm_core_utils" / "tokenizers" if folder else None
    if vocabularies is None or not vocabularies.is_dir():
        logger.warning("LiteLLM's folder has no token vocabulary; tokens are estimated.")
        return None
    import tiktoken

    # tiktoken reads the folder from the environment only; without it, it would download the vocabulary.
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabularies)
    try:
        return tiktoken.get_encoding("cl100k_base")
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
