"""Markdown: parsed into units that can be drawn on their own, and rendered as lines unit by unit.

A unit is a top-level block, or one item of a top-level list. Nothing in a unit depends on what follows it (link
references are off, blank lines between items are taken from the source): a streamed text can be committed unit by unit
and still look like the same text drawn at once. Pure, so that it can run in a thread; markdown-it is imported with the
first text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.style import Style

from ragforge_tui.shared.markdown_limits import bound_links
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.code import code_label, code_lines
from ragforge_tui.tui.drawing.lines import BLANK, NOT_COPIED, Line, Run, clean, clip, indent, line_of, one_line, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.fences import Fence
from ragforge_tui.tui.transcript.links import (
    Link,
    bare_links,
    cited_turn,
    cited_turns,
    file_path,
    link_style,
    linked_runs,
    web_address,
)
from ragforge_tui.tui.transcript.tables import Align, Cell, table_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_NESTING = 60


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of Markdown that is drawn on its own.

    Attributes:
        tokens: Its parser tokens.
        source: The source lines that the maps of the tokens refer to.
        gap: Whether a blank line precedes it.
        ordinal: Number of a list item; 0 for a bullet, None for other units.
    """

    tokens: Sequence[Token]
    source: Sequence[str]
    gap: bool
    ordinal: int | None = None


class OpenList(NamedTuple):
    """A list that the next piece of text may continue."""

    kind: str
    markup: str
    next_ordinal: int
    blank_before: bool


@lru_cache(maxsize=1)
def markdown_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.tasklists import tasklists_plugin

    from ragforge_tui.tui.transcript.maths import maths_plugin

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["reference", "html_block", "html_inline"])
    return parser.use(tasklists_plugin).use(maths_plugin).use(bound_links)


class Parsed(NamedTuple):
    """Units of a text, with the source line each starts at and the list it belongs to."""

    units: list[Unit]
    starts: list[int]
    lists: list[OpenList | None]


def parse(text: str, continued: OpenList | None = None) -> Parsed:
    """Split cleaned text into units.

    Args:
        continued: The list whose next item the text starts with, if earlier items were cut off.
    """
    tokens = markdown_parser().parse(text)
    source = text.split("\n")
    result = Parsed([], [], [])
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return _as_plain(text, source)
    for node in grouped(tokens):
        opening = node[0]
        start = opening.map[0] if opening.map else 0
        if opening.type in ("bullet_list_open", "ordered_list_open"):
            _add_items(result, node, source, continued if start == 0 and not result.units else None)
        else:
            result.units.append(Unit(node, source, gap=True))
            result.starts.append(start)
            result.lists.append(None)
    return result


def _as_plain(text: str, source: list[str]) -> Parsed:
    """Return the source as one code block: the parser would drop text nested deeper than it follows."""
    from markdown_it.token import Token

    token = Token("fence", "code", 0, content=text, map=[0, len(source)])
    return Parsed([Unit([token], source, gap=True)], [0], [None])


def _add_items(result: Parsed, node: Sequence[Token], source: Sequence[str], continued: OpenList | None) -> None:
    opening = node[0]
    ordered = opening.type == "ordered_list_open"
    number = int(opening.attrs.get("start", 1)) if ordered else 0
    same_list = continued is not None and (continued.kind, continued.markup) == (opening.type, opening.markup)
    if same_list and continued is not None:
        number = continued.next_ordinal
    for position, item in enumerate(grouped(node[1:-1])):
        start = item[0].map[0] if item[0].map else 0
        if position:
            gap = is_blank(source, start - 1)
        else:
            gap = continued.blank_before if same_list and continued is not None else True
        result.units.append(Unit(item, source, gap=gap, ordinal=number))
        result.starts.append(start)
        blank = is_blank(source, start - 1) if position else gap
        result.lists.append(OpenList(opening.type, opening.markup, number, blank))
        number += ordered


