"""Imports of an engine, made in advance by the host, and the environment variables they read or set.

Libraries read variables once, when they are imported. So an engine is forked only for a chat in which all of these
variables have the values that the host had.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_ENGINE = ("ragforge_tui.engine.server", "ragforge_tui.graph.repositories", "neo4j", "numpy")


class ImportedEnvironment:
    """Variables that modules read or set while they were imported."""

    def __init__(self) -> None:
        self._before = dict(os.environb)
        self._read: set[bytes] = set()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what modules read at import inside the context; a function will read its variables again anyway."""
        environment: Any = type(os.environ)
        original = environment.__getitem__
        outside = sys._getframe(2)

        def recording(variables: Any, name: str) -> str:
            if (encoded := os.fsencode(name)) not in self._read and _by_module(sys._getframe(1), outside):
                self._read.add(encoded)
            value: str = original(variables, name)
            return value

        environment.__getitem__ = recording
        try:
            yield
        finally:
            environment.__getitem__ = original

    def differing(self, environment: Mapping[bytes, bytes]) -> list[str]:
        """Return the variables that were read, not set, and have another value in `environment`."""
        compared = self._read - set(self.changes())
        return sorted(os.fsdecode(name) for name in compared if self._before.get(name) != environment.get(name))

    def changes(self) -> dict[bytes, bytes]:
        """Return variables with the values that modules have given them."""
        return {name: value for name, value in os.environb.items() if self._before.get(name) != value}


def _by_module(frame: FrameType | None, outside: FrameType) -> bool:
    while frame is not None and frame is not outside:
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def import_engine() -> None:
    """Import the modules an engine needs before its first request to a model."""
    for name in _ENGINE:
        importlib.import_module(name)


def import_model() -> None:
    """Import LiteLLM, as an engine does before its first request."""
    from ragforge_tui.llm.litellm_loader import load_litellm

    load_litellm()


def load_encoder() -> None:
    """Load the local embedding model, whose 120 MB all engines then share."""
    from ragforge_tui.llm.embeddings import load_local_model

    load_local_model()
