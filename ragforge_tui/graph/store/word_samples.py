"""Samples of the texts of turns, spread evenly over all conversations that may be recalled from.

They estimate how common a word is: neither backend can count that without reading every occurrence of the word, which
costs more than the search itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from ragforge_tui.graph.connect import Graph

_PAGE = 50
"""Keys read at once: together far below what one message may hold."""
_KEY_CHARS = 8_000
"""Read of a key; longer ones are mostly results of tools."""


class Span(msgspec.Struct, frozen=True):
    """A conversation's own turns, both ends included."""

    conversation_id: str
    first: int
    last: int


class WordSamples:
    """Evenly spread samples of the texts of turns."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def spans(self) -> list[Span]:
        """Own turns of the conversations that may be recalled from; a branch's shared ones count once."""
        found = [
            Span(record["uuid"], record["first"], record["last"])
            for record in await self._graph.rows(
                "MATCH (c:Conversation) WHERE c.status <> 'deleted' AND NOT coalesce(c.private, false) "
                "RETURN c.uuid AS uuid, coalesce(c.branch_turn, 0) + 1 AS first, c.next_turn - 1 AS last "
                "ORDER BY c.uuid"
            )
        ]
        return [span for span in found if span.first <= span.last]

    async def keys(self, spans: Sequence[Span], size: int) -> list[str]:
        """Window keys of about so many of these turns, evenly spread; turns that have none yet are left out."""
        places = spread(spans, size)
        keys: list[str] = []
        for start in range(0, len(places), _PAGE):
            page: list[dict[str, Any]] = [{"id": uuid, "turn": turn} for uuid, turn in places[start : start + _PAGE]]
            keys += [
                record["key"]
                for record in await self._graph.rows(
                    "UNWIND $rows AS row "
                    "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn, position: 0}) "
                    "RETURN left(coalesce(m.lex_key, m.lex_key_fr, ''), $chars) AS key",
                    rows=page,
                    chars=_KEY_CHARS,
                )
                if record["key"]
            ]
        return keys


def spread(spans: Sequence[Span], size: int) -> list[tuple[str, int]]:
    """At most `size` turns at even distances, as if the conversations were one long one."""
    total = sum(span.last - span.first + 1 for span in spans)
    wanted = iter([n * total // size for n in range(size)] if total > size else range(total))
    place = next(wanted, None)
    places: list[tuple[str, int]] = []
    before = 0
    for span in spans:
        turns = span.last - span.first + 1
        while place is not None and place < before + turns:
            places.append((span.conversation_id, span.first + place - before))
            place = next(wanted, None)
        before += turns
    return places
