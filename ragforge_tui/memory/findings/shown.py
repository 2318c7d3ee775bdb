"""Findings as the screens list them: what holds, and struck through what no longer does, with the turn it led to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.shared.finding_records import FORGOTTEN_BY_USER, KeptFinding, ShownFinding, said_kind
from ragforge_tui.shared.records import Finding

Place = tuple[str, int]


class FindingOutcomes(Settled, frozen=True):
    """What became of findings, and where.

    Attributes:
        closed_in: Conversation and turn that closed a finding, by its id.
    """

    closed_in: dict[str, Place] = msgspec.field(default_factory=dict)

    def shown(self, finding: Finding, gone: KeptFinding | None, conversation_id: str) -> ShownFinding:
        """Return a finding as it is shown in a conversation."""
        base = ShownFinding(text=finding.text, turns=finding.turns, kind=finding.kind)
        if gone is None:
            return base
        new = self.replacing.get(gone.replaced_by)
        place = (new.conversation_id, new.turn_index) if new is not None else self.closed_in.get(gone.uuid, ("", 0))
        return ShownFinding(
            text=finding.text,
            turns=finding.turns,
            kind=finding.kind,
            became=self.what_became(gone),
            leads_to="" if place[0] == conversation_id else place[0],
            leads_turn=place[1],
        )

    def all_shown(self, findings: Iterable[Finding], conversation_id: str, last_turn: int) -> list[ShownFinding]:
        """Return the findings of a summary or an insight of a conversation as they are shown."""
        return [
            self.shown(one, self.repeated_by(one, conversation_id, last_turn=last_turn), conversation_id)
            for one in findings
        ]


async def outcomes_of(store: Store, workspaces: Iterable[str], asking: str = "") -> FindingOutcomes:
    """Return what no longer holds in these folders."""
    found = [one for folder in workspaces for one in await store.findings.settled(folder, asking=asking)]
    settled = Settled.of(found)
    closed_in = await store.findings.closing_turns([one.uuid for one in settled.gone if one.closed_by])
    return FindingOutcomes(gone=settled.gone, replacing=settled.replacing, closed_in=closed_in)


def listed_findings(
    kept: Sequence[KeptFinding], told: Sequence[Finding], outcomes: FindingOutcomes, conversation_id: str
) -> list[ShownFinding]:
    """Return the findings of a conversation, the newest first: the kept ones, and those of its summaries alone."""
    shown = [
        outcomes.shown(
            Finding(text=one.text, turns=[one.turn_index], kind=said_kind(one.kind)),
            None if one.is_current else one,
            conversation_id,
        )
        for one in kept
        if one.closed_by != FORGOTTEN_BY_USER
    ]
    known = [gist(one.text) for one in kept]
    for one in told:
        mine = gist(one.text)
        if one.kind in ("", "fact") and not any(mine.is_alike(theirs) for theirs in known):
            shown += outcomes.all_shown([one], conversation_id, 0)
    return sorted(shown, key=lambda one: (bool(one.became), -max(one.turns, default=0)))
