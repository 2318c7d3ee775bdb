"""Sections of text files: the text under each heading, or pieces of a limited size where there are no headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ragforge_tui.code.parsed import ParsedScope

_LONGEST_SECTION = 4000
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`*+#<>:._])\1{2,}\s*$")
_TABLE = re.compile(r"^\s*\[\[?([^\[\]]+)\]\]?\s*(?:[#;].*)?$")
_LONGEST_NAME = 120

Heading = tuple[int, int, str]
"""Index of the first line, level and text."""


def sections(name: str, language: str, lines: list[str]) -> list[ParsedScope]:
    """Divide a text into sections; a long one is divided at blank lines."""
    if language == "markdown":
        headings = list(_markdown_headings(lines))
    elif language in ("rst", "text"):
        headings = list(_underlined_headings(lines))
    elif language in ("toml", "ini"):
        headings = [(index, 1, match[1].strip()) for index, line in enumerate(lines) if (match := _TABLE.match(line))]
    else:
        headings = []
    if not headings or headings[0][0] > 0:
        headings.insert(0, (0, 0, ""))
    found: list[ParsedScope] = []
    ordinals: Counter[str] = Counter()
    above: list[tuple[int, str]] = []
    for (start, level, heading), end in zip(headings, [item[0] for item in headings[1:]] + [len(lines)], strict=True):
        above = [item for item in above if item[0] < level]
        if heading:
            above.append((level, heading[:_LONGEST_NAME]))
        qualified = ".".join(item[1] for item in above) or name
        for first, last in _pieces(lines, start, end):
            text = "\n".join(lines[first:last])
            if not text.strip():
                continue
            found.append(
                ParsedScope(
                    name=heading[:_LONGEST_NAME] or name,
                    qualified_name=qualified,
                    kind="section",
                    start_line=first + 1,
                    end_line=last,
                    ordinal=ordinals[qualified],
                    signature=" > ".join(item[1] for item in above),
                    text=text,
                )
            )
            ordinals[qualified] += 1
    return found


def _markdown_headings(lines: list[str]) -> Iterator[Heading]:
    fence = ""
    for index, line in enumerate(lines):
        if (match := _FENCE.match(line)) is not None:
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence):
                fence = ""
        elif not fence and (match := _ATX.match(line)) is not None:
            yield index, len(match[1]), match[2]
        elif (
            not fence
            and index + 1 < len(lines)
            and line.strip()
            and (index == 0 or not lines[index - 1].strip())
            and re.fullmatch(r" {0,3}(=+|-{3,})\s*", lines[index + 1])
        ):
            yield index, 1 if "=" in lines[index + 1] else 2, line.strip()


def _underlined_headings(lines: list[str]) -> Iterator[Heading]:
    levels: list[str] = []
    for index in range(len(lines) - 1):
        title, mark = lines[index].strip(), _UNDERLINE.match(lines[index + 1])
        if not title or mark is None or _UNDERLINE.match(lines[index]) or len(mark[0].strip()) < len(title):
            continue
        if index and lines[index - 1].strip() and _UNDERLINE.match(lines[index - 1]) is None:
            continue
        if mark[1] not in levels:
            levels.append(mark[1])
        overlined = index > 0 and _UNDERLINE.match(lines[index - 1]) is not None
        yield index - overlined, levels.index(mark[1]) + 1, title


def _pieces(lines: list[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Divide a range of lines into pieces of a limited size, at the last blank line of each if there is one."""
    while start < end:
        size, stop, blank = 0, start, 0
        while stop < end and (stop == start or size + len(lines[stop]) < _LONGEST_SECTION):
            size += len(lines[stop]) + 1
            stop += 1
            if stop < end and not lines[stop].strip():
                blank = stop
        if stop < end and blank > start:
            stop = blank
        yield start, stop
        start = stop
