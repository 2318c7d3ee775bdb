"""Parsing of a model's arguments into typed structs, and conversion of those structs into JSON schemas.

Used by the toolbox. Types are strict, but slips with an obvious meaning (numbers as strings, line breaks inside JSON
strings, `file_path` for `path`) are corrected, because an error costs a whole request.
"""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin

import msgspec
from msgspec import structs

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.json_text import MOST_NESTED, TooDeepError, parse_json, repaired_object
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.tools.base import REASON_SCHEMA, PassedArguments, ToolArguments

_ALIASES = {
    "path": ("file_path", "filepath", "filename", "file", "directory", "dir", "dir_path"),
    "content": ("contents", "text", "file_text"),
    "old_string": ("old_str", "old_text", "old"),
    "new_string": ("new_str", "new_text", "new"),
    "patch": ("input", "patch_text"),
    "pattern": ("regex", "regexp", "glob_pattern"),
    "query": ("search", "q"),
    "command": ("cmd", "script"),
    "background": ("run_in_background",),
    "timeout": ("timeout_seconds",),
    "message": ("text", "notice"),
    "todos": ("items", "plan"),
    "start_line": ("start", "from_line", "offset"),
    "end_line": ("end", "to_line"),
}


def schema_of(arguments: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON schema of an argument struct, with references inlined, which not every provider resolves."""
    (_,), components = msgspec.json.schema_components([arguments], ref_template="{name}")
    schema = _inline(components[arguments.__name__], components)
    assert isinstance(schema, dict)
    properties = REASON_SCHEMA | schema["properties"]
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(components[node["$ref"]], components)
    inlined = {
        key: _inline(value, components)
        for key, value in node.items()
        if (key != "title" or isinstance(value, dict)) and not (key == "default" and not value)
    }
    # Optional fields need no "may be null", and not every provider supports anyOf.
    choices = [choice for choice in inlined.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        del inlined["anyOf"]
        inlined.update(choices[0])
    return inlined


def parse(name: str, kind: type[ToolArguments], text: str, *, repair: bool = False) -> tuple[ToolArguments, list[str]]:
    """Read a model's arguments.

    Args:
        repair: Guess what malformed JSON was meant to be. Only for tools that change nothing: a truncated call would
            otherwise write half a file.

    Returns:
        The typed arguments, and the names that this tool does not have.

    Raises:
        ToolError: The arguments are not a JSON object or are invalid; the message states what was expected.
    """
    given = _object(name, text, repair=repair)
    fields = {field.name: field for field in structs.fields(kind)}
    _rename(given, set(fields))
    unknown = sorted(set(given) - set(fields))
    fitted = {
        key: _fit(value, fields[key].type)
        for key, value in given.items()
        if key in fields and not (value is None and not fields[key].required)
    }
    try:
        return msgspec.convert(fitted, kind, strict=False), unknown
    except msgspec.ValidationError as error:
        raise ToolError(
            f"The arguments of {name} are invalid: {error}.",
            todo=f"Expected: {_signature(kind)}.",
        ) from error


def pass_on(name: str, text: str, schema: dict[str, Any]) -> PassedArguments:
    """Read a model's arguments without judging them; `reason` is passed on only if the schema has it.

    Raises:
        ToolError: The arguments are not a JSON object.
    """
    given = _object(name, text, repair=False)
    known = "reason" in schema.get("properties", {})
    reason = given.get("reason", "") if known else given.pop("reason", "")
    return PassedArguments(reason=reason if isinstance(reason, str) else "", values=given)


def _object(name: str, text: str, *, repair: bool) -> dict[str, Any]:
    try:
        value = parse_json(text) if text.strip() else {}
    except TooDeepError as error:
        raise ToolError(
            f"The arguments of {name} are nested more than {MOST_NESTED} levels deep; the call did not run.",
            todo="Call it again with a flat JSON object.",
        ) from error
    except ValueError as error:
        value = repaired_object(text) if repair else None
        if not value:
            raise ToolError(
                f"The arguments of {name} are not valid JSON: {error}.",
                todo="Call it again with one complete JSON object.",
            ) from error
    if not isinstance(value, dict):
        raise ToolError(
            f"The arguments of {name} must be a JSON object, not {type(value).__name__}.",
            todo="Call it again with one JSON object.",
        )
    return {storable(key): _storable(item) for key, item in value.items()}


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        # NUL stays: a path with one is rejected explicitly, never silently changed into another path.
        return "\0".join(storable(piece) for piece in value.split("\0"))
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    return value


def _rename(given: dict[str, Any], fields: set[str]) -> None:
    for field, aliases in _ALIASES.items():
        if field not in fields or field in given:
            continue
        for alias in aliases:
            if alias in given and alias not in fields:
                given[field] = given.pop(alias)
                break


def _fit(value: Any, kind: Any) -> Any:
    """Convert a value towards the type where its meaning is unambiguous."""
    base = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    if base is str and isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False)
    if base is str and isinstance(value, int | float):
        return json.dumps(value)
    if get_origin(base) is list and isinstance(value, str):
        return _list_from(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _list_from(text: str) -> list[Any]:
    try:
        value = parse_json(text)
    except ValueError:
        return [text]
    return value if isinstance(value, list) else [text]


def _signature(kind: type[ToolArguments]) -> str:
    parts = []
    for field in structs.fields(kind):
        parts.append(field.name if field.required else f"{field.name} (optional)")
    return ", ".join(parts)
