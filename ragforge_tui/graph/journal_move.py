"""The move of a journal to a graph it does not belong to, at the user's request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.graph.journal import drain_file, is_stored, lock
from ragforge_tui.graph.journal_folders import JournalFolders
from ragforge_tui.graph.journal_records import Named, named_in, whole_lines
from ragforge_tui.shared.records import Conversation, now

if TYPE_CHECKING:
    from ragforge_tui.graph.repositories import Store


class Moved(msgspec.Struct, frozen=True):
    """The outcome of `move_journal`, in records."""

    written: int
    refused: int
    busy: int
    """Files that a running chat still appends to; they were left alone."""
    conversations: int
    """Conversations that were made to hold turns whose own conversation is in another graph."""


async def move_journal(root: Path, key: str, store: Store, *, workspace: str) -> Moved:
    """Write a journal into a graph it does not belong to, because a user wants it there.

    Conversations that only the other graph has are made here, to hold the turns that are in the journal. Records that
    were refused are tried again.

    Args:
        key: Of the `JournalInfo`.
        workspace: Folder of the conversations that are made.

    Raises:
        GraphUnavailableError: The graph went away; what is not in yet is kept.
    """
    written = refused = busy = made = 0
    for path in JournalFolders(root).files(key):
        try:
            with path.open("rb+") as file:
                if not lock(path, file):
                    busy += 1
                    continue
                lines = list(whole_lines(file))
                made += await _make_missing(store, named_in(lines), workspace)
                file.seek(0)
                done = await drain_file(store, path, file, set())
                written, refused = written + done, refused + len(lines) - done
        except FileNotFoundError:
            continue
    return Moved(written=written, refused=refused, busy=busy, conversations=made)


async def _make_missing(store: Store, named: Named, workspace: str) -> int:
    missing = [uuid for uuid in sorted(named.others) if not await is_stored(store, uuid)]
    for uuid in missing:
        moment = now()
        await store.conversations.create(
            Conversation(uuid=uuid, title="From a journal", created_at=moment, updated_at=moment, workspace=workspace)
        )
    return len(missing)
