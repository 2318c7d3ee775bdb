"""Items of requests as the user chooses among them: which may be left out or pinned, and how two requests differ.

An item has a key that stays the same from request to request, whatever its form, so that a choice made in one request
applies to the next ones. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from ragforge_tui.shared.records import ContextItem, ContextItemKind, ContextRecord, ContextSection

Choice = Literal["exclude", "pin", "usual"]
"""What the user wants of an item in the next requests; ``usual`` takes an earlier choice back."""

_TURNS: tuple[ContextItemKind, ...] = ("turn", "message", "goal", "query")
PINNABLE: tuple[ContextItemKind, ...] = (*_TURNS, "finding", "summary", "code")
EXCLUDABLE: tuple[ContextItemKind, ...] = (*PINNABLE, "file", "topic")
PINNED_SECTION = "pinned"
_BEFORE_FINDING = re.compile(r"^(?:\[[^\]\n]*\] |- )?(?:(?:decision|fact|preference|wish|open|still open): )?")


class ChosenItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that the user left out of the next requests of a session, or pinned."""

    key: str
    item: ContextItem
    pinned: bool


def finding_words(text: str) -> str:
    """Return the statement of a finding without its label and kind, on one line."""
    return " ".join(_BEFORE_FINDING.sub("", text).split())


def finding_key(text: str) -> str:
    """Return the key of a finding by its text, with or without its label and kind."""
    return f"finding:{finding_words(text).casefold()}"


def turn_key(conversation_id: str, turn_index: int) -> str:
    return f"turn:{conversation_id}:{turn_index}"


def source_key(kind: ContextItemKind, source: str) -> str:
    """Return the key of an item that its source identifies, such as a summary or a scope."""
    return f"{kind}:{source}"


def item_key(item: ContextItem, own: str) -> str:
    """Return the key of an item.

    Args:
        own: The conversation of the request.
    """
    if item.kind in _TURNS and item.turn_index:
        return turn_key(item.conversation_id or own, item.turn_index)
    if item.kind == "finding":
        return finding_key(item.text)
    if item.kind in ("summary", "code"):
        return source_key(item.kind, item.source)
    if item.kind == "topic":
        return source_key(item.kind, item.title)
    return source_key(item.kind, item.title or item.text[:200]) if item.kind != "file" else source_key("file", "")


def compared(before: ContextRecord, after: ContextRecord) -> ContextRecord:
    """Return how a request differs from an earlier one: a record whose sections are what came in and what went out."""
    old, new = _items(before), _items(after)
    changed = [item for key, item in new.items() if key in old and old[key].tokens != item.tokens]
    sections = [
        _section("in", "Came in", (item for key, item in new.items() if key not in old)),
        _section("out", "Went out", (item for key, item in old.items() if key not in new)),
        _section("changed", "Sent in another length", changed),
    ]
    return msgspec.structs.replace(after, sections=[section for section in sections if section.items])


def _items(record: ContextRecord) -> dict[str, ContextItem]:
    """Return the items of a request by key; those of the same key, such as two notes, by their order."""
    found: dict[str, ContextItem] = {}
    for section in record.sections:
        for item in section.items:
            if item.kind == "frame":
                continue
            key = f"{'' if item.kind in _TURNS else section.name} {item_key(item, record.conversation_id)}"
            while key in found:
                key += "+"
            found[key] = item
    return found


def _section(name: str, title: str, items: Iterable[ContextItem]) -> ContextSection:
    listed = list(items)
    return ContextSection(name=name, title=title, tokens=sum(item.tokens for item in listed), items=listed)
