"""Drafts of prompts that were not sent.

Each belongs to one process, and is offered to the next one when that process is gone. The draft of a private
conversation is offered in that conversation only.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.prompt_files import DRAFTS
from ragforge_tui.tui.prompt.history import Entry, masked

log = logging.getLogger(__name__)


class Unsent(Entry, frozen=True, omit_defaults=True):
    """A prompt as it is stored.

    Attributes:
        only_in: Id of the private conversation that it belongs to; empty if it is offered anywhere.
    """

    only_in: str = ""


class Draft:
    """The contents of the prompt, stored on disk so that a crash does not lose them."""

    def __init__(self, state_dir: Path, workspace: str, pid: int | None = None) -> None:
        self._folder = state_dir / DRAFTS
        self._key = workspace_key(workspace)
        self._path = self._folder / f"{self._key}-{pid or os.getpid()}.json"
        self._conversation = ""
        self._only_in: str | None = ""
        """Id of the private conversation; None for a private one that has not begun and can never be opened again."""

    def open(self, conversation_id: str, *, private: bool) -> bool:
        """Assign the prompt to a conversation, or to the next one; return whether that changes where it is offered."""
        before = self._conversation, self._only_in
        self._conversation = conversation_id
        self._only_in = (conversation_id or None) if private else ""
        return before != (self._conversation, self._only_in)

    def save(self, entry: Entry) -> None:
        """Store a prompt; one without a use, such as an empty one or the beginning of a command, removes the file."""
        try:
            if entry.text.strip() in ("", "/") or self._only_in is None:
                self._path.unlink(missing_ok=True)
                return
            atomic_write(self._path, masked(Unsent(entry.text, entry.pastes, self._only_in)), sync=False)
        except OSError as error:
            log.warning("draft not written: %s", error)

    def restore(self) -> Entry | None:
        """Take the newest draft of this workspace whose process is gone; only one terminal gets it.

        With an open conversation it is one of that conversation's own, else one that is offered anywhere.
        """
        try:
            drafts = sorted(self._folder.glob(f"{self._key}-*.json"), key=lambda path: -path.stat().st_mtime)
        except OSError:
            return None
        for path in drafts:
            pid = path.stem.rpartition("-")[2]
            if path == self._path or (pid.isdecimal() and _alive(int(pid))):
                continue
            try:
                data = read_regular(path, STATE_BYTES)
                draft = decode_json(data, Unsent)
                if draft.only_in == self._conversation:
                    path.unlink()
                    return Entry(draft.text, draft.pastes)
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("draft %s not restored: %s", path.name, error)
        return None


def workspace_key(workspace: str) -> str:
    return hashlib.sha256(workspace.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
