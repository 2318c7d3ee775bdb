"""Foreign text inside a Markdown document, so that it cannot act on what stands around it.

Used by the Markdown export. A text that is harmless as Markdown stays as it was written, so that answers read as
they were meant; any other is quoted, with its tags as text. What is harmless is asked of a parser, not guessed.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ragforge_tui.text import plain_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PARSED_CHARS = 200_000
"""Longer texts are no prose to be laid out, and would take long to judge."""
_SENTINEL = "after-the-text"
_OWN_HEADINGS = ("h1", "h2")
"""Levels the document uses itself; lower ones may stand in a text."""
_FENCE_RUN = re.compile(r"`{3,}")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_PUNCTUATION = frozenset("\\`*_[]<>#+-.)!&~|")
_SPECIAL = re.compile(r"[\\`*_\[\]<>#!&~|]|^[-+]|^\d+[.)]")
_PLAIN_ITEM = [
    "bullet_list_open",
    "list_item_open",
    "paragraph_open",
    "inline",
    "paragraph_close",
    "list_item_close",
    "bullet_list_close",
]


def contained(text: str) -> str:
    """The text as a block of its own, as it is or quoted."""
    text = plain_text(text).strip("\n")
    if not text.strip():
        return ""
    if len(text) > _PARSED_CHARS:
        return fenced(text)
    if _harmless(text):
        return text
    shown = _tags_as_text(text)
    return "\n".join(f"> {line}".rstrip() for line in shown.split("\n"))


def fenced(text: str) -> str:
    """The text as a block of code, between fences longer than any in it."""
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def inline(text: str) -> str:
    """The text on one line, without anything Markdown or HTML would act on; escaped only where it would be."""
    line = " ".join(plain_text(text).split())
    tokens = _parser().parse(f"- {line}")
    children = tokens[3].children or [] if [token.type for token in tokens] == _PLAIN_ITEM else []
    plain = all(child.type == "text" for child in children) and "".join(child.content for child in children) == line
    if plain and "~~" not in line:
        return line
    return _SPECIAL.sub(lambda match: "".join(f"\\{char}" if char in _PUNCTUATION else char for char in match[0]), line)


def _harmless(text: str) -> bool:
    """Whether the text ends where it ends, and has no heading, tag or definition that reaches beyond it."""
    if text[0].isspace():  # after a list it would go on with its last entry
        return False
    environment: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\n{_SENTINEL}\n", environment)
    if environment.get("references") or any(_acts(token) for token in tokens):
        return False
    end = tokens[-3:]
    return (
        [token.type for token in end] == ["paragraph_open", "inline", "paragraph_close"]
        and end[0].level == 0
        and end[1].content == _SENTINEL
    )


def _acts(token: Token) -> bool:
    return _is_tag(token) or (token.type == "heading_open" and token.tag in _OWN_HEADINGS)


def _is_tag(token: Token) -> bool:
    return token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())


def _tags_as_text(text: str) -> str:
    """The text with its tags escaped: outside of code alone where that is enough, everywhere otherwise."""
    lines = text.split("\n")
    code: set[int] = set()
    for token in _parser().parse(text):
        if token.type in ("fence", "code_block") and token.map:
            code.update(range(*token.map))
    escaped = "\n".join(line if number in code else _outside_code(line) for number, line in enumerate(lines))
    quoted = "\n".join(f"> {line}" for line in escaped.split("\n"))
    if any(_is_tag(token) for token in _parser().parse(quoted)):
        escaped = _TAG.sub("&lt;", text)
    # A definition would make links of brackets anywhere in the document.
    return re.sub(r"^((?:\s|>|[-*+]\s)*)\[(?=[^\]\n]*\]:)", r"\1\\[", escaped, flags=re.MULTILINE)


def _outside_code(line: str) -> str:
    parts: list[str] = []
    position = 0
    for match in _CODE_SPAN.finditer(line):
        parts += [_TAG.sub("&lt;", line[position : match.start()]), match[0]]
        position = match.end()
    return "".join((*parts, _TAG.sub("&lt;", line[position:])))


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
