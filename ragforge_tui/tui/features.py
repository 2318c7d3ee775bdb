"""Record of the features that a user has used, for hints about others and for the order of the palette.

A small file in the user's state. It holds names only, never typed text; a damaged one counts as missing.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json

log = logging.getLogger(__name__)

FILE_NAME = "features.json"


class _Record(msgspec.Struct):
    """Contents of the file."""

    used: set[str] = set()
    starts: int = 0
    chosen: dict[str, int] = {}


class Features:
    """Features used so far, in any chat of this user.

    Names are those of commands, and ``@``, ``!`` and ``tree`` for a mention, a command of the user, and the contents of
    the memory pane.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE_NAME
        self._record = self._load()

    @property
    def used(self) -> frozenset[str]:
        return frozenset(self._record.used)

    @property
    def starts(self) -> int:
        """The number of chats started before this one."""
        return self._record.starts

    def add(self, name: str) -> None:
        """Note that a feature was used; only the first use is written."""
        if name not in self._record.used:
            self._record.used.add(name)
            self._save()

    def choose(self, command: str) -> None:
        """Count a command that was picked or typed, not run by a key."""
        self._save(chosen=command)

    def most_chosen(self) -> list[str]:
        """Return the commands picked or typed so far, the most frequent first."""
        return sorted(self._record.chosen, key=lambda name: -self._record.chosen[name])

    def count_start(self) -> None:
        """Count this chat for the next one; the number here stays."""
        self._save(starts=self._record.starts + 1)

    def _load(self) -> _Record:
        try:
            return decode_json(read_regular(self._path, STATE_BYTES), _Record)
        except FileNotFoundError:
            return _Record()
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("used features not read: %s", error)
            return _Record()

    def _save(self, *, starts: int = 0, chosen: str = "") -> None:
        """Write the record, joined with what another terminal wrote meanwhile. Failure is logged, never shown."""
        stored = self._load()
        counts = self._record.chosen = dict(stored.chosen)
        if chosen:
            counts[chosen] = counts.get(chosen, 0) + 1
        both = _Record(used=self._record.used | stored.used, starts=max(starts, stored.starts), chosen=counts)
        try:
            atomic_write(self._path, msgspec.json.encode(both), sync=False)
        except OSError as error:
            log.warning("used features not saved: %s", error)
