"""Source code as lines: few colors, from the palette, so that they follow the theme.

Pygments is imported with the first code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.tui.drawing.code_breaks import code_spans
from ragforge_tui.tui.drawing.hunk_start import misfit, openers_of
from ragforge_tui.tui.drawing.lines import Line, Run, clean, line_of, slices
from ragforge_tui.tui.drawing.palette import Palette

_MAX_HIGHLIGHTED = 200_000
_DIFF_NAMES = frozenset({"diff", "patch", "udiff"})
_FILE_LINE = re.compile(r"(?:--- (?:a/|/dev/null)|\+\+\+ (?:b/|/dev/null))")


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    """Return a Pygments lexer, or None. Pygments has no types of its own, so it is imported by name."""
    lexers = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except import_module("pygments.util").ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _language_of_name(name: str) -> str:
    lexers = import_module("pygments.lexers")
    found = lexers.find_lexer_class_for_filename(name)
    return str(found.aliases[0]) if found is not None and found.aliases else ""


def language_of(path: str) -> str:
    """Return the language of a file by its name; empty if unknown."""
    name = path.replace("\\", "/").rpartition("/")[2]
    if not name:
        return ""
    stem, dot, suffix = name.rpartition(".")
    return _language_of_name(f"x.{suffix}" if dot and stem else name)


def _token_style(name: str, palette: Palette) -> Style:
    """Return the style of a Pygments token, by the dotted name of its type."""
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
    """Return runs of cleaned code; plain if the language is unknown or the code very long."""
    if language.lower() in _DIFF_NAMES:
        return [run for line in code.split("\n") for run in (_diff_run(line, palette), ("\n", palette.text))][:-1]
    lexer = _lexer(language.lower()) if language and len(code) <= _MAX_HIGHLIGHTED else None
    if lexer is None:
        return [(code, palette.text)]
    return _styled(lexer.get_tokens(code), palette)


def _diff_run(line: str, palette: Palette) -> Run:
    """Return a line of a diff that is written in an answer. Such a diff arrives line by line and may be incomplete."""
    if _FILE_LINE.match(line) or line.startswith("@@"):
        return line, palette.muted
    return line, {"+": palette.added, "-": palette.removed}.get(line[:1], palette.text)


def _styled(tokens: Iterable[tuple[object, str]], palette: Palette) -> list[Run]:
    styles: dict[object, Style] = {}
    runs: list[Run] = []
    for kind, text in tokens:
        style = styles.get(kind)
        if style is None:
            style = styles[kind] = _token_style(str(kind), palette)
        runs.append((text, style))
    return runs


class GrowingCode:
    """Code that arrives line by line, each line highlighted once.

    The lexer's state is kept from line to line. What it can only recognize in several lines at once, such as a comment
    over lines in some languages, may look plainer than in `highlight`.
    """

    def __init__(self, language: str, palette: Palette) -> None:
        self._language = language
        self._palette = palette
        self._stack = ["root"]
        lexer = _lexer(language.lower()) if language and language.lower() not in _DIFF_NAMES else None
        self._lexer = lexer if lexer is not None and _is_plain(lexer) else None

    def add(self, lines: str) -> list[Run]:
        """Return the runs of further complete, cleaned lines."""
        return self._runs(lines, self._stack)

    def following(self) -> GrowingCode:
        """Return code that continues in the same state."""
        code = GrowingCode(self._language, self._palette)
        code._stack = list(self._stack)
        return code

    def peek(self, line: str) -> list[Run]:
        return self._runs(line, list(self._stack))

    def _runs(self, text: str, stack: list[str]) -> list[Run]:
        if self._lexer is None:
            return highlight(text, self._language, self._palette)
        return _styled(_lexed(self._lexer, text, stack), self._palette)


def hunk_runs(lines: Sequence[str], language: str, palette: Palette) -> tuple[list[list[Run]], GrowingCode]:
    """Return lines from the middle of a file, which may begin in a string or a comment; then the code that follows."""
    code = GrowingCode(language, palette)
    text = "".join(f"{line}\n" for line in lines)
    lexer = _lexer(language.lower()) if language and language.lower() not in _DIFF_NAMES else None
    if lexer is None:
        return by_line(code.add(text))[: len(lines)], code
    best: tuple[tuple[int, int], list[tuple[object, str]], str] | None = None
    for opener, closer in openers_of(language):
        # Some lexers know a comment only as a whole, so it is closed behind the lines.
        whole = opener + text + closer
        read = lexer.get_tokens(whole) if code._lexer is None else _lexed(lexer, whole, ["root"])
        tokens = _without_first(list(read), len(opener))
        odd = misfit(tokens, lines)
        if best is None or odd < best[0]:
            best = odd, tokens, opener
    assert best is not None
    code.add(best[2] + text)
    return by_line(_styled(best[1], palette))[: len(lines)], code


def _without_first(tokens: list[tuple[object, str]], count: int) -> list[tuple[object, str]]:
    """Return tokens without their first characters."""
    for at, (kind, text) in enumerate(tokens):
        if count < len(text):
            return [(kind, text[count:]), *tokens[at + 1 :]]
        count -= len(text)
    return []


def _is_plain(lexer: Any) -> bool:
    """Return whether a lexer is a mere table of states, so that it can stop between two lines."""
    plain = import_module("pygments.lexer").RegexLexer
    return isinstance(lexer, plain) and type(lexer).get_tokens_unprocessed is plain.get_tokens_unprocessed


def _lexed(lexer: Any, text: str, stack: list[str]) -> Iterator[tuple[object, str]]:
    """Yield the tokens of a text; the loop of Pygments' `RegexLexer`, which does not expose its stack of states."""
    states: dict[str, Any] = lexer._tokens
    token_type = import_module("pygments.token")
    at = 0
    while at < len(text):
        for matches, action, following in states[stack[-1]]:
            match = matches(text, at)
            if match is None:
                continue
            if type(action) is type(token_type.Text):
                yield action, match.group()
            elif action is not None:
                yield from ((kind, part) for _, kind, part in action(lexer, match))
            at = match.end()
            _follow(stack, following)
            break
        else:
            if text[at] == "\n":
                stack[:] = ["root"]
                yield token_type.Text, "\n"
            else:
                yield token_type.Error, text[at]
            at += 1