def grouped(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens grouped by their outermost nodes."""
    at = 0
    while at < len(tokens):
        end = at
        depth: int = tokens[at].nesting
        while depth > 0:
            end += 1
            depth += tokens[end].nesting
        yield tokens[at : end + 1]
        at = end + 1


def is_blank(source: Sequence[str], line: int) -> bool:
    return 0 <= line < len(source) and not source[line].strip(" \t>")


def clean_source(text: str) -> str:
    """Remove control characters from Markdown source; tabs stay, since they are significant."""
    return plain_text(text)


PLAIN = Style()
_FOOTNOTE = re.compile(r"\[\^([0-9A-Za-z_-]{1,30})\](:?)")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BULLETS = "•◦▪"
LANGUAGE_CELLS = 20
"""Of a fence's language, which may be any text."""


def render(text: str, width: int, palette: Palette) -> list[Line]:
    """Render a whole text."""
    lines: list[Line] = []
    for unit in parse(clean_source(text)).units:
        lines.extend(render_unit(unit, width, palette, first=not lines))
    return lines


def render_unit(unit: Unit, width: int, palette: Palette, *, first: bool = False) -> list[Line]:
    """Render a unit, with a blank line before it unless it is the first of its text."""
    painter = _Painter(unit.source, palette)
    if unit.ordinal is None:
        lines = painter.block(unit.tokens, width, 0)
    else:
        lines = painter.item(unit.tokens, unit.ordinal, width, 0)
    return lines if first or not unit.gap or not lines else [BLANK, *lines]


def table_rows(unit: Unit, palette: Palette) -> list[list[Cell]] | None:
    """Return the cells of a table, the head first; None for other units."""
    if unit.ordinal is not None or not unit.tokens or unit.tokens[0].type != "table_open":
        return None
    return _Painter(unit.source, palette).cells(unit.tokens)


_ALIGNS: dict[str, Align] = {"text-align:center": "center", "text-align:right": "right"}
"""Alignments as the parser gives them: CSS for a browser."""
_WAITS = re.compile(r"[`\[<]|~~|\*(?=\S)|(?<!\w)_(?=\S)|\$(?=\S)")
"""Possible start of an inline element that ends later."""
_OPEN_MATHS = re.compile(r"\\[(\[](?!.*\\[)\]])", re.DOTALL)
"""The start of a formula without its end; the parser leaves only its bracket."""


def inline_runs(text: str, palette: Palette) -> tuple[list[Run], bool]:
    """Return a paragraph's text as runs, and whether later text cannot change them."""
    token = markdown_parser().parseInline(text)[0]
    waits = bool(_OPEN_MATHS.search(text)) or any(
        _WAITS.search(child.content) for child in token.children or () if child.type == "text"
    )
    return _Painter((), palette).inline(token, palette.text), not waits


class _Painter:
    """Renders the tokens of one unit."""

    def __init__(self, source: Sequence[str], palette: Palette) -> None:
        self.source = source
        self.palette = palette
        self.base = palette.text

    def blocks(self, tokens: Sequence[Token], width: int, depth: int) -> list[Line]:
        """Render the blocks of an item or a quote, with the blank lines of the source between them."""
        lines: list[Line] = []
        for node in grouped(tokens):
            start = node[0].map[0] if node[0].map else 0
            if lines and is_blank(self.source, start - 1):
                lines.append(BLANK)
            lines.extend(self.block(node, width, depth))
        return lines

    def block(self, node: Sequence[Token], width: int, depth: int) -> list[Line]:
        opening = node[0]
        palette = self.palette
        width = max(1, width)
        match opening.type:
            case "heading_open":
                return self.heading(node[1], int(opening.tag[1:]), width)
            case "paragraph_open":
                return wrap(self.inline(node[1], self.base), width)
            case "fence" | "code_block":
                language = fence_language(opening)
                label = code_label(language, palette) if opening.content.strip() else []
                return code_lines(opening.content, language, width, palette, label=label)
            case "blockquote_open":
                return self.quote(node[1:-1], width, depth)
            case "bullet_list_open" | "ordered_list_open":
                return self.items(node, width, depth)
            case "table_open":
                return table_lines(self.cells(node), width, palette)
            case "hr":
                return [line_of([("─" * width, palette.faint)], width)]
            case _:
                content = "".join(token.content for token in node)
                return wrap([(clean(content), self.base)], width) if content else []

    def heading(self, token: Token, level: int, width: int) -> list[Line]:
        """Render a heading; its level shows without colors too."""
        palette = self.palette
        style = palette.strong_heading if level <= 2 else palette.heading
        if level == 1:
            style += Style(underline=False)  # There is a rule below it.
        if level > 3:
            style += Style(italic=True)
        words = self.inline(token, style)
        if palette.plain:
            return wrap([(f"{'#' * level} ", palette.muted), *words], width, quiet_first=False)
        lines = wrap(words, width)
        if level == 1 and (cells := max(line.strip.cell_length for line in lines)):
            lines.append(line_of([("─" * cells, palette.faint)], width)._replace(sides=NOT_COPIED))
        return lines

    def quote(self, tokens: Sequence[Token], width: int, depth: int) -> list[Line]:
        outer, self.base = self.base, self.palette.muted
        lines = self.blocks(tokens, width - 2, depth)
        self.base = outer
        mark = "> " if self.palette.plain else "▎ "
        return indent(lines or [BLANK], [(mark, self.palette.faint)], width)

    def items(self, node: Sequence[Token], width: int, depth: int) -> list[Line]:
        """Render a list inside another block; top-level lists are units item by item."""
        opening = node[0]
        ordered = opening.type == "ordered_list_open"
        number = int(opening.attrs.get("start", 1)) if ordered else 0
        lines: list[Line] = []
        for item in grouped(node[1:-1]):
            start = item[0].map[0] if item[0].map else 0
            if lines and is_blank(self.source, start - 1):
                lines.append(BLANK)
            lines.extend(self.item(item, number, width, depth))
            number += ordered
        return lines

    def item(self, item: Sequence[Token], number: int, width: int, depth: int) -> list[Line]:
        """Render one item: its mark, and its contents indented by the mark's width."""
        ordered = "." in item[0].markup or ")" in item[0].markup
        lead = "  " if depth == 0 and width > 20 else ""
        mark = f"{number}. " if ordered else f"{_BULLETS[min(depth, 2)]} "
        if box := self.box(item):
            mark = f"{mark}{box} " if ordered or self.palette.plain else f"{box} "
        inner = width - len(lead) - len(mark)
        lines = self.blocks(item[1:-1], max(1, inner), depth + 1) or [BLANK]
        marked = indent(lines[:1], [(lead, self.base), (mark, self.palette.muted)], width)
        # The mark is copied with its item, its indentation is not.
        marked = [line._replace(gutter=line.gutter - len(mark)) for line in marked if line.gutter >= len(mark)]
        return marked + indent(lines[1:], [(" " * (len(lead) + len(mark)), self.base)], width)

    def box(self, item: Sequence[Token]) -> str:
        """Return the check box of a task, which the parser gives as HTML; empty for other items."""
        if "task-list-item" not in str(item[0].attrs.get("class", "")):
            return ""
        done = " checked=" in (item[2].children or item)[0].content
        if self.palette.plain:
            return "[x]" if done else "[ ]"
        return "☑" if done else "☐"

    def cells(self, node: Sequence[Token]) -> list[list[Cell]]:
        """Return the rows of a table as lists of cells; the first row is the head."""
        rows: list[list[Cell]] = []
        for at, token in enumerate(node):
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                style = self.palette.heading if node[at - 1].type == "th_open" else self.base
                cell = Cell(self.inline(token, style))
                cell.align = _ALIGNS.get(str(node[at - 1].attrs.get("style", "")), "left")
                rows[-1].append(cell)
        return rows

    def inline(self, token: Token, base: Style) -> list[Run]:
        """Render an inline token."""
        runs: list[Run] = []
        styles = [base]
        links: list[tuple[str, int]] = []
        for at, child in enumerate(token.children or ()):
            match child.type:
                case "text" | "text_special":
                    text = clean(child.content)
                    text = text.lstrip() if at == 1 and not runs else text  # Behind the box of a task.
                    runs.extend(self.words(text, styles[-1], linked=bool(links)))
                case "html_inline":
                    pass  # HTML is off: this is the check box of a task, which precedes the item.
                case "code_inline":
                    runs.append((one_space(child.content), styles[-1] + self.palette.code))
                case "softbreak":
                    # Each footnote has a line of its own, although Markdown joins lines.
                    note = _starts_footnote(token.children or (), at + 1)
                    alone = any(_is_display(near) for near in (token.children or ())[at - 1 : at + 2])
                    runs.append(("\n" if note or alone else " ", styles[-1]))
                case "maths":
                    shown = str(child.meta["source"]) if self.palette.plain else child.content
                    runs.append((one_space(shown), styles[-1]))
                case "hardbreak":
                    runs.append(("\n", styles[-1]))
                case "strong_open":
                    styles.append(styles[-1] + Style(bold=True))
                case "em_open":
                    styles.append(styles[-1] + Style(italic=True))
                case "s_open":
                    styles.append(styles[-1] + Style(strike=True))
                case "link_open":
                    href = one_line(str(child.attrs.get("href", "")))
                    links.append((href, len(runs)))
                    styles.append(styles[-1] + self.palette.link + (link_style(href) or PLAIN))
                case "link_close":
                    styles.pop()
                    runs.extend(self.target(*links.pop(), runs))
                case "image":
                    src = one_line(str(child.attrs.get("src", "")))
                    style = styles[-1] + self.palette.link + (link_style(src) or PLAIN)
                    runs.append((f"[{one_line(child.content) or 'image'}]", style))
                    runs.extend(self.target(src, len(runs), runs))
                case kind if kind.endswith("_close"):
                    styles.pop()
                case _:
                    runs.append((clean(child.content), styles[-1]))
        return runs

    def target(self, href: str, begin: int, runs: Sequence[Run]) -> list[Run]:
        """Return the target of a link in parentheses, unless its text is the target."""
        label = "".join(text for text, _ in runs[begin:])
        if not href or href in (label, f"mailto:{label}"):
            return []
        muted = self.palette.muted
        return [(" (", muted), (href, muted + (link_style(href) or PLAIN)), (")", muted)]

    def words(self, text: str, style: Style, *, linked: bool) -> list[Run]:
        """Return text with its footnote marks, and with its addresses as links unless it is the text of a link."""
        runs: list[Run] = []
        at = 0
        for match in _FOOTNOTE.finditer(text):
            runs += self.linked(text[at : match.start()], style, linked=linked)
            runs.append((self.footnote(match[1]) + (" " if match[2] else ""), self.palette.muted))
            at = match.end() + (match[2] == ":" and text[match.end() : match.end() + 1] == " ")
        return runs + self.linked(text[at:], style, linked=linked)

    def linked(self, text: str, style: Style, *, linked: bool) -> list[Run]:
        if not text:
            return []
        return [(text, style)] if linked else linked_runs(text, style, self.palette.link)

    def footnote(self, name: str) -> str:
        """Return the mark of a footnote: raised digits, or the name in brackets."""
        return f"[{name}]" if self.palette.plain or not name.isdecimal() else name.translate(_RAISED)


def _starts_footnote(children: Sequence[Token], at: int) -> bool:
    match = _FOOTNOTE.match(children[at].content) if at < len(children) else None
    return match is not None and match[2] == ":"


def _is_display(token: Token) -> bool:
    """Return whether a token is a formula that has a line of its own."""
    return token.type == "maths" and token.markup in ("$$", "\\[")


def one_space(text: str) -> str:
    """Return inline code on one line, with its blanks."""
    return clean(text).replace("\n", " ")


def words_of(markdown: str) -> str:
    """Return the text of Markdown without its marks, for a place with no room for its blocks."""
    parts: list[str] = []
    for token in markdown_parser().parse(clean_source(markdown)):
        if token.type == "list_item_open":
            parts.append(f"{token.info}{token.markup}" if token.info else "•")
        elif token.children:
            parts.append("".join(" " if child.type.endswith("break") else child.content for child in token.children))
        elif token.content:
            parts.append(token.content)
    return " ".join(parts)


def fence_language(token: Token) -> str:
    """Return the language that a fence names, on one line; empty for none."""
    words = one_line(token.info).split(maxsplit=1)
    return clip(words[0], LANGUAGE_CELLS) if words else ""


def fences_of(markdown: str) -> list[Fence]:
    """Return the code of a text in the order in which it is drawn."""
    tokens = [token for unit in parse(clean_source(markdown)).units for token in unit.tokens]
    code = [token for token in tokens if token.type in ("fence", "code_block") and token.content.strip()]
    return [Fence(fence_language(token), token.content) for token in code]


_MAX_LINKS = 200
_MAX_SOURCE = 300_000


def links_of(source: str, *, markdown: bool) -> list[Link]:
    """Return the links of a message, each target once, in order.

    Args:
        markdown: Whether the message is Markdown, as answers are; the user's messages are not.
    """
    source = source[:_MAX_SOURCE]
    found: dict[str, Link] = {}
    for href, label in _marked(source) if markdown else _bare(source):
        if address := web_address(href):
            link = Link("web", address, label)
        elif label and cited_turn(href):
            link = Link("turn", href, label)
        elif path := file_path(href):
            link = Link("file", path, label)
        else:
            continue
        found.setdefault(link.target, link)
        if len(found) == _MAX_LINKS:
            break
    return list(found.values())


def _bare(text: str) -> Iterator[tuple[str, str]]:
    found = [(start, text[start:end], "") for start, end in bare_links(text)]
    found += [(start, target, text[start:end]) for start, end, target in cited_turns(text)]
    return ((href, label) for _, href, label in sorted(found))


def _marked(source: str) -> Iterator[tuple[str, str]]:
    for unit in parse(clean_source(source)).units:
        for token in unit.tokens:
            yield from _inline(token.children or ())


def _inline(children: Sequence[Token]) -> Iterator[tuple[str, str]]:
    href: str | None = None
    label = ""
    for child in children:
        if child.type == "link_open":
            href, label = str(child.attrs.get("href", "")), ""
        elif child.type == "link_close" and href is not None:
            yield href, label
            href = None
        elif child.type == "image":
            yield str(child.attrs.get("src", "")), child.content
        elif href is not None:
            label += child.content
        elif child.type == "text":
            yield from _bare(child.content)
