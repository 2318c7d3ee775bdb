"""Readers of JSON that the program did not write itself, or that somebody else may have changed since.

Nesting is limited to `MOST_NESTED` levels everywhere: parsers and every function that walks through a value recurse,
and a RecursionError in a stored call would break each later turn of its conversation.

Models put JSON into prose and code fences, write real line breaks in strings, encode it twice and leave commas. Every
reader of such texts uses one of these functions, so that all parts of the program understand the same call alike.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

MOST_NESTED = 64
"""Maximum nesting of lists and objects."""
_MOST_CHARS = 8 * 1024 * 1024
_MOST_SEARCHED = 2_000_000
_MOST_REPAIRED = 1_000
"""A repair takes time that grows with the square of the text; arguments of tools that only read are short."""
_MOST_TRIES = 50
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


class TooDeepError(msgspec.DecodeError, ValueError):
    """JSON nested deeper than `MOST_NESTED` levels; an error of either parser, so that callers catch what they know."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {MOST_NESTED} levels deep")


@overload
def decode_json(data: str | bytes | msgspec.Raw) -> Any: ...
@overload
def decode_json(data: str | bytes | msgspec.Raw, type: type[T]) -> T: ...
def decode_json(data: str | bytes | msgspec.Raw, type: Any = Any) -> Any:
    """Decode strict JSON of a type.

    Raises:
        msgspec.DecodeError: It is not JSON, not of this type, or nested too deeply.
    """
    try:
        value = msgspec.json.decode(data, type=type)
    except RecursionError as error:
        raise TooDeepError from error
    except UnicodeEncodeError as error:
        raise msgspec.DecodeError("it contains half of a character") from error
    return _shallow(value)


def parse_json(text: str) -> Any:
    """Parse a value that may be in a code fence, contain real line breaks in strings, or be encoded twice.

    Raises:
        ValueError: The text is not JSON, or nested too deeply.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    try:
        value = json.loads(text, strict=False)
        return _shallow(json.loads(value, strict=False) if isinstance(value, str) else value)
    except RecursionError as error:
        raise TooDeepError from error


def json_object(text: str) -> dict[str, Any]:
    """Return the object in a text; empty for anything else, or if it is huge or nested too deeply."""
    if len(text) > _MOST_CHARS:
        return {}
    try:
        value = decode_json(text)
    except TooDeepError:
        return {}
    except msgspec.DecodeError:
        value = text
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def repaired_object(text: str) -> dict[str, Any]:
    """Return the object that a malformed or truncated text was probably meant to be; empty if there is none.

    A guess: never run anything with it that changes something.
    """
    if "{" not in text or len(text) > _MOST_REPAIRED:
        return {}
    from json_repair import repair_json  # 0.1 s, and only needed for malformed texts

    try:
        return json_object(str(repair_json(text)))
    except (ValueError, RecursionError):
        return {}


def find_object(text: str, key: str) -> dict[str, Any] | None:
    """Return the first object in a text that has a key, else the first of all; None if there is none."""
    text = text[:_MOST_SEARCHED]
    first: dict[str, Any] | None = None
    decoder = json.JSONDecoder(strict=False)
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text)):
        position = candidate.find("{")
        tries = 0
        while position >= 0 and tries < _MOST_TRIES:
            tries += 1
            try:
                value, end = decoder.raw_decode(candidate, position)
                _shallow(value)
            except (ValueError, RecursionError):
                end = position + 1
            else:
                if isinstance(value, dict):
                    if key in value:
                        return value
                    first = first or value
            position = candidate.find("{", end)
    return first


def _shallow(value: Any) -> Any:
    """Return a value that is not nested too deeply.

    Raises:
        TooDeepError: It is.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_NESTED):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for container in inner for each in container if isinstance(each, dict | list)]
        if not level:
            return value
    raise TooDeepError
