"""Sums over requests, and over the parts that they sent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragforge_tui.shared.usage_records import SpentRequest, UsageRow


def row_of(name: str, requests: Sequence[SpentRequest], *, group: str = "") -> UsageRow:
    """Return the sum over some requests."""
    usages = [one.usage for one in requests]
    costs = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return UsageRow(
        name=name,
        group=group,
        requests=len(usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        retries=sum(usage.retries for usage in usages),
        cost_usd=sum(costs) if costs else None,
        unpriced=len(usages) - len(costs),
    )


class Tokens(msgspec.Struct):
    """Tokens that some requests spent on one part of them."""

    requests: int = 0
    tokens: int = 0

    def add(self, tokens: int) -> None:
        self.requests += 1
        self.tokens += tokens


class PartSums:
    """Sums of parts of requests by name, under one heading."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._sums: dict[str, Tokens] = {}

    def add(self, name: str, tokens: int) -> None:
        """Add the tokens of one request to a part; a part without tokens is none."""
        if tokens > 0:
            self._sums.setdefault(name, Tokens()).add(tokens)

    def rows(self) -> list[UsageRow]:
        """Return the sums, largest first."""
        rows = [
            UsageRow(name=name, group=self._group, requests=one.requests, input_tokens=one.tokens)
            for name, one in self._sums.items()
        ]
        return sorted(rows, key=lambda row: (-row.input_tokens, row.name))
