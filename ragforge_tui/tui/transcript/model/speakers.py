"""Finds the persona of a turn and marks a switch to another one.

It uses the records only, so that a resumed conversation shows the same switches as a live one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ragforge_tui.tui.transcript.model.blocks import Block, HeadBlock, NoteBlock


class TurnBlocks(Protocol):
    """A turn with the blocks so far."""

    turn_index: int
    blocks: list[Block]


def speaker(turn: TurnBlocks) -> str:
    """Return the persona that answers in a turn, empty before the answer."""
    return next((block.name for block in turn.blocks if isinstance(block, HeadBlock) and block.name), "")


def speaker_before(turns: Mapping[int, TurnBlocks], turn_index: int, first: int) -> str:
    """Return the persona of the nearest earlier turn down to `first`, the lowest loaded one."""
    if not first:
        return ""
    for index in range(turn_index - 1, first - 1, -1):
        turn = turns.get(index)
        if turn is not None and (name := speaker(turn)):
            return name
    return ""


def mark_switch(turn: TurnBlocks, before: str) -> bool:
    """Insert a note above an answer if its persona differs from `before`; return whether it did."""
    name = speaker(turn)
    if not before or not name or name == before or any(block.kind == "switch" for block in turn.blocks):
        return False
    note = NoteBlock("switch", turn.turn_index, f"{name} speaks from here on", "info")
    at = next(place for place, block in enumerate(turn.blocks) if isinstance(block, HeadBlock))
    turn.blocks.insert(at, note)
    return True
