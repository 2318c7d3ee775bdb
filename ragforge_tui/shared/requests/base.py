"""Base class of requests to the engine, generic in the type of the answer. Used by `wire` and its parts."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from ragforge_tui.shared.events import _snake

R = TypeVar("R")


class Empty(msgspec.Struct, frozen=True):
    """An answer without content."""


class Request(msgspec.Struct, Generic[R], kw_only=True, tag_field="type", tag=_snake):
    """A request whose answer is an `R`."""
