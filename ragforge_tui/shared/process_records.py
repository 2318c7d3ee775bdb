"""Records of the agent's background processes, as the screen gets them."""

from __future__ import annotations

from datetime import datetime

import msgspec


class ProcessEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One background process.

    Attributes:
        ending: How it ended; empty while it runs.
        lines: Its last lines of output.
    """

    number: int
    command: str
    started: datetime
    ending: str = ""
    lines: list[str] = []
