"""Validation of a setting's value against its definition, with an error that states what was expected and found.

Used for values from files, variables and flags (`load.py`) and from the settings screen (`edit.py`).
It is separate from both, so that a value typed on the screen is validated like one in a file.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ragforge_tui.settings.keys import SECRET_KEYS, Section, expected, keys, sections
from ragforge_tui.settings.schema import Settings
from ragforge_tui.shared.errors import ConfigError, ModelError
from ragforge_tui.shared.keys_in_use import hide, usable_key

GRAPH_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def checked(key: str, value: Any, origin: str, *, where: str = "", strict: bool = True) -> Any:
    """Return a value converted to its setting's type.

    Args:
        key: Dotted path of the setting.
        value: The value as parsed or typed.
        origin: The file, variable or flag it comes from.
        where: Start of the error message; empty: the origin and the key.
        strict: Whether a text is no number; in the environment it may be one.

    Raises:
        ConfigError: The setting does not exist, or the value is invalid.
    """
    entry = keys().get(key)
    if entry is None:
        raise unknown(key, sections().get(key.rpartition(".")[0], sections()[""]), origin)
    where = where or f"{origin}: {key}"
    try:
        typed = msgspec.convert(value, entry.type, strict=strict)
        if isinstance(typed, float) and not math.isfinite(typed):
            raise ValueError("not finite")
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: expected {expected(entry.type)}; found {found(key, value)}.") from error
    if key == "graph.uri":
        return _graph_uri(typed, where)
    if key == "model.api_base" and typed and not typed.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: expected a URL with http:// or https://; found {found(key, value)}.")
    if key == "model.api_key":
        try:
            return usable_key(typed, where)
        except ModelError as error:
            raise ConfigError(error.info.what, todo=error.info.todo) from None
    if key in SECRET_KEYS:
        hide(typed)
    return typed


def unknown(key: str, section: Section, origin: str) -> ConfigError:
    """Return the error for an unknown key, with a suggestion."""
    name = key.rpartition(".")[2]
    similar = difflib.get_close_matches(name, section.names, n=1)
    same_name = [path for path in (*keys(), *sections()) if path.rpartition(".")[2] == name]
    if similar:
        hint = f"Did you mean {section.path + '.' if section.path else ''}{similar[0]}?"
    elif same_name:
        hint = f"Did you mean {same_name[0]}?"
    else:
        hint = f"Possible here: {', '.join(section.names)}."
    return ConfigError(f"{origin}: {reprlib.repr(key)[1:-1]} is not a setting.", todo=hint)


def found(key: str, value: Any) -> str:
    """Describe a value for an error message: shortened if long, and without the value of a secret."""
    kinds: dict[type, str] = {str: "the string", int: "the whole number", float: "the number"}
    others: dict[type, str] = {list: "a list", dict: "a mapping"}
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = kinds.get(type(value))
    if kind is None:
        return others.get(type(value), f"a {type(value).__name__}")
    return kind if key in SECRET_KEYS else f"{kind} {reprlib.repr(value)}"


def _graph_uri(uri: str, where: str) -> str:
    if uri in ("", "embedded"):
        return ""  # with "embedded", a flag or a variable overrides a URI of a lower layer
    scheme, separator, host = uri.partition("://")
    if not separator or scheme.lower() not in GRAPH_SCHEMES or not host:
        raise ConfigError(
            f"{where}: expected 'embedded' or a URI with one of {', '.join(GRAPH_SCHEMES)}; "
            f"found {reprlib.repr(uri.rpartition('@')[2])}.",
            todo="For example bolt://localhost:7687.",
        )
    return uri


def remarks(settings: Settings) -> list[str]:
    """Return a sentence about each valid setting that does less than a user may expect."""
    host = urlsplit(settings.graph.uri).hostname or "localhost"
    if settings.agent.memory.persistence.type == "hybrid" and host not in LOCAL_HOSTS:
        return [
            f"New texts are stored in files of this machine (agent.memory.persistence.type: hybrid), but the graph is "
            f"on {host}: other machines that use it cannot read them."
        ]
    return []
