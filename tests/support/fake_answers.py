"""Answers of the fake engine: methods that name the requests they answer, as handlers of the engine do.

A new request needs one method, in the part of the fake that knows its subject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from ragforge_tui.shared.wire import Request

Method = TypeVar("Method", bound=Callable[..., Any])


def answers(kind: type[Request[Any]]) -> Callable[[Method], Method]:
    """Let the decorated method answer requests of this type."""

    def mark(method: Method) -> Method:
        method.kind = kind  # type: ignore[attr-defined]
        return method

    return mark


def collected(*parts: object) -> dict[type[Request[Any]], Callable[[Any], Any]]:
    """Return the methods of these objects by the requests they answer."""
    found: dict[type[Request[Any]], Callable[[Any], Any]] = {}
    for part in parts:
        for name in dir(type(part)):
            kind = getattr(getattr(type(part), name), "kind", None)
            if isinstance(kind, type) and issubclass(kind, Request):
                assert kind not in found, f"{kind.__name__} is answered twice"
                found[kind] = getattr(part, name)
    return found


def result_type(request: Request[Any]) -> Any:
    """Return the type of the result that a request asks for."""
    return get_args(type(request).__orig_bases__[0])[0]  # type: ignore[attr-defined]
