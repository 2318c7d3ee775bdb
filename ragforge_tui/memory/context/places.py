"""Conversations from which something was recalled for a request, for display in the chat. Pure."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import ContextRecord, RecalledPlace

_RECALLED = ("recalled", "summaries", "findings")
_TITLE_CHARS = 200


def recalled_elsewhere(record: ContextRecord) -> str:
    """Return the recalled items by conversation, for `Message.recalled`; empty if none is of another conversation."""
    places: dict[str, RecalledPlace] = {}
    for section in record.sections:
        for item in section.items if section.name in _RECALLED else ():
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
    return msgspec.json.encode([*own, *others]).decode() if others else ""
