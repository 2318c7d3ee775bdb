"""Records about what requests to models took: single requests, and reports of their sums."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.records import Usage

Purpose = Literal["title", "summary", "insight", "code", "answer"]
"""Background work that asks a model; ``answer`` is the one that `recall` gives from quotes."""
UsageBy = Literal["day", "model", "folder", "persona", "cause"]
GROUPINGS: tuple[UsageBy, ...] = ("day", "model", "folder", "persona", "cause")


class BackgroundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of background work to a model, about one conversation."""

    uuid: str
    conversation_id: str
    purpose: Purpose
    model: str
    timestamp: datetime
    usage: Usage


class SpentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Answered request to a model, of a turn or of background work.

    Attributes:
        turn_index: 0 for background work, as is `position`.
        purpose: Of background work; empty for a reply of a turn.
        helper: Whether a helper of the agent made it.
        superseded: Whether the user had the turn answered again.
        unknown: Whether the answer was cut off before the provider counted its tokens.
        context: Id of the stored context of the request; empty if there is none.
        agent: Another agent that made it, whose session was imported; empty for this program.
    """

    conversation_id: str
    turn_index: int = 0
    position: int = 0
    timestamp: datetime
    model: str
    persona: str = ""
    workspace: str = ""
    purpose: str = ""
    helper: bool = False
    superseded: bool = False
    unknown: bool = False
    context: str = ""
    agent: str = ""
    usage: Usage = Usage()


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sum over some requests, or over a part of each of them.

    Attributes:
        group: Heading that it belongs under; empty outside a report by cause.
        cost_usd: Sum of the prices that are known; None if none is, or if the row is only a part of requests.
        unpriced: Number of requests whose price is unknown.
    """

    name: str
    group: str = ""
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    retries: int = 0
    cost_usd: float | None = None
    unpriced: int = 0


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of requests to models, largest first; days from the newest on, causes by group."""

    by: UsageBy
    rows: list[UsageRow] = []
    total: UsageRow = UsageRow(name="total")
