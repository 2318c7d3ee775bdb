"""Bound on the time that Markdown takes for brackets that open no link.

The parser looks for the end of a link from every opening bracket, and in the brackets within it again, up to its limit
of nesting: 200 000 brackets of a hostile text took ten seconds. Past a number of brackets that opened none, the rest of
a text's brackets are plain characters. Real links are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST_FAILED = 2_000
"""Brackets of a text that may open no link; some 0.1 s."""
_FAILED = "brackets that open no link"


def bound_links(parser: MarkdownIt) -> None:
    """Limit the search for links and images; a plugin for `MarkdownIt.use`."""
    from markdown_it.rules_inline import image, link

    for name, rule, start in (("link", link, "["), ("image", image, "!")):
        parser.inline.ruler.at(name, _bounded(rule, start))


def _bounded(rule: Callable[[Any, bool], bool], start: str) -> Callable[[Any, bool], bool]:
    def search(state: Any, silent: bool) -> bool:
        if state.src[state.pos] != start or state.env.get(_FAILED, 0) >= MOST_FAILED:
            return False
        found = rule(state, silent)
        if not found:
            state.env[_FAILED] = state.env.get(_FAILED, 0) + 1
        return found

    return search
