"""Editing of one setting in a settings file, which leaves every other line as the user wrote it.

Used by the settings screen and for choices that the chat saves (a theme, an allowed command). ruamel.yaml keeps order,
quotes and comments at the ends of lines; comments on lines of their own are handled here, and a value is placed right
below its commented-out default. The result is parsed again before it is written; an edit that would change anything
else is rejected.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from ragforge_tui.settings.check import checked
from ragforge_tui.settings.keys import flow_yaml
from ragforge_tui.settings.parse import parse_yaml
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, make_private, read_regular


def set_value(path: Path, key: str, value: object) -> None:
    """Set one setting in a file, which is created if it does not exist.

    Args:
        path: The settings file; a symbolic link is followed.
        key: Dotted path, such as ``tui.theme``.
        value: The new value as plain data.

    Raises:
        ConfigError: The value is invalid for this setting, or the file is not a valid settings file, cannot be
            written, or has a form that cannot be edited safely. The file is unchanged.
    """
    checked(key, value, str(path))
    parts = key.split(".")
    _edit(path, lambda data: _set(data, parts, value), placeholder=parts)


def remove_value(path: Path, key: str) -> None:
    """Remove one setting from a file, so that the value of a lower layer applies again; idempotent.

    Raises:
        ConfigError: As for `set_value`.
    """
    _edit(path, lambda data: _remove(data, key.split(".")))


def _edit(path: Path, change: Callable[[Any], None], placeholder: Sequence[str] = ()) -> None:
    """Apply a change to the file's values and to its text, and write the text if it then has the same values."""
    with _locked(path):
        text = _read(path)
        values, expected = (parse_yaml(path, text) or {} for _ in range(2))
        try:
            change(expected)
            if expected == values:
                return
            edited = _edited(text, change, placeholder)
            same = _without_empty(parse_yaml(path, edited)) == _without_empty(expected)
        except (YAMLError, AttributeError, KeyError, TypeError, ValueError, ConfigError) as error:
            raise _unsafe(path) from error
        if not same:
            raise _unsafe(path)
        _write(path, edited)


# -- files


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file's folder, so that two chats change the file one after the other."""
    folder = Path(os.path.realpath(path)).parent
    try:
        make_private(folder)
        with locked(folder):
            yield
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used: {error.strerror}.") from error


def _read(path: Path) -> str:
    try:
        return read_regular(path, STATE_BYTES).decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text.") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(Path(os.path.realpath(path)), text.encode("utf-8"), keep_mode=True)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}.", kept="The file is unchanged.") from error


def _unsafe(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} has a form that cannot be edited safely.",
        kept="The file is unchanged.",
        todo="Change the setting in the file itself.",
    )


# -- values


def _set(data: Any, parts: Sequence[str], value: object) -> None:
    """Set a value in plain data, or in the round-trip data of ruamel.yaml."""
    for part in parts[:-1]:
        if data.get(part) is None:
            data[part] = type(data)()
        data = data[part]
    old = data.get(parts[-1])
    if not isinstance(data, CommentedMap):
        data[parts[-1]] = value
    elif isinstance(old, CommentedSeq) and isinstance(value, list) and (kept := _keep_items(old, value)):
        old.extend(_editor().load(flow_yaml(item)) for item in value[kept:])
    else:
        data[parts[-1]] = _editor().load(flow_yaml(value))


def _keep_items(items: CommentedSeq, value: list[Any]) -> int:
    """Delete the items that are not next in the new list; return how many of its items are left."""
    kept = 0
    removed: list[int] = []
    for index, item in enumerate(items):
        if kept < len(value) and value[kept] == item:
            kept += 1
        else:
            removed.append(index)
    if kept:
        for index in reversed(removed):
            del items[index]
    return kept


def _remove(data: Any, parts: Sequence[str]) -> None:
    above: Any = None
    for part in parts[:-1]:
        above, data = data, data.get(part)
        if data is None:
            return
    data.pop(parts[-1], None)
    if not data and isinstance(data, CommentedMap) and not data.fa.flow_style():
        above[parts[-2]] = None


def _without_empty(data: Any) -> Any:
    """Return the values without empty sections, which have no effect."""
    if not isinstance(data, dict):
        return data
    return {key: _without_empty(value) for key, value in data.items() if value is not None and value != {}} or None


# -- the text


def _edited(text: str, change: Callable[[Any], None], placeholder: Sequence[str]) -> str:
    """Apply a change to the text; full-line comments and blank lines stay where they are.

    ruamel.yaml attaches such lines to the value above them, and would move or drop them with it. It therefore edits
    the text without them, and a line comparison puts them back. Lines that did not change are returned as written.
    """
    lines = _with_placeholder([line.rstrip("\r") for line in text.split("\n")], placeholder)
    before: list[list[str]] = [[]]
    content: list[str] = []
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            content.append(line)
            before.append([])
        else:
            before[-1].append(line)
    tail = before.pop()
    while tail and not tail[-1].strip():
        tail.pop()
    edited = _round_trip("\n".join(content), change)
    merged = [*_merged(content, before, edited), *tail] if content else [*tail, *edited]
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join(line + newline for line in merged)


def _merged(content: list[str], before: list[list[str]], edited: list[str]) -> Iterator[str]:
    """Yield the edited lines with the comments that were `before` the lines of `content`."""
    old, new = ([" ".join(line.split()) for line in lines] for lines in (content, edited))
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            for number in range(start, end):
                yield from before[number]
                yield content[number]
        else:
            if start < end:
                yield from before[start]
            yield from edited[first:last]


def _round_trip(text: str, change: Callable[[Any], None]) -> list[str]:
    """Return the lines of a text without comment lines after a change."""
    steps = [len(line) - len(line.lstrip()) for line in text.split("\n") if line.startswith(" ")]
    indented_list = re.search(r"^( *)[^\s#-][^\n]*:[^\n]*\n\1 +- ", text, re.MULTILINE)
    editor = _editor()
    editor.indent(mapping=min(steps, default=2), sequence=4 if indented_list else 2, offset=2 if indented_list else 0)
    data = editor.load(text)
    data = CommentedMap() if data is None else data
    change(data)
    stream = io.StringIO()
    editor.dump(data, stream)
    return stream.getvalue().rstrip("\n").split("\n")


def _editor() -> YAML:
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = sys.maxsize
    return editor


def _with_placeholder(lines: list[str], parts: Sequence[str]) -> list[str]:
    """Insert an empty setting below its commented-out default, as in the example file; it is set afterwards."""
    if not parts:
        return lines
    *parents, name = parts
    start, end, indent = 0, len(lines), ""
    for parent in parents:
        found = next((n for n in range(start, end) if lines[n].startswith(f"{indent}{parent}:")), None)
        if found is None:
            return lines
        outer, indent = indent, indent + "  "
        start = found + 1
        end = next((n for n in range(start, end) if re.match(rf"{outer}[^\s#]", lines[n])), end)
    section = lines[start:end]
    default = next((n for n, line in enumerate(section, start) if line.startswith(f"{indent}# {name}: ")), None)
    if default is None or any(line.startswith(f"{indent}{name}:") for line in section):
        return lines
    return [*lines[: default + 1], f"{indent}{name}:", *lines[default + 1 :]]
