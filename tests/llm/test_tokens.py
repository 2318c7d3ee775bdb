"""Token counts: exact for usual texts, estimated for large ones, never from a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ragforge_tui.llm import count_tokens
from ragforge_tui.llm.tokens import EXACT_LIMIT

ROOT = Path(__file__).parents[2]


def test_known_counts() -> None:
    assert count_tokens("") == 0
    assert count_tokens("hello world") == 2
    assert count_tokens("<|endoftext|>") > 1
    assert count_tokens("lone \ud800 surrogate") > 2


def test_large_texts_are_estimated_closely() -> None:
    sentence = "The quick brown fox jumps over the lazy dog; def f(x): return x + 1\n"
    exact = count_tokens(sentence * 100) / 100
    times = EXACT_LIMIT // len(sentence) * 5
    assert abs(count_tokens(sentence * times) - exact * times) < exact * times * 0.05


def test_counting_needs_neither_litellm_nor_a_network() -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from ragforge_tui.llm import count_tokens\n"
        "assert count_tokens('hello world') == 2\n"
        "sys.exit(1 if 'litellm' in sys.modules else 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TIKTOKEN_CACHE_DIR": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
