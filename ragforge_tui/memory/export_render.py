"""The regions of a conversation's export files: put together they are what `export` writes, byte for byte.

Used by the export writer. It holds how far the turns are final, not the turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ragforge_tui.export import document, markdown
from ragforge_tui.export_records import MemoryExport, Spoken, StoredContext
from ragforge_tui.memory.export_files import Region
from ragforge_tui.models import AccessedFile, Conversation, Turn
from ragforge_tui.touched import joined, touched_by

OPEN_TURNS = 2
"""Newest turns that are written anew each time: they may be retried, or still be under way."""


class Fresh(msgspec.Struct, kw_only=True):
    """What a write adds to the final part of the turns.

    Attributes:
        final: The last turn index that will not change any more; what is final already is not among `turns`.
        memory: None when it is as it was.
        files: Of all turns.
    """

    conversation: Conversation
    final: int
    turns: list[Turn] = []
    contexts: list[StoredContext] = []
    spoken: list[Spoken] = []
    memory: MemoryExport | None = None
    files: dict[str, AccessedFile] = {}


class Renderer(Protocol):
    """One form of the export; each `render` goes on from what the one before said is final."""

    def render(self, fresh: Fresh) -> list[Region]: ...


class JsonRenderer:
    """The lossless form."""

    def __init__(self) -> None:
        self._kept: dict[str, bool] = {}
        """Lists that were written, and whether something final stands in them."""

    def render(self, fresh: Fresh) -> list[Region]:
        """The regions: what stands before the lists, each list with its beginning and end, the memory."""
        regions = [Region(fresh=document.head(fresh.conversation))]
        records: dict[str, Sequence[Turn | StoredContext | Spoken]]
        records = {"turns": fresh.turns, "contexts": fresh.contexts, "spoken": fresh.spoken}
        kept = self._kept
        for name in document.LISTS:
            started = kept.get(name, False)
            pieces = document.items(records[name], first=not started)
            final = _final_bytes(pieces, sum(record.turn_index <= fresh.final for record in records[name]))
            regions += [
                Region(fresh=document.list_begin(name)),
                Region(fresh=b"".join(pieces), keep=name in kept, final=final),
                Region(fresh=document.list_end(empty=not pieces and not started)),
            ]
            self._kept = {**self._kept, name: started or final > 0}
        return [*regions, _memory(None if fresh.memory is None else document.tail(fresh.memory))]


class MarkdownRenderer:
    """The form for people."""

    def __init__(self) -> None:
        self._kept = False

    def render(self, fresh: Fresh) -> list[Region]:
        """The regions: title and facts, the memory, the files, the turns."""
        turns = [_encoded(markdown.turn_text(turn)) for turn in fresh.turns]
        final = _final_bytes(turns, sum(turn.turn_index <= fresh.final for turn in fresh.turns))
        regions = [
            Region(fresh=_encoded(markdown.head_text(fresh.conversation))),
            _memory(None if fresh.memory is None else _encoded(markdown.memory_text(fresh.memory))),
            Region(fresh=_encoded(markdown.files_text(fresh.files.values()))),
            Region(fresh=b"".join(turns), keep=self._kept, final=final),
            Region(fresh=b"\n"),
        ]
        self._kept = True
        return regions


class Tally:
    """The files of final turns, so that all files are known without reading those turns again."""

    def __init__(self) -> None:
        self._files: dict[str, AccessedFile] = {}

    def with_turns(self, turns: Sequence[Turn], final: int) -> dict[str, AccessedFile]:
        """The files of all turns up to these; those of final ones are remembered."""
        settled = [file for turn in turns if turn.turn_index <= final for file in touched_by(turn)]
        self._files = joined((*self._files.values(), *settled))
        return joined((*self._files.values(), *(f for t in turns if t.turn_index > final for f in touched_by(t))))


def _memory(fresh: bytes | None) -> Region:
    return Region(fresh=b"", keep=True) if fresh is None else Region(fresh=fresh, final=len(fresh))


def _final_bytes(pieces: Sequence[bytes], count: int) -> int:
    return sum(len(piece) for piece in pieces[:count])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
