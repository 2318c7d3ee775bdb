"""Names and lines of code that a turn touches: read from its texts and from the results of its calls, without an index.

A name counts if it cannot be an ordinary word: it is in backticks, qualified, or has an underscore or a capital inside.
Which scope it means, if any, is decided by the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Protocol

import msgspec

from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ToolCall, Turn
from ragforge_tui.shared.tool_calls import tool_info

MOST_NAMES = 200
"""Names of one turn that are looked up; a pasted log may have thousands."""
FEWEST_CHARS = 3
MOST_TEXTS = 200
"""Lines of a call that are kept to compare."""

_FENCE = re.compile(r"^(```++|~~~++)[^\n]*\n.*?(?:^\1|\Z)", re.M | re.S)
_QUOTED = re.compile(r"`([^`\n]{1,200})`")
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)*")
_SEPARATOR = re.compile(r"::|->|[.#]")
_CAPITAL_INSIDE = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z0-9]+[A-Z]")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_COMMON_TEXT = (
    "self this super none null true false undefined print echo str int float bool list dict set tuple len range main "
    "init test tests get put run name type data value key file path args kwargs object class function return import "
    "def var let const new string number array map filter http https www com org html json yaml toml"
)
_COMMON = frozenset(_COMMON_TEXT.split())


class Name(msgspec.Struct, frozen=True, order=True):
    """Name in a text: `parts` of a qualified one, of which the last is its own."""

    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        return self.parts[-1]

    @property
    def qualified(self) -> str:
        return ".".join(self.parts)


class Lines(msgspec.Struct, frozen=True, order=True):
    """Lines of a file that a call read or changed, both included; the whole file if `first` is 0.

    Attributes:
        texts: Some of the lines, without indentation: a file may have changed since.
    """

    path: str
    first: int = 0
    last: int = 0
    texts: tuple[str, ...] = ()


class Touched(msgspec.Struct, frozen=True):
    """Code that a turn touches.

    Attributes:
        scopes: Uuids that its code tools were about.
    """

    names: tuple[Name, ...] = ()
    lines: tuple[Lines, ...] = ()
    scopes: tuple[str, ...] = ()


def touched_by(turn: Turn) -> Touched:
    """Return the code that the messages and calls of a turn touch; replaced answers count for nothing."""
    messages = [message for message in turn.messages if message.state != "superseded"]
    names = dict.fromkeys(name for message in messages for name in names_in(message.content))
    calls = [call for message in messages for call in message.tool_calls if call.success]
    lines = dict.fromkeys(line for call in calls for line in lines_of(call))
    scopes = dict.fromkeys(uuid for call in calls for uuid in scopes_of(call))
    return Touched(tuple(names)[:MOST_NAMES], tuple(lines), tuple(scopes))


def names_in(text: str) -> list[Name]:
    """Return the names of code in a text, each once; blocks of code are skipped, since they use many."""
    prose = _FENCE.sub("\n", text)
    quoted = [Name(parts) for piece in _QUOTED.findall(prose) for parts in _parts(piece)]
    others = [Name(parts) for parts in _parts(_QUOTED.sub(" ", prose)) if _is_distinctive(parts)]
    return list(dict.fromkeys(name for name in [*quoted, *others] if _may_be_code(name.last)))


def lines_of(call: ToolCall) -> list[Lines]:
    """Return the lines that a call read or changed."""
    info = tool_info(call.tool_name)
    if call.result is None or info.access not in ("read", "write"):
        return []
    result, arguments = json_object(call.result.result), json_object(call.arguments)
    if info.access == "write":
        diff = str(result.get("diff") or "")
        paths = [file.path for file in call.files if file.access == "write"]
        diffs = _diffs_by_file(diff) if len(paths) > 1 else dict.fromkeys(paths, diff)
        return [
            Lines(path, *span, _added(diffs[path]))
            for path in paths
            if path in diffs
            for span in changed_lines(diffs[path])
        ]
    paths = [file.path for file in call.files if file.access == "read" and info.outcome == "lines"]
    first, last = arguments.get("start_line"), arguments.get("end_line")
    if not isinstance(first, int) and not isinstance(last, int):
        return [Lines(path) for path in paths]
    start = first if isinstance(first, int) else 1
    end = last if isinstance(last, int) else 2**31 - 1
    texts = _telling(line.partition("\t")[2] for line in str(result.get("text") or "").splitlines())
    return [Lines(path, start, end, texts) for path in paths]


def _diffs_by_file(diff: str) -> dict[str, str]:
    """Return the diffs of the files that a diff of several leaves, by the path after it."""
    parts = re.split(r"^(?=--- .*\n\+\+\+ )", diff, flags=re.M)
    return {found[1]: part for part in parts if (found := re.search(r"^\+\+\+ b/(.+)$", part, re.M))}


def _added(diff: str) -> tuple[str, ...]:
    return _telling(line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++"))


def _telling(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the longest of some lines, which are the least likely to occur elsewhere."""
    stripped = {line.strip() for line in lines}
    return tuple(sorted(stripped - {""}, key=lambda line: (-len(line), line))[:MOST_TEXTS])


