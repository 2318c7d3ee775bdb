"""Prompt history: the prompts sent from all folders, for the arrow keys and for the search.

One file of JSON lines in the state folder, appended to under a lock, so that terminals can share it. No widgets. The
prompts of a private or deleted conversation are offered in that conversation only, and removed when it is purged. It
may become private after they were written, and has no id before the first of them: a line without a text changes the
lines before it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec

from ragforge_tui.shared.files import atomic_write, locked, make_private, open_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.prompt_files import HISTORY
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable

log = logging.getLogger(__name__)

MAX_ENTRY_CHARS = 128_000
"""A longer message is not kept in the history: its turn is in the graph anyway."""
MAX_FILE_BYTES = 2 * 1024 * 1024
"""A larger file loses its older half; thousands of prompts fit, and reading it takes 30 ms."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt: its text, and the texts of its paste labels."""

    text: str
    pastes: dict[str, str] = {}

    @property
    def size(self) -> int:
        return len(self.text) + sum(map(len, self.pastes.values()))


class Sent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line of the file: a sent prompt, or, without a text, a change of its conversation.

    Attributes:
        conversation: Id of the conversation, or a stand-in if it had none yet.
        hidden: Whether the conversation is private or deleted; False in a prompt changes nothing.
        was: The stand-in for the id in earlier lines.
    """

    at: datetime
    text: str = ""
    pastes: dict[str, str] = {}
    folder: str = ""
    conversation: str = ""
    hidden: bool = False
    was: str = ""

    @property
    def entry(self) -> Entry:
        return Entry(self.text, self.pastes)


class History:
    """Earlier prompts, and the position while the user walks through them.

    Args:
        workspace: The folder of the chat; the arrow keys walk through its prompts.
    """

    def __init__(self, state_dir: Path, workspace: str) -> None:
        self._path = state_dir / HISTORY
        self._folder = storable(workspace)
        self._conversation = self._stand_in = _new_stand_in()
        self._read_until: tuple[int, int] = (0, 0)
        """The file that was read, by its inode, and how far."""
        self._sent: list[Sent] = []
        self._hidden: dict[str, bool] = {}
        self._ids: dict[str, str] = {}
        """Conversations by their stand-ins."""
        self._walk: list[Entry] = []
        self._index: int | None = None
        self._draft = Entry("")

    # -- walking

    def older(self, current: Entry) -> Entry | None:
        """Go one step back; `current` is remembered and follows the newest. Returns None at the oldest."""
        if self._index is None:
            self._walk = _without_repeats(sent.entry for sent in self._visible(everywhere=False))
            self._draft = current
            self._index = len(self._walk)
        while self._index > 0:
            self._index -= 1
            if self._walk[self._index] != current:
                return self._walk[self._index]
        return None

    def newer(self) -> Entry | None:
        """Go one step forward, at the end to the remembered prompt. Returns None if not walking."""
        if self._index is None:
            return None
        self._index += 1
        if self._index < len(self._walk):
            return self._walk[self._index]
        self._index = None
        return self._draft

    def leave(self) -> None:
        """Stop walking: the next `older` starts at the newest."""
        self._index = None

    # -- searching

    def prompts(self, *, everywhere: bool) -> list[Sent]:
        """Return the prompts of this folder or of all folders, each once, the last sent first."""
        newest: dict[tuple[str, ...], Sent] = {}
        for sent in reversed(self._visible(everywhere=everywhere)):
            newest.setdefault((sent.text, *sent.pastes.values()), sent)
        return list(newest.values())

    def _visible(self, *, everywhere: bool) -> list[Sent]:
        self._read()
        return [sent for sent in self._sent if (everywhere or sent.folder == self._folder) and self._offered(sent)]

    def _offered(self, sent: Sent) -> bool:
        conversation = self._owner(sent)
        return conversation == self._conversation or not self._hidden.get(conversation)

    def _owner(self, sent: Sent) -> str:
        return self._ids.get(sent.conversation, sent.conversation)

    # -- writing

    def add(self, entry: Entry) -> None:
        """Append a sent prompt. Failure to write is logged, never shown: the chat matters more."""
        self.leave()
        if entry.text.strip() and entry.size <= MAX_ENTRY_CHARS:
            sent = Sent(
                at=datetime.now(UTC),
                text=entry.text,
                pastes=entry.pastes,
                folder=self._folder,
                conversation=self._conversation,
                hidden=self._hidden.get(self._conversation, False),
            )
            self._append(decode_json(masked(sent), Sent))

    def open(self, conversation: Conversation | None, *, private: bool = False) -> None:
        """Assign the next prompts, and those sent while none was open, to this conversation.

        Args:
            conversation: None: the prompts begin a new one.
            private: Whether that new one is to be private.
        """
        if conversation is None:
            if self._conversation != self._stand_in:
                self._conversation = self._stand_in = _new_stand_in()
            if private != self._hidden.get(self._stand_in, False):
                self.hide(self._stand_in, private)
        elif conversation.uuid != self._conversation:
            self._read()
            waited, self._conversation = self._conversation == self._stand_in, conversation.uuid
            if waited and self._has_prompts(self._stand_in):
                self._append(_change(conversation.uuid, was=self._stand_in, hidden=_is_hidden(conversation)))
            else:
                self.changed(conversation)

    def changed(self, conversation: Conversation) -> None:
        """Hide the prompts of a conversation that is private or deleted now, or offer them again."""
        self.hide(conversation.uuid, _is_hidden(conversation))

    def hide(self, conversation_id: str, hidden: bool = True) -> None:
        """Keep the prompts of a conversation out of the others, or offer them there again."""
        self._read()
        if hidden != self._hidden.get(conversation_id, False):
            self._hidden[conversation_id] = hidden
            if self._has_prompts(conversation_id):
                self._append(_change(conversation_id, hidden=hidden))

    def _has_prompts(self, conversation_id: str) -> bool:
        return any(self._owner(sent) == conversation_id for sent in reversed(self._sent))

    def _append(self, sent: Sent) -> None:
        try:
            make_private(self._path.parent)
            with locked(self._path.parent):
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(self._path, flags, 0o600), "ab") as file:
                    size = file.tell()
                    # A terminal may have died while it wrote: its half line must not take this one with it.
                    whole = not size or os.pread(file.fileno(), 1, size - 1) == b"\n"
                    line = msgspec.json.encode(sent) + b"\n"
                    file.write(line if whole else b"\n" + line)
                if size > MAX_FILE_BYTES:
                    self._trim()
        except OSError as error:
            log.warning("prompt history not written: %s", error)
            self._take(sent)

    def _trim(self) -> None:
        with open_regular(self._path) as file:
            file.seek(-MAX_FILE_BYTES // 2, os.SEEK_END)
            newest = file.read()
        atomic_write(self._path, newest[newest.find(b"\n") + 1 :], sync=False)

    # -- reading

    def _read(self) -> None:
        """Take in the lines that this and other terminals have written since."""
        try:
            with open_regular(self._path) as file:
                inode, (known, offset) = os.fstat(file.fileno()).st_ino, self._read_until
                if known != inode or file.seek(0, os.SEEK_END) < offset:
                    offset = 0
                    self._sent.clear()
                file.seek(offset)
                data = file.read(MAX_FILE_BYTES * 2)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("prompt history not read: %s", error)
            return
        end = data.rfind(b"\n") + 1  # Another terminal may be writing the rest of the last line.
        self._read_until = inode, offset + end
        for line in data[:end].splitlines():
            try:
                self._take(decode_json(line, Sent))
            except msgspec.MsgspecError:
                continue  # Half a line of a terminal that died while writing.

    def _take(self, sent: Sent) -> None:
        if sent.was:
            self._ids[sent.was] = sent.conversation
        if sent.hidden or not sent.text:
            self._hidden[sent.conversation] = sent.hidden
        if sent.text:
            self._sent.append(sent)


def masked(prompt: Entry | Sent) -> bytes:
    """Return a prompt as it is written: with keys masked, as they are when it is sent."""
    return mask_secrets(msgspec.json.encode(prompt).decode()).encode()


def _new_stand_in() -> str:
    return f"new-{uuid4().hex}"


def _is_hidden(conversation: Conversation) -> bool:
    return conversation.private or conversation.status == "deleted"


def _change(conversation_id: str, *, hidden: bool, was: str = "") -> Sent:
    return Sent(at=datetime.now(UTC), conversation=conversation_id, hidden=hidden, was=was)


def _without_repeats(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without those that are like the one before them."""
    kept: list[Entry] = []
    for entry in entries:
        if not kept or kept[-1] != entry:
            kept.append(entry)
    return kept
