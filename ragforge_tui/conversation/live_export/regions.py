"""Regions of a conversation's export files. Joined, they equal the output of `export` byte for byte.

Used by the export writer. It remembers how far the turns are final, not the turns themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ragforge_tui.conversation.live_export.growing_file import Region
from ragforge_tui.export import json as document
from ragforge_tui.export import markdown
from ragforge_tui.shared.accessed_files import accesses_of, merge_by_path
from ragforge_tui.shared.export_records import MemoryExport, Spoken, StoredContext
from ragforge_tui.shared.records import AccessedFile, Conversation, Turn

OPEN_TURNS = 2
"""Newest turns, written again each time: they may be retried, or still be running."""


class Fresh(msgspec.Struct, kw_only=True):
    """Data that a write adds to the final part of the turns.

    Attributes:
        final: Last turn index that will not change any more.
        turns: Turns that were not final before this write.
        memory: None if it has not changed.
        files: Files of all turns.
    """

    conversation: Conversation
    final: int
    turns: list[Turn] = []
    contexts: list[StoredContext] = []
    spoken: list[Spoken] = []
    memory: MemoryExport | None = None
    files: dict[str, AccessedFile] = {}


class Renderer(Protocol):
    """Format of the export; each `render` continues after the part that the previous one marked as final."""

    def render(self, fresh: Fresh) -> list[Region]: ...


class JsonRenderer:
    """Renderer of the lossless JSON format."""

    def __init__(self) -> None:
        self._written: dict[str, bool] = {}
        """Lists that were written, and whether they hold any final record."""

    def render(self, fresh: Fresh) -> list[Region]:
        """Return the regions: the head, each list with its start and end, the memory."""
        regions = [Region(fresh=document.head(fresh.conversation))]
        records: dict[str, Sequence[Turn | StoredContext | Spoken]]
        records = {"turns": fresh.turns, "contexts": fresh.contexts, "spoken": fresh.spoken}
        written = self._written
        for name in document.LISTS:
            started = written.get(name, False)
            pieces = document.items(records[name], first=not started)
            final = _final_bytes(pieces, sum(record.turn_index <= fresh.final for record in records[name]))
            regions += [
                Region(fresh=document.list_begin(name)),
                Region(fresh=b"".join(pieces), keep=name in written, final=final),
                Region(fresh=document.list_end(empty=not pieces and not started)),
            ]
            self._written = {**self._written, name: started or final > 0}
        return [*regions, _memory(None if fresh.memory is None else document.tail(fresh.memory))]


class MarkdownRenderer:
    """Renderer of the Markdown format, for reading."""

    def __init__(self) -> None:
        self._written = False

    def render(self, fresh: Fresh) -> list[Region]:
        """Return the regions: title and facts, the memory, the files, the turns."""
        turns = [_encoded(markdown.turn_text(turn)) for turn in fresh.turns]
        final = _final_bytes(turns, sum(turn.turn_index <= fresh.final for turn in fresh.turns))
        regions = [
            Region(fresh=_encoded(markdown.head_text(fresh.conversation))),
            _memory(None if fresh.memory is None else _encoded(markdown.memory_text(fresh.memory))),
            Region(fresh=_encoded(markdown.files_text(fresh.files.values()))),
            Region(fresh=b"".join(turns), keep=self._written, final=final),
            Region(fresh=b"\n"),
        ]
        self._written = True
        return regions


class Tally:
    """Files of final turns, so that listing all files does not read those turns again."""

    def __init__(self) -> None:
        self._files: dict[str, AccessedFile] = {}

    def with_turns(self, turns: Sequence[Turn], final: int) -> dict[str, AccessedFile]:
        """Return the files of all turns up to these; those of final ones are remembered."""
        settled = [file for turn in turns if turn.turn_index <= final for file in accesses_of(turn)]
        self._files = merge_by_path((*self._files.values(), *settled))
        return merge_by_path(
            (*self._files.values(), *(f for t in turns if t.turn_index > final for f in accesses_of(t)))
        )


def _memory(fresh: bytes | None) -> Region:
    return Region(fresh=b"", keep=True) if fresh is None else Region(fresh=fresh, final=len(fresh))


def _final_bytes(pieces: Sequence[bytes], count: int) -> int:
    return sum(len(piece) for piece in pieces[:count])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
