"""What the chat keeps on disk of prompts: those that were sent and drafts, by conversation.

The chat writes and reads them (`tui/prompt`). A purge, in any process, removes what belongs to its conversation.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, open_regular, read_regular
from ragforge_tui.shared.json_text import decode_json

HISTORY = "history/prompts.jsonl"
"""Sent prompts, one a line; written and replaced under a lock on its folder."""
DRAFTS = "drafts"
"""Folder of drafts, one file a process."""


class _Line(msgspec.Struct, frozen=True):
    """The conversation of a line, and the stand-in for it in earlier lines."""

    conversation: str = ""
    was: str = ""


class _Draft(msgspec.Struct, frozen=True):
    only_in: str = ""


def forget_prompts(state_dir: Path, conversations: Collection[str]) -> list[str]:
    """Remove the prompts and private drafts of conversations, and return a sentence if that failed. Blocks."""
    try:
        sent = state_dir / HISTORY
        if sent.exists():
            with locked(sent.parent):
                _forget_sent(sent, conversations)
        for path in (state_dir / DRAFTS).glob("*.json"):
            with suppress(msgspec.MsgspecError, FileNotFoundError):
                if decode_json(read_regular(path, STATE_BYTES), _Draft).only_in in conversations:
                    path.unlink()
    except OSError as error:
        return [f"Its prompts are still on disk: {error}."]
    return []


def _forget_sent(path: Path, conversations: Collection[str]) -> None:
    with open_regular(path) as file:
        lines = [(line, _read(line)) for line in file]
    gone = {*conversations, *(read.was for _, read in lines if read.was and read.conversation in conversations)}
    kept = [line for line, read in lines if read.conversation not in gone]
    if len(kept) < len(lines):
        atomic_write(path, b"".join(kept), sync=False)


def _read(line: bytes) -> _Line:
    try:
        return decode_json(line, _Line)
    except msgspec.MsgspecError:
        return _Line()  # Half a line of a terminal that died while writing.
