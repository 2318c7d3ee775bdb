"""Summaries and findings that matter for a message, of the open conversation and of others.

Used by `Recall`. A finding is judged by its own words and by the vector of its summary, since it has none itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from ragforge_tui.memory.recall import scoring, terms
from ragforge_tui.memory.recall.packing import RecalledFinding, RecalledSummary, RecalledTurn
from ragforge_tui.memory.recall.scoring import RELEVANT
from ragforge_tui.memory.recall.terms import TextStems
from ragforge_tui.settings.schema import RecallSettings
from ragforge_tui.shared.records import Summary

MAX_FINDINGS = 6


class SummaryStems(msgspec.Struct, frozen=True, kw_only=True):
    """Stems of a summary's texts, kept while it is compared with one message after the other.

    Attributes:
        findings: Stems of each of its findings, in their order.
    """

    summary: Summary
    whole: TextStems
    findings: tuple[TextStems, ...]


class RatedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary with its similarity to a message.

    Attributes:
        ended: Time of its last turn.
        cosine: None if the summary or the message has no vector.
        own: Whether it belongs to the conversation that asks.
        stems: None if the summary is compared once only, which is quicker without them.
    """

    summary: Summary
    title: str = ""
    ended: datetime
    cosine: float | None
    own: bool = True
    stems: SummaryStems | None = None


def stems_of(summary: Summary) -> SummaryStems:
    """Return the stems of a summary's texts."""
    findings = tuple(terms.text_stems(finding.text) for finding in summary.key_findings)
    return SummaryStems(summary=summary, whole=terms.text_stems(_whole_text(summary)), findings=findings)


def _whole_text(summary: Summary) -> str:
    facts = (finding.text for finding in summary.key_findings)
    return "\n".join((summary.conversation_summary, summary.actions_summary, *facts, *summary.files_mentioned))


def findings_of(
    rated: Iterable[RatedSummary], rarities: Mapping[str, float], settings: RecallSettings, *, exclude: Collection[int]
) -> list[RecalledFinding]:
    """Return the relevant findings, best first; each text once.

    Args:
        exclude: Turns of the open conversation that are sent anyway; findings of these alone are left out.
    """
    found: dict[str, RecalledFinding] = {}
    for one in rated:
        for place, finding in enumerate(one.summary.key_findings):
            if one.stems is None:
                matched = terms.matched(rarities, finding.text)
            else:
                matched = terms.matched_stems(rarities, one.stems.findings[place])
            if not matched:
                continue
            score = scoring.relevance(matched, one.cosine, settings.min_score)
            key = " ".join(finding.text.casefold().split())
            sent = one.own and finding.turns and all(turn in exclude for turn in finding.turns)
            if score < RELEVANT or sent or (key in found and found[key].score >= score):
                continue
            found[key] = RecalledFinding(
                finding=finding, summary=one.summary, title=one.title, score=score, own=one.own
            )
    return sorted(found.values(), key=lambda hit: -hit.score)[:MAX_FINDINGS]


def summaries_of(
    rated: Iterable[RatedSummary],
    rarities: Mapping[str, float],
    settings: RecallSettings,
    *,
    in_context: bool,
    turns: Collection[RecalledTurn],
    sent: Collection[int],
    exclude: Collection[str],
) -> list[RecalledSummary]:
    """Return the relevant summaries, best first; none covers a turn that another one covers or that is recalled itself.

    The score is the relevance times the factors of level and age (see `scoring`).

    Args:
        in_context: See `scoring.relevance`.
        turns: Recalled turns.
        sent: Turns of the open conversation that are sent anyway; summaries of these alone are left out.
        exclude: Ids of summaries that are sent anyway.
    """
    hits = []
    for one in rated:
        summary = one.summary
        if one.stems is None:
            matched = terms.matched(rarities, _whole_text(summary))
        else:
            matched = terms.matched_stems(rarities, one.stems.whole)
        score = scoring.relevance(matched, one.cosine, settings.min_score, in_context=in_context)
        if score >= RELEVANT and summary.uuid not in exclude:
            age = (datetime.now(UTC) - one.ended).total_seconds() / 86_400
            score *= scoring.level_factor(summary.level, settings.level_boost)
            score *= scoring.recency(age, settings.recency_boost, settings.recency_decay_days)
            hits.append(RecalledSummary(summary=summary, title=one.title, score=score, own=one.own))
    told = {(turn.conversation_id, turn.turn_index) for turn in turns}
    chosen: list[RecalledSummary] = []
    for hit in sorted(hits, key=lambda hit: -hit.score):
        summary = hit.summary
        covered = {
            (summary.conversation_id, turn) for turn in range(summary.start_turn_index, summary.end_turn_index + 1)
        }
        if told.isdisjoint(covered) and not (hit.own and all(turn in sent for _, turn in covered)):
            chosen.append(hit)
            told |= covered
    return chosen[: settings.max_summaries]
