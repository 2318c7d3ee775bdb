"""Names and values of the project's specification, understood in settings files.

The specification writes some settings of `agent.memory` differently: in camel case, counted in messages instead of
turns, or flat as options of its agent. Its examples load, so that a file written after it works.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ragforge_tui.settings.keys import keys, sections
from ragforge_tui.shared.errors import ConfigError

_MEMORY = "agent.memory"
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

Value = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _turns(messages: Any) -> Any:
    """Return the turns of so many messages: a turn has a question and an answer."""
    whole = isinstance(messages, int) and not isinstance(messages, bool) and messages > 0
    return math.ceil(messages / 2) if whole else messages


def _share(boost: Any) -> Any:
    return (0.5 if boost else 0.0) if isinstance(boost, bool) else boost


_OPTIONS: dict[str, tuple[tuple[str, ...], Value]] = {
    "context_strategy": (("recall.strategy",), _same),
    "enable_summarization": (("summarization.enabled",), _same),
    "summarize_every": (("summarization.every_turns",), _turns),
    "summarization.every_n_messages": (("summarization.every_turns",), _turns),
    "summarize_every_n_chars": (("summarization.every_chars", "summarization.level_chars"), _same),
    "max_turns_before_summarize": (("summarization.every_turns",), _same),
    "max_chars_before_summarize_summaries": (("summarization.level_chars",), _same),
    "embed_messages": (("embeddings.enabled",), _same),
    "recent_context_max_chars": (("recent.max_chars",), _same),
    "recent_context_max_turns": (("recent.max_turns",), _same),
    "rag_max_summaries": (("recall.max_summaries",), _same),
    "rag_min_score": (("recall.min_score",), _same),
    "rag_level_boost": (("recall.level_boost",), _same),
    "rag_recency_boost": (("recall.recency_boost",), _share),
    "rag_recency_decay_days": (("recall.recency_decay_days",), _same),
    "export_to_files": (("export.enabled",), _same),
    "export_path": (("export.path",), _same),
    "export_format": (("export.format",), _same),
    "export_on_every_message": (("export.on_every_message",), _same),
}
"""Options below `agent.memory`, in snake case: the settings they mean, and their value."""

_VALUES = {f"{_MEMORY}.persistence.type": {"neo4j": "graph", "files": "hybrid"}}
_EXPORTS = f"{_MEMORY}.export_on_every_message"
_NO_SETTINGS = {
    f"{_MEMORY}.embedding_provider": "It is an object in the specification; in a file, name a model with "
    "agent.memory.embeddings.model.",
}


def understood(path: str, value: Any, file: str) -> dict[str, Any] | None:
    """Return the settings that a key of the specification means, with their values; None for a key it does not have.

    Args:
        path: Dotted path of a key that is no setting.

    Raises:
        ConfigError: The specification has it, but a file cannot set it.
    """
    path = ".".join(_CAPITAL.sub("_", name).lower() for name in path.split("."))
    if path in keys() or path in sections():
        return {path: value}
    if path in _NO_SETTINGS:
        raise ConfigError(f"{file}: {path} is not a setting.", todo=_NO_SETTINGS[path])
    names, converted = _OPTIONS.get(path.removeprefix(f"{_MEMORY}."), ((), _same))
    if not names or not path.startswith(f"{_MEMORY}."):
        return None
    meant = {f"{_MEMORY}.{name}": converted(value) for name in names}
    if path == _EXPORTS and not meant.keys() <= keys().keys():
        return _always_exported(value, file)
    return meant


def value_of(key: str, value: Any) -> Any:
    """Return a setting's value in this program's words."""
    return _VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


def _always_exported(value: Any, file: str) -> dict[str, Any]:
    if value is True:
        return {}
    raise ConfigError(
        f"{file}: {_EXPORTS} can only be true: exports follow every stored message.",
        todo="Remove it, or set agent.memory.export.enabled to false.",
    )
