"""Parts of a sent request, read from its stored context: what each took, and what it began with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

import msgspec

from ragforge_tui.memory.context.sections import BEFORE_PAST, PAST_SECTION, TOOLS_SECTION
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import ContextItem, ContextRecord


class Piece(msgspec.Struct, frozen=True):
    """Item of a request, in the order it was sent. `key` is equal for equal texts."""

    section: str
    title: str
    key: tuple[object, ...]


class SentParts(msgspec.Struct, frozen=True):
    """Parts of a request before the turn's own messages.

    Attributes:
        sections: Title and tokens of each section.
        past: Turn index and tokens of the earlier turns that were sent word for word.
        pieces: The items that a provider can keep in its cache, in order: what precedes the memory block.
    """

    sections: list[tuple[str, int]]
    past: list[tuple[int, int]]
    pieces: list[Piece]

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens in self.sections)


def read_parts(contexts: Mapping[str, str]) -> dict[str, SentParts]:
    """Return the parts of stored contexts by id; those that another version wrote in another form are left out."""
    found: dict[str, SentParts] = {}
    for uuid, text in contexts.items():
        try:
            found[uuid] = _parts(decode_json(text, ContextRecord))
        except msgspec.MsgspecError:
            continue
    return found


def _parts(record: ContextRecord) -> SentParts:
    # Tools are sent next to the messages, and a provider's cache begins with them.
    order = sorted((*BEFORE_PAST, PAST_SECTION), key=lambda name: name != TOOLS_SECTION)
    leading = [section for section in record.sections if section.name in order]
    leading.sort(key=lambda section: order.index(section.name))
    return SentParts(
        sections=[(section.title, section.tokens) for section in record.sections if section.tokens],
        past=[
            (item.turn_index, item.tokens)
            for section in leading
            if section.name == PAST_SECTION
            for item in section.items
            if item.kind == "message"
        ],
        pieces=[Piece(section.name, section.title, _key(item)) for section in leading for item in section.items],
    )


def _key(item: ContextItem) -> tuple[object, ...]:
    return (item.kind, item.source, item.turn_index, item.form, tuple(item.positions), tuple(item.spans), item.text)


def first_change(earlier: SentParts, later: SentParts) -> Piece | None:
    """Return the first piece of the later request that the earlier one did not begin with; None if it has all.

    A later request may add turns at the end, which changes nothing before them.
    """
    pairs = zip(earlier.pieces, later.pieces, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0].key == pair[1].key, pairs))
    if same == len(earlier.pieces):
        return None
    return later.pieces[same] if same < len(later.pieces) else earlier.pieces[same]
