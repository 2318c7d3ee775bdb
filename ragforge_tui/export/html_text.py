"""Foreign text as HTML: Markdown with highlighted code, source code, and diffs. Nothing in it acts or loads anything.

Tags are text, an image is the link it names, and only addresses of the web and of mail are links. Pygments and the
Markdown parser are imported with the first text.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragforge_tui.shared.markdown_limits import bound_links
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import plain_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML

MOST_PARSED = 200_000
"""Characters of the longest text that is parsed or highlighted; a longer one is shown as it is."""
_LINKED = ("http://", "https://", "mailto:")
_CLASSES = (
    ("Token.Comment", "c"),
    ("Token.Literal.String.Doc", "c"),
    ("Token.Keyword.Constant", "n"),
    ("Token.Keyword", "k"),
    ("Token.Literal.Number", "n"),
    ("Token.Literal.String", "s"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Decorator", "f"),
    ("Token.Name.Tag", "f"),
    ("Token.Name.Namespace", "f"),
)
"""Class of a token, by the first name that its type begins with; `page.css` gives each a color."""


def shown(text: str) -> str:
    """Return the text without secrets and control characters, escaped."""
    return html.escape(mask_secrets(plain_text(text)))


def line(text: str) -> str:
    """Return the text on one line, as `shown`."""
    return " ".join(shown(text).split())


def prose(text: str) -> str:
    """Return Markdown as HTML."""
    text = mask_secrets(plain_text(text)).strip("\n")
    if len(text) > MOST_PARSED:
        return f"<pre>{html.escape(text)}</pre>"
    return str(_parser().render(text))


def code(text: str, language: str = "") -> str:
    """Return source code in a frame; highlighted if the language is known."""
    return f"<pre>{_highlighted(mask_secrets(plain_text(text)), language)}</pre>"


def diff(text: str) -> str:
    """Return a unified diff in a frame, its added and removed lines marked."""
    return f"<pre>{''.join(_diff_lines(mask_secrets(plain_text(text)).splitlines()))}</pre>"


def _diff_lines(lines: Iterable[str]) -> Iterator[str]:
    for one in lines:
        name = {"+": "add", "-": "del"}.get(one[:1], "")
        if name and not one.startswith(("+++ ", "--- ")):
            yield f'<span class="{name}">{html.escape(one)}</span>\n'
        else:
            yield f"{html.escape(one)}\n"


def _highlighted(text: str, language: str) -> str:
    if language.lower() in ("diff", "patch", "udiff"):
        return "".join(_diff_lines(text.splitlines()))
    lexer = _lexer(language.lower()) if language and len(text) <= MOST_PARSED else None
    if lexer is None:
        return html.escape(text)
    return "".join(_spans(lexer.get_tokens(text)))


def _spans(tokens: Iterable[tuple[object, str]]) -> Iterator[str]:
    for kind, text in tokens:
        name = _class_of(str(kind))
        yield f'<span class="{name}">{html.escape(text)}</span>' if name and text.strip() else html.escape(text)


@functools.cache
def _class_of(kind: str) -> str:
    return next((name for start, name in _CLASSES if kind == start or kind.startswith(f"{start}.")), "")


@functools.lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    """Return a Pygments lexer, or None. Pygments has no types of its own, so it is imported by name."""
    lexers = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except import_module("pygments.util").ClassNotFound:
        return None


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    def highlighted(text: str, language: str, attributes: str) -> str:
        return _highlighted(text, language)

    parser = MarkdownIt("commonmark", {"html": False, "highlight": highlighted}).enable(["table", "strikethrough"])
    parser.use(bound_links)
    parser.validateLink = lambda url: url.strip().lower().startswith(_LINKED)  # type: ignore[method-assign]
    parser.add_render_rule("image", _image)
    return parser


def _image(renderer: RendererHTML, tokens: Any, index: int, options: Any, environment: Any) -> str:
    """Return the link to an image: a page that is shared must not load anything from elsewhere."""
    token = tokens[index]
    address = html.escape(str(token.attrs.get("src", "")))
    return f'<a href="{address}">{html.escape(token.content) or address}</a>'