def changed_lines(diff: str) -> list[tuple[int, int]]:
    """Return the lines of the new text that a unified diff adds or changes, without its context."""
    changed: list[int] = []
    line = removed = 0
    for text in [*diff.splitlines(), " "]:
        if removed and not text.startswith(("+", "-")):
            changed.append(removed)  # Only removed: the line above it stands for the place.
        if (hunk := _HUNK.match(text)) is not None:
            line, removed = int(hunk[1]), 0
        elif line and text.startswith("-"):
            removed = max(line - 1, 1)
        elif line:
            if text.startswith("+"):
                changed.append(line)
            line, removed = line + 1, 0
    spans: list[tuple[int, int]] = []
    for number in changed:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def scopes_of(call: ToolCall) -> list[str]:
    """Return the scopes that a code tool's call was about."""
    found = json_object(call.result.result).get("scopes") if call.result is not None else None
    return [uuid for uuid in found if isinstance(uuid, str)] if isinstance(found, list) else []


class Named(Protocol):
    """Scope that a name may mean."""

    @property
    def uuid(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def qualified_name(self) -> str: ...
    @property
    def file(self) -> str: ...


def chosen(name: Name, candidates: Iterable[Named], files: Collection[str]) -> str:
    """Return the uuid of the scope that a name means; empty if none does or several might.

    Args:
        candidates: The scopes with its last part as their name.
        files: Files that the turn touches, of which one may decide.
    """
    fitting = [one for one in candidates if one.name == name.last]
    if len(name.parts) > 1:
        fitting = [one for one in fitting if fits(name, one)]
    if len(fitting) > 1:
        fitting = [one for one in fitting if one.file in files]
    return fitting[0].uuid if len(fitting) == 1 else ""


def fits(name: Name, candidate: Named) -> bool:
    """Return whether a qualified name names a scope: by its enclosing scopes, or by its module."""
    module = candidate.file.rpartition(".")[0].replace("/", ".")
    full = f".{module}.{candidate.qualified_name}"
    return full.endswith(f".{name.qualified}")


def _parts(text: str) -> list[tuple[str, ...]]:
    return [tuple(_SEPARATOR.split(match)) for match in _NAME.findall(text)]


def _is_distinctive(parts: tuple[str, ...]) -> bool:
    last = parts[-1]
    if "_" in last.strip("_") or _CAPITAL_INSIDE.search(last):
        return True
    return len(parts) > 1 and _CAPITAL_INSIDE.search(f"{parts[-2]}A") is not None and parts[-2][:1].isupper()


def _may_be_code(last: str) -> bool:
    return len(last) >= FEWEST_CHARS and last.casefold().strip("_") not in _COMMON
