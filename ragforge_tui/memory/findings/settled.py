"""What no longer holds: lines that repeat it are not sent as current, and are shown with what became of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.memory.findings.marks import marks
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import cut, sentences
from ragforge_tui.shared.finding_records import FORGOTTEN_BY_USER, FORGOTTEN_SENTENCE, KeptFinding, kept_kind
from ragforge_tui.shared.records import Finding, Summary

_IN_SENTENCE = 0.75
_IN_FINDING = 0.5
_QUOTED_CHARS = 120


class Settled(msgspec.Struct, frozen=True):
    """The findings of a folder that were closed, replaced or forgotten.

    Attributes:
        gone: These findings.
        replacing: What took their place, by id.
    """

    gone: tuple[KeptFinding, ...] = ()
    replacing: dict[str, KeptFinding] = {}

    @classmethod
    def of(cls, found: Iterable[KeptFinding]) -> Settled:
        """Return what no longer holds of findings, some of which replaced others."""
        all_of_them = list(found)
        return cls(
            gone=tuple(one for one in all_of_them if not one.is_current),
            replacing={one.uuid: one for one in all_of_them},
        )

    def __bool__(self) -> bool:
        return bool(self.gone)

    def repeated_by(
        self, finding: Finding, conversation_id: str, *, last_turn: int = 0, date: datetime | None = None
    ) -> KeptFinding | None:
        """Return the finding that a summary's finding repeats although it no longer holds.

        Args:
            last_turn: The newest turn that the line is from, of its conversation.
            date: When it was said, for a line of another conversation.
        """
        kind, mine = kept_kind(finding.kind), gist(finding.text)
        turn = max(finding.turns, default=last_turn)
        for one in self.gone:
            if finding.kind and one.kind != kind:
                continue
            theirs = gist(one.text)
            if not mine.names <= theirs.names | theirs.stems or not self._was_before(one, conversation_id, turn, date):
                continue
            if one.state == "replaced" and theirs.numbers - mine.numbers:
                continue
            if theirs.share_in(mine) >= _IN_SENTENCE or (
                mine.share_in(theirs) >= _IN_SENTENCE and theirs.share_in(mine) >= _IN_FINDING
            ):
                return one
        return None

    def said_in(self, text: str, turn_index: int) -> KeptFinding | None:
        """Return the finding of a turn that a text states in about the same words although it no longer holds."""
        mine = gist(text)
        of_turn = (one for one in self.gone if one.turn_index == turn_index)
        return next((one for one in of_turn if mine.is_same(gist(one.text))), None)

    def successor(self, finding: KeptFinding) -> KeptFinding | None:
        """Return what holds in place of a replaced finding; None if nothing does."""
        seen: set[str] = set()
        while finding.state == "replaced" and finding.replaced_by not in seen:
            seen.add(finding.replaced_by)
            if (new := self.replacing.get(finding.replaced_by)) is None:
                return None
            finding = new
        return finding if finding.is_current else None

    def without_forgotten(self, text: str) -> str:
        """Return a text without the sentences that the user forgot."""
        for one in self.gone:
            if one.closed_by == FORGOTTEN_BY_USER:
                text = text.replace(one.text, FORGOTTEN_SENTENCE)
        return text

    def current(self, summary: Summary, date: datetime | None = None) -> Summary:
        """Return a summary without its lines on settled findings; the same object if it has none."""
        last = summary.end_turn_index
        findings = [
            one
            for one in summary.key_findings
            if self.repeated_by(one, summary.conversation_id, last_turn=last, date=date) is None
        ]
        told = sentences(summary.conversation_summary)
        kept = [one for one in told if not self._is_stale(one, summary.conversation_id, last, date)]
        if len(findings) == len(summary.key_findings) and len(kept) == len(told):
            return summary
        text = " ".join(kept) if len(kept) < len(told) else summary.conversation_summary
        return msgspec.structs.replace(summary, key_findings=findings, conversation_summary=text)

    def of_turn(self, conversation_id: str, turn_index: int) -> list[KeptFinding]:
        """Return the findings that a turn stated and that hold no more, but for those that the user forgot."""
        place = (conversation_id, turn_index)
        stated = (one for one in self.gone if (one.conversation_id, one.turn_index) == place)
        return [one for one in stated if one.closed_by != FORGOTTEN_BY_USER]

    def what_became(self, finding: KeptFinding) -> str:
        """Return what became of a finding, as ``replaced by “Wait 60 s” on 3 October 2026``."""
        day = f" on {finding.until.day} {finding.until:%B %Y}" if finding.until else ""
        if finding.state == "replaced":
            new = self.replacing.get(finding.replaced_by)
            by = f" by “{cut(new.text, _QUOTED_CHARS)}”" if new is not None else ""
            return f"replaced{by}{day}"
        if finding.state == "done":
            return f"done{day}{f', {finding.closed_by}' if finding.closed_by else ''}"
        return f"withdrawn{day}"

    def _is_stale(self, sentence: str, conversation_id: str, turn: int, date: datetime | None) -> bool:
        """Return whether a sentence repeats a settled finding as if it still held."""
        mine = gist(sentence)
        known = marks(language_of(sentence))
        for one in self.gone:
            theirs = gist(one.text)
            if theirs.share_in(mine) < _IN_SENTENCE or not self._was_before(one, conversation_id, turn, date):
                continue
            if one.state == "replaced" and theirs.numbers - mine.numbers:
                continue
            if one.kind == "open" and not (known.said["open"].search(sentence) or _labels(sentence)):
                continue
            new = self.replacing.get(one.replaced_by)
            if new is not None and (gist(new.text).stems - theirs.stems) & mine.stems:
                continue
            return True
        return False

    def _was_before(self, one: KeptFinding, conversation_id: str, turn: int, date: datetime | None) -> bool:
        """Return whether a line is from before a finding was settled."""
        if date is not None and one.until is not None and date > one.until:
            return False
        new = self.replacing.get(one.replaced_by)
        if new is not None and new.conversation_id == conversation_id:
            return turn < new.turn_index
        if one.conversation_id == conversation_id and one.closed_by.startswith("t"):
            closed = one.closed_by[1:].partition(":")[0]
            return not closed.isdecimal() or turn < int(closed)
        return True


def _labels(sentence: str) -> bool:
    low = sentence.casefold()
    return any(word in low for word in ("open", "todo", "to do", "offen", "reste", "pendiente", "falta", "da fare"))


NOTHING_SETTLED = Settled()


def without_settled(summaries: Sequence[Summary], settled: Settled) -> tuple[list[Summary], frozenset[str]]:
    """Return summaries as they are sent, and the ids of those that lost something."""
    if not settled:
        return list(summaries), frozenset()
    kept = [settled.current(one) for one in summaries]
    return kept, frozenset(new.uuid for old, new in zip(summaries, kept, strict=True) if new is not old)
