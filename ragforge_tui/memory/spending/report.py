"""Report of what requests to models took, by one grouping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from ragforge_tui.graph import Store
from ragforge_tui.memory.spending.causes import Causes
from ragforge_tui.memory.spending.sent_parts import SentParts, read_parts
from ragforge_tui.memory.spending.sums import row_of
from ragforge_tui.shared.usage_records import SpentRequest, UsageBy, UsageReport, UsageRow

_CONTEXTS = 200
"""Contexts held as JSON at once: one may be as long as a conversation has turns."""


async def usage_report(
    store: Store,
    by: UsageBy,
    *,
    since: datetime | None = None,
    workspace: str | None = None,
    conversation_id: str = "",
) -> UsageReport:
    """Return the usage of requests since a time, other agents' too; only own ones have causes.

    Args:
        workspace: Only requests of this folder's conversations; None for all.
        conversation_id: Only requests of this conversation and its helpers; empty for all.
    """
    everything = await store.spending.requests(since, workspace=workspace, conversation_id=conversation_id)
    if by == "cause":
        everything = [one for one in everything if not one.agent]
    counted = [one for one in everything if since is None or one.timestamp >= since]
    total = row_of("total", counted)
    if by != "cause":
        return UsageReport(by=by, rows=await asyncio.to_thread(_grouped, counted, by), total=total)
    parts = await _parts(store, everything)
    rows = await asyncio.to_thread(lambda: Causes(everything, parts, since).rows())
    return UsageReport(by=by, rows=rows, total=total)


async def _parts(store: Store, requests: Sequence[SpentRequest]) -> dict[str, SentParts]:
    ids = list(dict.fromkeys(one.context for one in requests if one.context))
    parts: dict[str, SentParts] = {}
    for start in range(0, len(ids), _CONTEXTS):
        parts |= await asyncio.to_thread(read_parts, await store.spending.contexts(ids[start : start + _CONTEXTS]))
    return parts


def _grouped(requests: Iterable[SpentRequest], by: UsageBy) -> list[UsageRow]:
    groups: dict[str, list[SpentRequest]] = {}
    name = _NAMES[by]
    for one in requests:
        groups.setdefault(name(one), []).append(one)
    rows = [row_of(key, group) for key, group in groups.items()]
    if by == "day":
        return sorted(rows, key=lambda row: row.name, reverse=True)
    return sorted(rows, key=lambda row: (-row.input_tokens - row.output_tokens, row.name))


def _persona(one: SpentRequest) -> str:
    if one.purpose:
        return "(in the background)"
    if one.agent:
        return f"({one.agent})"
    return one.persona or "(none)"


_NAMES: dict[UsageBy, Callable[[SpentRequest], str]] = {
    "day": lambda one: f"{one.timestamp.astimezone():%Y-%m-%d}",
    "model": lambda one: one.model,
    "folder": lambda one: one.workspace or "(none)",
    "persona": _persona,
}
