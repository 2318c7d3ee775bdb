"""Source code and diffs as lines: few colours, from the palette, so that they follow the theme.

Used for fences in Markdown and by tool calls. Pygments is imported at the first fence, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from rich.style import Style

from ragforge_tui.tui.transcript.lines import Line, Run, clean, wrap
from ragforge_tui.tui.transcript.palette import Palette

_MAX_HIGHLIGHTED = 200_000
_DIFF_NAMES = frozenset({"diff", "patch", "udiff"})


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    """A Pygments lexer, or None. Pygments has no types of its own, so it is imported by name."""
    lexers = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except import_module("pygments.util").ClassNotFound:
        return None


def _token_style(name: str, palette: Palette) -> Style:
    """The style of a Pygments token, by the dotted name of its type."""
    match name.split(".")[1:]:
        case ["Comment", *_] | ["Literal", "String", "Doc"]:
            return palette.comment
        case ["Keyword", "Constant"] | ["Literal", "Number", *_]:
            return palette.number
        case ["Keyword", *_]:
            return palette.keyword
        case ["Literal", "String", *_]:
            return palette.string
        case ["Name", ("Function" | "Class" | "Decorator" | "Tag" | "Namespace"), *_]:
            return palette.name
        case _:
            return palette.text


def highlight(code: str, language: str, palette: Palette) -> list[Run]:
    """Runs of cleaned code; plain when the language is unknown or the code very long."""
    if language.lower() in _DIFF_NAMES:
        return [run for line in code.split("\n") for run in (_diff_run(line, palette), ("\n", palette.text))][:-1]
    lexer = _lexer(language.lower()) if language and len(code) <= _MAX_HIGHLIGHTED else None
    if lexer is None:
        return [(code, palette.text)]
    styles: dict[object, Style] = {}
    runs: list[Run] = []
    for kind, text in lexer.get_tokens(code):
        style = styles.get(kind)
        if style is None:
            style = styles[kind] = _token_style(str(kind), palette)
        runs.append((text, style))
    return runs


def _diff_run(line: str, palette: Palette) -> Run:
    if line.startswith(("+++", "---")):
        return line, palette.muted
    if line.startswith("+"):
        return line, palette.added
    if line.startswith("-"):
        return line, palette.removed
    if line.startswith("@@"):
        return line, palette.hunk
    return line, palette.text


def code_lines(
    code: str, language: str, width: int, palette: Palette, *, prefix: Sequence[Run] | None = None
) -> list[Line]:
    """Code behind a thin bar; lines too long are folded at the last cell."""
    bar = prefix if prefix is not None else [("  │ ", palette.faint)]
    runs = highlight(clean(code).removesuffix("\n"), language, palette)
    # Every line of code is a first line: its bar is decoration as that of a folded rest is.
    return [line for part in _by_line(runs) for line in wrap(part, width, first=bar, rest=bar, hard=True)]


def _by_line(runs: Iterable[Run]) -> list[list[Run]]:
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        first, *rest = text.split("\n")
        lines[-1].append((first, style))
        lines.extend([(part, style)] for part in rest)
    return lines


def diff_lines(diff: str, width: int, palette: Palette, *, prefix: Sequence[Run]) -> list[Line]:
    """A unified diff in colour, its two file lines left out: the tool's line names the file."""
    kept = "\n".join(line for line in clean(diff).split("\n") if not line.startswith(("--- ", "+++ ")))
    return code_lines(kept, "diff", width, palette, prefix=prefix)


def diff_counts(diff: str) -> tuple[int, int]:
    """Added and removed lines of a unified diff."""
    lines = diff.split("\n")
    added = sum(1 for line in lines if line.startswith("+") and not line.startswith("+++ "))
    removed = sum(1 for line in lines if line.startswith("-") and not line.startswith("--- "))
    return added, removed
