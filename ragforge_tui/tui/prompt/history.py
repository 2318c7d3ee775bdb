"""Prompt history of a workspace, and drafts of prompts that were not sent.

Plain files, no widgets. The history is JSON lines appended under a lock, so that terminals can share it; a draft
belongs
to one process and is offered to the next one when that process is gone.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, make_private, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.redaction import mask_secrets

log = logging.getLogger(__name__)

MAX_ENTRIES = 500
MAX_ENTRY_CHARS = 256_000
MAX_FILE_BYTES = 256 * 1024 * 1024
"""A longer message is not kept in the history: its turn is in the graph anyway."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt: its text, and the texts of its paste labels."""

    text: str
    pastes: dict[str, str] = {}

    @property
    def size(self) -> int:
        return len(self.text) + sum(map(len, self.pastes.values()))


def workspace_key(workspace: str) -> str:
    return hashlib.sha256(workspace.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class History:
    """Earlier prompts, and the position while the user walks through them."""

    def __init__(self, state_dir: Path, workspace: str) -> None:
        self._path = state_dir / "history" / f"{workspace_key(workspace)}.jsonl"
        self._entries: list[Entry] = []
        self._stamp: tuple[int, int] | None = None
        self._index: int | None = None
        self._draft = Entry("")

    def older(self, current: Entry) -> Entry | None:
        """Go one step back; `current` is remembered and follows the newest. Returns None at the oldest."""
        if self._index is None:
            self._reload()
            self._draft = current
            self._index = len(self._entries)
        while self._index > 0:
            self._index -= 1
            if self._entries[self._index] != current:
                return self._entries[self._index]
        return None

    def newer(self) -> Entry | None:
        """Go one step forward, at the end to the remembered prompt. Returns None if not walking."""
        if self._index is None:
            return None
        self._index += 1
        if self._index < len(self._entries):
            return self._entries[self._index]
        self._index = None
        return self._draft

    def leave(self) -> None:
        """Stop walking: the next `older` starts at the newest."""
        self._index = None

    def add(self, entry: Entry) -> None:
        """Append a sent prompt. Failure to write is logged, never shown: the chat matters more."""
        self.leave()
        if not entry.text.strip() or entry.size > MAX_ENTRY_CHARS:
            return
        entry = decode_json(_encoded(entry), Entry)
        if self._entries and self._entries[-1] == entry:
            return
        self._entries.append(entry)
        try:
            make_private(self._path.parent)
            with locked(self._path.with_suffix(".lock")):
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(self._path, flags, 0o600), "ab") as file:
                    file.write(msgspec.json.encode(entry) + b"\n")
                self._trim()
        except OSError as error:
            log.warning("prompt history not written: %s", error)

    def _trim(self) -> None:
        lines = read_regular(self._path, MAX_FILE_BYTES).splitlines(keepends=True)
        if len(lines) > MAX_ENTRIES * 2:
            atomic_write(self._path, b"".join(lines[-MAX_ENTRIES:]), sync=False)

    def _reload(self) -> None:
        try:
            stat = self._path.stat()
            if (stat.st_size, stat.st_mtime_ns) == self._stamp:
                return
            lines = read_regular(self._path, MAX_FILE_BYTES).splitlines()
            self._stamp = (stat.st_size, stat.st_mtime_ns)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("prompt history not read: %s", error)
            return
        entries: list[Entry] = []
        for line in lines[-MAX_ENTRIES:]:
            try:
                entry = decode_json(line, Entry)
            except msgspec.MsgspecError:
                continue  # Half a line of a terminal that died while writing.
            if not entries or entries[-1] != entry:
                entries.append(entry)
        self._entries = entries


class Draft:
    """The contents of the prompt, stored on disk so that a crash does not lose them."""

    def __init__(self, state_dir: Path, workspace: str, pid: int | None = None) -> None:
        self._folder = state_dir / "drafts"
        self._key = workspace_key(workspace)
        self._path = self._folder / f"{self._key}-{pid or os.getpid()}.json"

    def save(self, entry: Entry) -> None:
        """Store a prompt; an empty one, or the beginning of a command, removes the file."""
        try:
            if entry.text.strip() in ("", "/"):
                self._path.unlink(missing_ok=True)
                return
            atomic_write(self._path, _encoded(entry), sync=False)
        except OSError as error:
            log.warning("draft not written: %s", error)

    def restore(self) -> Entry | None:
        """Take the newest draft of this workspace whose process is gone; only one terminal gets it."""
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
                path.unlink()
                return decode_json(data, Entry)
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("draft %s not restored: %s", path.name, error)
        return None


def _encoded(entry: Entry) -> bytes:
    """Return an entry as it is written: with keys masked, as they are when it is sent."""
    return mask_secrets(msgspec.json.encode(entry).decode()).encode()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
