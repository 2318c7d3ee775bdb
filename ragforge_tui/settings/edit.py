"""Editing of one setting in a settings file, which leaves every other character as the user wrote it.

Used by the settings screen and for choices that the chat saves (a theme, an allowed command). The file's text is edited
at the positions that the YAML parser reports instead of being generated from its values. This preserves comments, order
and quotes, and places a value right below its commented-out default. The result is parsed again before it is written;
an edit that would change anything else is rejected.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from ragforge_tui.settings.check import checked
from ragforge_tui.settings.keys import flow_yaml
from ragforge_tui.settings.parse import parse_yaml
from ragforge_tui.shared.errors import ConfigError

_STEP = 2
_Range = tuple[int, int]


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
    with _locked(path):
        text = _read(path)
        data = parse_yaml(path, text)
        expected = _with(data, key.split("."), value, path)
        _write_checked(path, _set(path, text, key.split("."), value), expected)


def remove_value(path: Path, key: str) -> None:
    """Remove one setting from a file, so that the value of a lower layer applies again; idempotent.

    Raises:
        ConfigError: As for `set_value`.
    """
    parts = key.split(".")
    with _locked(path):
        text = _read(path)
        expected = parse_yaml(path, text)
        section = _lookup(expected, parts[:-1])
        if not isinstance(section, dict) or parts[-1] not in section:
            return
        del section[parts[-1]]
        _write_checked(path, _remove(path, text, parts), expected)


# -- files


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file's folder, so that two chats change the file one after the other."""
    folder = Path(os.path.realpath(path)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text.") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error


def _write_checked(path: Path, text: str, expected: Any) -> None:
    try:
        same = _without_empty(parse_yaml(path, text)) == _without_empty(expected)
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(
            f"{path} has a form that cannot be edited safely.",
            kept="The file is unchanged.",
            todo="Change the setting in the file itself.",
        )
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}.", kept="The file is unchanged.") from error


# -- values


def _lookup(data: Any, parts: list[str]) -> Any:
    for part in parts:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def _without_empty(data: Any) -> Any:
    """Return the values without empty sections, which have no effect."""
    if not isinstance(data, dict):
        return data
    return {key: _without_empty(value) for key, value in data.items() if value is not None and value != {}} or None


def _with(data: Any, parts: list[str], value: object, path: Path) -> Any:
    """Set one value in the file's values, with the missing sections above it, and return them."""
    whole = {} if data is None else data
    node = whole
    for part in parts[:-1]:
        if not isinstance(node, dict):
            raise ConfigError(f"{path}: expected a mapping above {'.'.join(parts)}.")
        if node.get(part) is None:
            node[part] = {}
        node = node[part]
    if not isinstance(node, dict):
        raise ConfigError(f"{path}: expected a mapping above {'.'.join(parts)}.")
    node[parts[-1]] = value
    return whole


# -- the text


