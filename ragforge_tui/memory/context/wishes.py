"""Section of a request's context with what the user wishes: sent before the first turn, in each request of a session.

Pinned ones come first, then the newest; of two that say the same the newer one is sent. Their text is stored with the
record of the request, because a wish can be edited or forgotten. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ragforge_tui.memory.context.sections import SEPARATOR_TOKENS, WISHES_SECTION, section_of, wishes_text
from ragforge_tui.memory.context.truncation import tokens_in
from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.shared.context_choices import finding_key, finding_words
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.records import ContextItem, ContextSection

WISHES_TOKENS = 400
"""Most tokens of all wishes, with the lines around them."""


def wishes_section(wishes: Iterable[KeptFinding], own: str, excluded: Collection[str] = ()) -> ContextSection:
    """Return the section of the wishes that fit.

    Args:
        wishes: Current ones, the newest first.
        own: The conversation of the request.
        excluded: Keys of items that the user left out; see `finding_key`.
    """
    ranked = sorted(wishes, key=lambda wish: not wish.pinned)
    chosen: list[KeptFinding] = []
    for wish in ranked:
        if finding_key(wish.text) not in excluded and not any(
            gist(wish.text).is_same(gist(other.text)) for other in chosen
        ):
            chosen.append(wish)
    items: list[ContextItem] = []
    for wish in chosen:
        tried = [*items, _item(wish, own)]
        if tokens_in(wishes_text(tried)) > WISHES_TOKENS:
            break
        items = tried
    section = section_of(WISHES_SECTION, WISHES_TOKENS, items, len(chosen) - len(items))
    section.tokens = tokens_in(wishes_text(items)) if items else 0
    return section


def _item(wish: KeptFinding, own: str) -> ContextItem:
    text = f"- {' '.join(wish.text.split())}"
    return ContextItem(
        kind="finding",
        source=wish.uuid,
        conversation_id="" if wish.conversation_id == own else wish.conversation_id,
        title="everywhere" if wish.scope == "user" else "",
        turn_index=wish.turn_index,
        date=wish.since,
        tokens=tokens_in(text) + SEPARATOR_TOKENS,
        text=text,
    )


def told_again(findings: Iterable[str], wishes: ContextSection | None) -> set[str]:
    """Return those texts of findings that the wishes say already, in about the same words."""
    told = [gist(finding_words(item.text)) for item in wishes.items] if wishes is not None else []
    return {text for text in findings if any(gist(finding_words(text)).is_same(wish) for wish in told)}
