"""Retrying of requests that failed for a reason that may pass."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Unavailable(Exception):
    """The service did not answer, or answered 5xx."""


def with_retries(call: Callable[[], T], *, attempts: int = 4, base: float = 0.5) -> T:
    """Return the call's result, retrying with exponential backoff."""
    for attempt in range(attempts):
        try:
            return call()
        except Unavailable:
            time.sleep(random.uniform(0, base * 2**attempt))
    raise Unavailable(f"no answer after {attempts} attempts")
