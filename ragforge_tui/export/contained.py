"""Escaping of foreign text inside a Markdown document, so that it cannot affect the text around it.

Used by the Markdown export. Text that is harmless as Markdown stays as written, so that replies read as intended. Any
other text is quoted, with its tags escaped. A parser decides what is harmless; nothing is guessed.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ragforge_tui.shared.sanitize import plain_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PARSED_CHARS = 200_000
"""Longest text that is parsed. A longer one is fenced: it is hardly prose, and parsing it would take long."""
_SENTINEL = "after-the-text"
_OWN_HEADINGS = ("h1", "h2")
"""Heading levels that the document uses itself; a text may contain lower ones."""
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
    """Return the text as a block of its own: unchanged if harmless, else quoted, or fenced if too long to parse."""
    text = plain_text(text).strip("\n")
    if not text.strip():
        return ""
    if len(text) > _PARSED_CHARS:
        return fenced(text)
    if _harmless(text):
        return text
    escaped = _escape_tags(text)
    return "\n".join(f"> {line}".rstrip() for line in escaped.split("\n"))


def fenced(text: str) -> str:
    """Return the text as a block of code, between fences longer than any in it."""
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def inline(text: str) -> str:
    """Return the text on one line, escaped only if Markdown or HTML would act on it."""
    line = " ".join(plain_text(text).split())
    tokens = _parser().parse(f"- {line}")
    children = tokens[3].children or [] if [token.type for token in tokens] == _PLAIN_ITEM else []
    plain = all(child.type == "text" for child in children) and "".join(child.content for child in children) == line
    if plain and "~~" not in line:
        return line
    return _SPECIAL.sub(lambda match: "".join(f"\\{char}" if char in _PUNCTUATION else char for char in match[0]), line)


def _harmless(text: str) -> bool:
    """Return whether no block stays open after the text, and no heading, tag or definition reaches beyond it."""
    if text[0].isspace():  # after a list it would continue the last entry
        return False
    environment: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\n{_SENTINEL}\n", environment)
    if environment.get("references") or any(_is_harmful(token) for token in tokens):
        return False
    end = tokens[-3:]
    return (
        [token.type for token in end] == ["paragraph_open", "inline", "paragraph_close"]
        and end[0].level == 0
        and end[1].content == _SENTINEL
    )


def _is_harmful(token: Token) -> bool:
    return _is_tag(token) or (token.type == "heading_open" and token.tag in _OWN_HEADINGS)


def _is_tag(token: Token) -> bool:
    return token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())


def _escape_tags(text: str) -> str:
    """Escape the tags of a text: only those outside of code if that is enough, else all of them."""
    lines = text.split("\n")
    code: set[int] = set()
    for token in _parser().parse(text):
        if token.type in ("fence", "code_block") and token.map:
            code.update(range(*token.map))
    escaped = "\n".join(line if number in code else _escape_outside_spans(line) for number, line in enumerate(lines))
    quoted = "\n".join(f"> {line}" for line in escaped.split("\n"))
    if any(_is_tag(token) for token in _parser().parse(quoted)):
        escaped = _TAG.sub("&lt;", text)
    # A link definition would turn brackets anywhere in the document into links.
    return re.sub(r"^((?:\s|>|[-*+]\s)*)\[(?=[^\]\n]*\]:)", r"\1\\[", escaped, flags=re.MULTILINE)


def _escape_outside_spans(line: str) -> str:
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
