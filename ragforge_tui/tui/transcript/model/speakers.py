"""Who speaks in which turn, and the line that says when another persona begins to.

Derived from the records alone, so that a resumed conversation shows its switches where a live one does. Used by
`document`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ragforge_tui.tui.transcript.model.blocks import Block, HeadBlock, NoteBlock


class Told(Protocol):
    """A turn as far as it was told."""

    turn_index: int
    blocks: list[Block]


def speaker(turn: Told) -> str:
    """Who answers in a turn, empty while nobody does."""
    return next((block.name for block in turn.blocks if isinstance(block, HeadBlock) and block.name), "")


def speaker_before(turns: Mapping[int, Told], turn_index: int, first: int) -> str:
    """Who answered in the nearest earlier turn that is loaded, `first` being the lowest of them."""
    if not first:
        return ""
    for index in range(turn_index - 1, first - 1, -1):
        turn = turns.get(index)
        if turn is not None and (name := speaker(turn)):
            return name
    return ""


def mark_switch(turn: Told, before: str) -> bool:
    """Say above an answer that another persona than `before` gives it; whether that was done."""
    name = speaker(turn)
    if not before or not name or name == before or any(block.kind == "switch" for block in turn.blocks):
        return False
    note = NoteBlock("switch", turn.turn_index, f"{name} speaks from here on", "info")
    at = next(place for place, block in enumerate(turn.blocks) if isinstance(block, HeadBlock))
    turn.blocks.insert(at, note)
    return True
