"""How often the user ran each command, for the order of the palette."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import atomic_write

log = logging.getLogger(__name__)


class CommandUses:
    """Counts by name, in a file of the user's state; read when first needed.

    Counts of another terminal since the start are lost when this one writes; only the order of the palette depends on
    them.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "command_uses.json"
        self._counts: dict[str, int] | None = None

    def add(self, name: str) -> None:
        """Count a use; failure to write is logged, never shown."""
        counts = self._read()
        counts[name] = counts.get(name, 0) + 1
        try:
            atomic_write(self._path, msgspec.json.encode(counts), sync=False)
        except OSError as error:
            log.warning("uses of commands not written: %s", error)

    def most_used(self) -> list[str]:
        """Return the names of the commands used so far, the most used first."""
        counts = self._read()
        return sorted(counts, key=lambda name: -counts[name])

    def _read(self) -> dict[str, int]:
        if self._counts is None:
            try:
                self._counts = msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])
            except FileNotFoundError:
                self._counts = {}
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("uses of commands not read: %s", error)
                self._counts = {}
        return self._counts
