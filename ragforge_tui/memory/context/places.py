"""Amounts of memory that were recalled for a request, by conversation, for display in the chat. Pure."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import RECALLED, ContextRecord, RecalledPlace

_TITLE_CHARS = 200


_WHOLE = frozenset({"", "whole", "reasoned"})


def all_turns_fit(record: ContextRecord) -> bool:
    """Return whether every earlier turn was sent whole, so that nothing had to be recalled."""
    items = [item for section in record.sections for item in section.items if item.kind == "message"]
    whole = {item.turn_index for item in items if item.form in _WHOLE and not item.cut}
    return whole >= set(range(1, record.turn_index)) and not recalled_amounts(record)


def recalled_amounts(record: ContextRecord) -> str:
    """Return the recalled items by conversation, for `Message.recalled`; empty if nothing was recalled."""
    places: dict[str, RecalledPlace] = {}
    for section in record.sections:
        for item in section.items if section.name in RECALLED else ():
            place = places.get(item.conversation_id) or RecalledPlace(
                conversation_id=item.conversation_id, title=item.title[:_TITLE_CHARS] if item.conversation_id else ""
            )
            is_turn = item.kind == "turn"
            # The turn to go to: the first recalled one, else the first that a summary or finding is about.
            first = item.turn_index if not place.turn_index or (is_turn and not place.turns) else place.turn_index
            places[item.conversation_id] = msgspec.structs.replace(
                place, turn_index=first, turns=place.turns + is_turn, notes=place.notes + (not is_turn)
            )
    own = [place for uuid, place in places.items() if not uuid]
    others = sorted((place for uuid, place in places.items() if uuid), key=lambda place: -place.turns)
    return msgspec.json.encode([*own, *others]).decode() if places else ""
