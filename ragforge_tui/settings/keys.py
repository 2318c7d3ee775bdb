"""Keys of the settings with path, type, default and description, read from their definition.

Used by `load.py` to check a file, by the command line (`config show`, `config init`) and by the test that keeps
config.example.yaml up to date. Separate from loading, because a manual needs no files.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from ragforge_tui.settings.schema import Settings

SECRET_KEYS = frozenset({"model.api_key", "graph.password"})
"""Settings whose values are never shown, not even in errors."""

EXAMPLE_HEAD = """\
# Settings of ragforge-chat. Every setting is listed with its default; remove the '# ' to change one.
# Generated from the definition by `python -m ragforge_tui.settings.load --example`.
#
# Precedence: flag, then environment, then ./.ragforge/config.yaml of the workspace (which may only set
# personas.default, tui, tools.ignore and agent.memory.summarization without its model), then this file.
"""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One setting.

    Attributes:
        path: Dotted path, such as ``agent.memory.recall.scope``.
        type: Type as annotated in the definition, with its constraints.
        default: Default as plain data.
    """

    path: str
    type: Any
    default: Any

    @property
    def description(self) -> str:
        """The sentence in the definition; looked up when it is used, because the start of the chat needs none."""
        info = inspect.type_info(self.type)
        if isinstance(info, inspect.Metadata) and info.extra_json_schema:
            return str(info.extra_json_schema.get("description", ""))
        return ""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Group of settings; `path` is empty for the root."""

    path: str
    description: str
    names: list[str]


@cache
def _definition() -> tuple[Key | Section, ...]:
    """Return all sections and settings in the order of their definition."""
    return tuple(_walk(Settings, "", Settings()))


@cache
def keys() -> dict[str, Key]:
    """Return all settings by dotted path, in the order of their definition."""
    return {entry.path: entry for entry in _definition() if isinstance(entry, Key)}


@cache
def sections() -> dict[str, Section]:
    """Return all sections by dotted path; the root has the empty path."""
    return {entry.path: entry for entry in _definition() if isinstance(entry, Section)}


def _walk(struct: type[msgspec.Struct], path: str, defaults: Any) -> Iterator[Key | Section]:
    fields = msgspec.structs.fields(struct)
    doc = (struct.__doc__ or "").strip().splitlines()
    yield Section(path=path, description=doc[0] if doc else "", names=[field.name for field in fields])
    for field in fields:
        below = f"{path}.{field.name}" if path else field.name
        default = getattr(defaults, field.name)
        if isinstance(default, msgspec.Struct):
            yield from _walk(type(default), below, default)
        else:
            yield Key(path=below, type=field.type, default=default)


def expected(annotated: Any) -> str:
    """Describe a type in words, such as ``a whole number, at least 1``."""
    return _words(inspect.type_info(annotated))


def _words(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata():
            return _words(info.type)
        case inspect.UnionType():
            inner = [_words(member) for member in info.types if not isinstance(member, inspect.NoneType)]
            bounded = any(", " in words for words in inner)
            return (", or " if bounded else " or ").join([*inner, "null"] if info.includes_none else inner)
        case inspect.IntType():
            return "a whole number" + _bounds(info)
        case inspect.FloatType():
            return "a number" + _bounds(info)
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a string"
        case inspect.LiteralType():
            return "one of " + ", ".join(sorted(map(str, info.values)))
        case inspect.ListType():
            return f"a list, each entry {_words(info.item_type)}"
        case inspect.DictType():
            return f"a mapping from {_words(info.key_type)} to {_words(info.value_type)}"
        case inspect.StructType():
            return f"a mapping with {', '.join(field.name for field in info.fields)}"
        case _:
            raise TypeError(f"the settings' definition uses a type without a description: {info!r}")


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    parts = (("at least", info.ge), ("more than", info.gt), ("at most", info.le), ("less than", info.lt))
    bounds = " and ".join(f"{word} {bound:g}" for word, bound in parts if bound is not None)
    return f", {bounds}" if bounds else ""


def example_yaml() -> str:
    """Return the text of config.example.yaml."""
    lines = [EXAMPLE_HEAD]
    for entry in _definition():
        depth = entry.path.count(".")
        indent, name = "  " * depth, entry.path.rpartition(".")[2]
        if isinstance(entry, Section):
            if entry.path:
                lines += [] if depth else [""]
                lines.append(f"{indent}{name}:  # {entry.description}")
            continue
        plain = isinstance(entry.default, bool | str) and "one of" not in expected(entry.type)
        lines += textwrap.wrap(
            entry.description if plain else f"{entry.description} ({expected(entry.type)})",
            width=112,
            initial_indent=f"{indent}# ",
            subsequent_indent=f"{indent}# ",
        )
        lines.append(f"{indent}# {name}: {flow_yaml(entry.default)}")
    return "\n".join(lines) + "\n"


def flow_yaml(value: Any) -> str:
    """Return a value on one line of YAML: as JSON, except that number keys stay numbers."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow_yaml(key)}: {flow_yaml(item)}" for key, item in value.items()) + "}"
    text = json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML reads 1e-05 as a string
    return text
