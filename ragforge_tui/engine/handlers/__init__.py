"""Handlers of the requests to the engine, one file a subject; importing this package registers them."""

from ragforge_tui.engine.handlers import (
    code,
    extensions,
    findings,
    imports,
    memory,
    models,
    past,
    personas,
    rules,
    sessions,
    turns,
    work,
)
from ragforge_tui.engine.registry import EngineContext, answer, request_decoder

__all__ = [
    "EngineContext",
    "answer",
    "code",
    "extensions",
    "findings",
    "imports",
    "memory",
    "models",
    "past",
    "personas",
    "request_decoder",
    "rules",
    "sessions",
    "turns",
    "work",
]
