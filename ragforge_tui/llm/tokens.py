"""Counts tokens, offline.

The cl100k vocabulary that LiteLLM carries in its wheel is used for every model: counts of others differ by some
percent, which a budget can bear. Used by the conversation and memory rooms; leans on `library` for the folder.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from typing import TYPE_CHECKING

from ragforge_tui.llm.library import litellm_folder

if TYPE_CHECKING:
    import tiktoken

logger = logging.getLogger(__name__)

EXACT_LIMIT = 100_000
"""Characters up to which every token is counted; longer texts are sampled."""
_SAMPLES = 8
_SAMPLE_CHARS = 4_000
_LOCK = threading.Lock()


def count_tokens(text: str) -> int:
    """Tokens of a text; an estimate from samples above `EXACT_LIMIT` characters."""
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
        logger.warning("No token vocabulary found beside LiteLLM; tokens are estimated.")
        return None
    import tiktoken

    # tiktoken takes the folder from the environment only, and would else look for the vocabulary on the network.
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabularies)
    try:
        return tiktoken.get_encoding("cl100k_base")
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
