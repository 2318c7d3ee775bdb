"""One setting's value against its definition: what it must be, and an error that says what it is instead.

Used wherever a value comes in: files, variables and flags (`config_files.py`), and the settings screen
(`config_edit.py`). Apart from both, so that a value typed on the screen is judged as one in a file is.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from typing import Any

import msgspec

from ragforge_tui.config_keys import SECRET_KEYS, Section, expected, keys, sections
from ragforge_tui.errors import ConfigError

GRAPH_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


def checked(key: str, value: Any, origin: str, *, where: str = "") -> Any:
    """The value as its setting's type.

    Args:
        key: Dotted path of the setting.
        value: What was found or typed.
        origin: The file, variable or flag it comes from.
        where: What an error begins with; empty: the origin and the key.

    Raises:
        ConfigError: There is no such setting, or this is no value for it.
    """
    entry = keys().get(key)
    if entry is None:
        raise unknown(key, sections().get(key.rpartition(".")[0], sections()[""]), origin)
    where = where or f"{origin}: {key}"
    try:
        typed = msgspec.convert(value, entry.type)
        if isinstance(typed, float) and not math.isfinite(typed):
            raise ValueError("not finite")
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: expected {expected(entry.type)}; found {found(key, value)}.") from error
    if key == "graph.uri":
        return _graph_uri(typed, where)
    if key == "model.api_base" and typed and not typed.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: expected a URL with http:// or https://; found {found(key, value)}.")
    return typed


def unknown(key: str, section: Section, origin: str) -> ConfigError:
    """The error for a key that is no setting, with what was probably meant."""
    name = key.rpartition(".")[2]
    near = difflib.get_close_matches(name, section.names, n=1)
    elsewhere = [path for path in (*keys(), *sections()) if path.rpartition(".")[2] == name]
    if near:
        guess = f"Did you mean {section.path + '.' if section.path else ''}{near[0]}?"
    elif elsewhere:
        guess = f"Did you mean {elsewhere[0]}?"
    else:
        guess = f"Possible here: {', '.join(section.names)}."
    return ConfigError(f"{origin}: {reprlib.repr(key)[1:-1]} is not a setting.", todo=guess)


def found(key: str, value: Any) -> str:
    """A value in words, cut when long and never a secret's."""
    kinds: dict[type, str] = {str: "the text", int: "the whole number", float: "the number"}
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
        return ""  # "embedded" is how a flag or a variable takes a URI of a lower layer back
    scheme, separator, host = uri.partition("://")
    if not separator or scheme.lower() not in GRAPH_SCHEMES or not host:
        raise ConfigError(
            f"{where}: expected 'embedded' or a URI with one of {', '.join(GRAPH_SCHEMES)}; "
            f"found {reprlib.repr(uri.rpartition('@')[2])}.",
            todo="For example bolt://localhost:7687.",
        )
    return uri