def _follow(stack: list[str], following: tuple[str, ...] | str | int | None) -> None:
    """Apply the transition of a rule: back some states, to one, or to several."""
    if isinstance(following, int):
        del stack[following if abs(following) < len(stack) else 1 :]
    elif following is not None:
        for state in (following,) if isinstance(following, str) else following:
            if state == "#push":
                stack.append(stack[-1])
            elif state != "#pop":
                stack.append(state)
            elif len(stack) > 1:
                stack.pop()


COPY = "copy_code"
"""Key in the meta of a style: a click copies the code that begins on this line."""
_BEFORE_LABEL = 2
"""Blanks between code and what is at the right end of its line."""


def code_lines(
    code: str,
    language: str,
    width: int,
    palette: Palette,
    *,
    prefix: Sequence[Run] | None = None,
    label: Sequence[Run] = (),
) -> list[Line]:
    """Return code behind a thin bar; the rest of a line that is too long is indented, a sign before it."""
    runs = highlight(clean(code).removesuffix("\n"), language, palette)
    return run_lines(runs, width, palette, prefix=prefix, label=label)


def code_label(language: str, palette: Palette) -> list[Run]:
    """Return what is at the right end of the first line of a fence: its language, and a word that copies it."""
    said = [(language, palette.muted)] if language else []
    if palette.plain:
        return said
    between = [(" · ", palette.muted)] if language else []
    return [*said, *between, ("copy", palette.muted + Style(meta={COPY: True}))]


def run_lines(
    runs: Iterable[Run],
    width: int,
    palette: Palette,
    *,
    prefix: Sequence[Run] | None = None,
    label: Sequence[Run] = (),
) -> list[Line]:
    """Return runs of code behind a thin bar.

    Args:
        label: What is at the right end of the first line.
    """
    bar = prefix if prefix is not None else [("  │ ", palette.faint)]
    rest = [(text.replace("│", "↪"), style) for text, style in bar]
    lines: list[Line] = []
    for part in by_line(runs):
        lines += code_rows(part, width, first=bar, rest=rest, label=() if lines else label)
    return lines


def code_rows(
    runs: Sequence[Run], width: int, *, first: Sequence[Run], rest: Sequence[Run], label: Sequence[Run] = ()
) -> list[Line]:
    """Return the lines of one line of code, behind `first` and, as wide, `rest`; neither is copied, nor is the label.

    A label that would take half of the line is left out.
    """
    inner = max(1, width - cell_len("".join(text for text, _ in first)))
    words = "".join(text for text, _ in label)
    room = inner - cell_len(words) - _BEFORE_LABEL if words else inner
    room = room if 2 * room >= inner else inner
    spans, indent = code_spans("".join(text for text, _ in runs), inner, room)
    lines: list[Line] = []
    for (_, _, join), piece in zip(spans, slices(runs, spans), strict=True):
        prefix = [*rest, (" " * indent, rest[-1][1])] if lines else first
        gutter = sum(len(text) for text, _ in prefix)
        if lines or room == inner:
            lines.append(line_of([*prefix, *piece], width, gutter=gutter, join=join))
            continue
        gap = inner - cell_len("".join(text for text, _ in piece)) - cell_len(words)
        shown = [*prefix, *piece, (" " * gap, rest[-1][1]), *label]
        lines.append(line_of(shown, width, gutter=gutter, join=join, filler=gap + len(words)))
    return lines


def by_line(runs: Iterable[Run]) -> list[list[Run]]:
    """Split runs at line ends."""
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        first, *rest = text.split("\n")
        lines[-1].append((first, style))
        lines.extend([(part, style)] for part in rest)
    return lines
