"""Section of a request's context with scopes of the workspace that match the user's message.

Each scope is sent as one line; the best ones with their text, as far as the share allows. A scope whose text the turns
sent already hold, such as a file that was read, is left out. The text is stored with the record of the request, because
a file changes and the request must still be shown as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ragforge_tui.memory.context.sections import CODE_SECTION, SEPARATOR_TOKENS, heading_tokens, section_of
from ragforge_tui.memory.context.truncation import tokens_in
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.code_views import scope_line, scope_name, scope_place
from ragforge_tui.shared.records import ContextItem, ContextSection
from ragforge_tui.shared.sanitize import visible

WITH_TEXT = 2
"""Best scopes that are sent with their text."""
MOST_SENT_LINES = 0.6
"""Share of a scope's lines in the turns sent from which its text counts as sent."""


def code_section(scopes: Sequence[Scope], share: int, past: Iterable[ChatMessage]) -> ContextSection:
    """Return the section with as many scopes as the share allows, best first.

    Args:
        past: Messages that are sent anyway.
    """
    sent = _lines_of(past) if scopes else set()
    fresh = [scope for scope in scopes if not _is_sent(scope, sent)]
    left = share - heading_tokens(CODE_SECTION)
    lines = [scope_line(scope) for scope in fresh]
    fitting: list[str] = []
    for line in lines:
        left -= tokens_in(line) + SEPARATOR_TOKENS
        if left < 0:
            break
        fitting.append(line)
    items = []
    for place, (scope, line) in enumerate(zip(fresh, fitting, strict=False)):
        text = line
        if place < WITH_TEXT and scope.text.strip():
            whole = scope_with_text(scope)
            extra = tokens_in(whole) - tokens_in(line)
            if extra <= left:
                left -= extra
                text = whole
        cut = 0 if text != line else len(scope.text)
        title = f"{scope_name(scope)} {scope_place(scope)}"
        tokens = tokens_in(text) + SEPARATOR_TOKENS
        items.append(ContextItem(kind="code", source=scope.uuid, title=title, tokens=tokens, cut=cut, text=text))
    return section_of(CODE_SECTION, share, items, len(fresh) - len(items))


def scope_with_text(scope: Scope) -> str:
    """Return a scope's line, and its text below it."""
    return f"{scope_line(scope)}\n{_fenced(scope)}"


def _fenced(scope: Scope) -> str:
    """Return the text of a scope in a fence that it cannot close."""
    text = "\n".join(visible(line) for line in scope.text.strip("\n").replace("\r\n", "\n").split("\n"))
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{scope.language}\n{text}\n{fence}"


def _is_sent(scope: Scope, sent: set[str]) -> bool:
    """Return whether most lines of a scope are in the texts sent."""
    lines = list(_significant(scope.text))
    return bool(lines) and sum(line in sent for line in lines) >= MOST_SENT_LINES * len(lines)


def _lines_of(messages: Iterable[ChatMessage]) -> set[str]:
    return {line for message in messages for line in _significant(message.get("content") or "")}


def _significant(text: str) -> Iterator[str]:
    """Yield the lines that distinguish a text, without indentation and the numbers that `read_file` adds."""
    for line in text.splitlines():
        number, tab, rest = line.partition("\t")
        stripped = (rest if tab and number.strip().isdigit() else line).strip()
        if len(stripped) > 3:
            yield stripped
