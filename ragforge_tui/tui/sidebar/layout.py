"""Layout of the sidebar, kept in a file from chat to chat.

Pure. The sidebar reads it before the first paint, so that the chat does not move afterwards, and writes it when the
user changes something. A damaged file counts as missing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

log = logging.getLogger(__name__)

FILE_NAME = "layout.json"
BESIDE_COLUMNS = 120
"""Screen width from which the sidebar is next to the chat."""
STACKED_ROWS = 24
"""With fewer rows only one pane is open at a time."""
SMALLEST_WIDTH = 24
CHAT_COLUMNS = 56
"""Columns that the chat keeps next to the sidebar."""
OVERLAY_WIDTH = 64
USUAL_SHARE = 4
LARGEST_SHARE = 12

Share = Annotated[int, Meta(ge=0, le=LARGEST_SHARE)]


class Layout(msgspec.Struct, kw_only=True):
    """Open panes and their sizes.

    Attributes:
        open: Whether the sidebar is shown next to the chat if there is room.
        width: Its columns there.
        active: The last used pane; the only open one when `zoomed` or when there is little height.
        shares: The relative height of each pane; 0 is folded to its title.
    """

    open: bool = True
    width: Annotated[int, Meta(ge=1, le=2000)] = 46
    active: str = "trace"
    zoomed: bool = False
    shares: dict[str, Share] = {}

    def share(self, pane: str) -> int:
        return self.shares.get(pane, USUAL_SHARE)

    def grow(self, pane: str, by: int) -> None:
        """Give a pane more or less height; with none left it is folded."""
        self.shares[pane] = max(0, min(LARGEST_SHARE, self.share(pane) + by))

    def fold(self, pane: str) -> None:
        """Fold a pane to its title, or unfold it."""
        self.shares[pane] = 0 if self.share(pane) else USUAL_SHARE

    def columns(self, available: int) -> int:
        """Return the columns of the sidebar, next to the chat or over it."""
        if available < BESIDE_COLUMNS:
            return max(1, min(available - 2, max(self.width, OVERLAY_WIDTH)))
        return max(SMALLEST_WIDTH, min(self.width, available - CHAT_COLUMNS))

    def opened(self, panes: Sequence[str], rows: int) -> list[str]:
        """Return the panes that are open in so many rows, in order."""
        if self.zoomed or rows < STACKED_ROWS:
            return [self.active] if self.active in panes else list(panes[:1])
        return [pane for pane in panes if self.share(pane)]


def load(state_dir: Path) -> Layout:
    """Load the stored layout, or the default one."""
    try:
        return msgspec.json.decode((state_dir / FILE_NAME).read_bytes(), type=Layout)
    except FileNotFoundError:
        return Layout()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("layout not read: %s", error)
        return Layout()


def save(state_dir: Path, layout: Layout) -> None:
    """Store a layout. Failure is logged, never shown: the chat matters more."""
    path = state_dir / FILE_NAME
    fresh = path.with_name(f".{FILE_NAME}.{os.getpid()}")
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(layout))
        fresh.replace(path)
    except OSError as error:
        log.warning("layout not saved: %s", error)