def _compose(path: Path, text: str) -> yaml.MappingNode | None:
    """Parse a valid text into nodes with their positions; None for a text without any setting."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return None
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}: expected a mapping of settings.")
    return node


def _entry(node: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in node.value if str(key.value) == name), None)


def _set(path: Path, text: str, parts: list[str], value: object) -> str:
    node = _compose(path, text)
    if node is None:
        return _after_line(text, len(text), _block(parts, value, 0))
    for depth, name in enumerate(parts):
        if node.flow_style:
            return _replace_flow(text, node, parts[depth:], value)
        entry = _entry(node, name)
        last = depth == len(parts) - 1
        if entry is None:
            indent = node.start_mark.column
            lines = _block(parts[depth:], value, indent)
            commented = _commented(text, _span(text, node), indent, name) if last else None
            return _after_line(text, commented or _end(text, node), lines)
        key, below = entry
        _refuse_alias(path, key, below)
        if last:
            return _replace(text, key, below, value)
        if not isinstance(below, yaml.MappingNode):  # an empty section
            return _fill(text, key, parts[depth + 1 :], value)
        node = below
    raise AssertionError("a key has at least one part")


def _fill(text: str, key: yaml.Node, parts: list[str], value: object) -> str:
    """Add the first value to a section that is empty or holds only comments."""
    start = _line_end(text, key.end_mark.index)
    end = start
    indent = key.start_mark.column
    inner = 0
    for begin, finish in _lines(text, start):
        line = text[begin:finish]
        column = len(line) - len(line.lstrip())
        if line.strip() and column <= indent:
            break
        if line.strip():
            end = finish
            inner = inner or column
    inner = inner or indent + _STEP
    commented = _commented(text, (start, end), inner, parts[0]) if len(parts) == 1 else None
    return _after_line(text, commented or end, _block(parts, value, inner))


def _replace(text: str, key: yaml.Node, below: yaml.Node, value: object) -> str:
    """Replace the value of an existing key."""
    colon = text.index(":", key.end_mark.index) + 1
    block = isinstance(below, yaml.CollectionNode) and not below.flow_style
    if block and isinstance(value, list) and isinstance(below, yaml.SequenceNode):
        edited = _change_items(text, below, value)
        if edited is not None:
            return edited
    if isinstance(below, yaml.ScalarNode) and below.style in ("|", ">"):
        block = True
    start = colon if block or below.start_mark.index == below.end_mark.index else below.start_mark.index
    space = " " if start == colon else ""
    return text[:start] + space + flow_yaml(value) + text[_end(text, below) if block else below.end_mark.index :]


def _change_items(text: str, node: yaml.SequenceNode, value: list[Any]) -> str | None:
    """Remove and append items of a list line by line, so that the comments between them stay.

    Returns:
        None if no old item is kept, in which case the list is written as a whole.
    """
    items = [yaml.safe_load(yaml.serialize(item)) for item in node.value]
    kept = 0
    removed: list[yaml.Node] = []
    for item, item_node in zip(items, node.value, strict=True):
        if kept < len(value) and value[kept] == item:
            kept += 1
        else:
            removed.append(item_node)
    if not kept:
        return None
    indent = node.start_mark.column
    text = _after_line(text, _end(text, node), [f"{' ' * indent}- {flow_yaml(item)}" for item in value[kept:]])
    for item_node in reversed(removed):
        start, end = _whole_lines(text, item_node.start_mark.index, item_node)
        text = text[:start] + text[end:]
    return text


def _remove(path: Path, text: str, parts: list[str]) -> str:
    node = _compose(path, text)
    for depth, name in enumerate(parts):
        if node is None or (entry := _entry(node, name)) is None:
            return text
        if node.flow_style:
            data = yaml.safe_load(yaml.serialize(node))
            _lookup(data, parts[depth:-1]).pop(parts[-1])
            return text[: node.start_mark.index] + flow_yaml(data) + text[node.end_mark.index :]
        key, below = entry
        _refuse_alias(path, key, below)
        if depth == len(parts) - 1:
            start, end = _whole_lines(text, key.start_mark.index, below)
            return text[:start] + text[end:]
        node = below if isinstance(below, yaml.MappingNode) else None
    return text


def _replace_flow(text: str, node: yaml.MappingNode, parts: list[str], value: object) -> str:
    data = _with(yaml.safe_load(yaml.serialize(node)), parts, value, Path())
    return text[: node.start_mark.index] + flow_yaml(data) + text[node.end_mark.index :]


def _refuse_alias(path: Path, key: yaml.Node, value: yaml.Node) -> None:
    if value.start_mark.index < key.end_mark.index:
        raise ConfigError(
            f"{path}: {key.value} is an alias of a value defined elsewhere.",
            todo="Change the setting in the file itself.",
        )


def _block(parts: list[str], value: object, indent: int) -> list[str]:
    """Return the lines of a setting, with the missing sections above it."""
    lines = [f"{' ' * (indent + _STEP * depth)}{part}:" for depth, part in enumerate(parts)]
    lines[-1] += f" {flow_yaml(value)}"
    return lines


# -- lines


def _lines(text: str, start: int) -> Iterator[_Range]:
    while start < len(text):
        end = _line_end(text, start)
        yield start, end
        start = end


def _line_end(text: str, index: int) -> int:
    """Return the offset after the line that holds `index`."""
    newline = text.find("\n", index)
    return len(text) if newline < 0 else newline + 1


def _end(text: str, node: yaml.Node) -> int:
    """Return the offset where a block ends, without the comments and blank lines that the parser includes."""
    start = node.start_mark.index
    end = start
    literal = isinstance(node, yaml.ScalarNode)
    for begin, finish in _lines(text, start):
        if begin >= node.end_mark.index:
            break
        line = text[begin : min(finish, node.end_mark.index)].rstrip("\r\n")
        if line.strip() and (literal or not line.lstrip().startswith("#")):
            end = begin + len(line)
    return end


def _span(text: str, node: yaml.Node) -> _Range:
    """Return the range of all lines of a block, with the comments before its first and after its last setting."""
    indent = node.start_mark.column
    start = text.rfind("\n", 0, node.start_mark.index) + 1
    while start:
        begin = text.rfind("\n", 0, start - 1) + 1
        line = text[begin:start].strip()
        if line and not line.startswith("#"):
            break
        start = begin
    end = _line_end(text, _end(text, node))
    for begin, finish in _lines(text, end):
        line = text[begin:finish]
        if line.strip() and (not line.lstrip().startswith("#") or len(line) - len(line.lstrip()) < indent):
            break
        end = finish
    return start, end


def _commented(text: str, span: _Range, indent: int, name: str) -> int | None:
    """Return the end of the line with a setting's commented-out default, as in the example file; None without one."""
    for begin, finish in _lines(text, span[0]):
        if begin >= span[1]:
            return None
        if text.startswith(f"{' ' * indent}# {name}: ", begin):
            return finish
    return None


def _whole_lines(text: str, start: int, node: yaml.Node) -> _Range:
    block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    literal = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    end = _end(text, node) if block or literal else node.end_mark.index
    return text.rfind("\n", 0, start) + 1, _line_end(text, max(end, start))


def _after_line(text: str, index: int, lines: list[str]) -> str:
    """Insert `lines` after the line that holds `index` or ends there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    at = index if text[:index].endswith("\n") else _line_end(text, index)
    head = text[:at]
    if head and not head.endswith("\n"):
        head += newline
    return head + "".join(line + newline for line in lines) + text[at:]
