"""Candidates of a search, and the sources in the graph that return them.

Turns of the open conversation come from its `ConversationIndex`; code has a source of its own (`code/search.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, OtherSummary, Ranges
from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.memory.retrieval.keys import shown
from ragforge_tui.memory.retrieval.question import Question, Vector
from ragforge_tui.memory.retrieval.recipes import Pick
from ragforge_tui.memory.retrieval.terms import TextStems, matched, matched_stems, text_stems
from ragforge_tui.shared.records import Finding, Summary


class Candidate(msgspec.Struct, kw_only=True):
    """Passage that may answer a question: a turn, or one of the kinds below.

    Attributes:
        text: What is shown, possibly cut by packing.
        last_turn: Last turn it is about, if there are several.
        source: The whole text of a cut one.
        cut: Characters of it that are missing in `text`.
        searched: Text whose words count; empty if it is `text`.
        own: Whether it belongs to the conversation that asks.
        tokens: Tokens of `text`, None if they were not counted yet.
        words: Score of the full-text indexes.
        views: Further views, by the names of a recipe.
        factor: Factor of the score.
        matched: Summed rarity of the question's words in it; below 0 until it is measured.
        cosine: Similarity to the question; None if one of them has no vector.
        relevance: See `scoring.relevance`.
    """

    conversation_id: str = ""
    title: str = ""
    turn_index: int = 0
    last_turn: int = 0
    date: datetime = datetime.min.replace(tzinfo=UTC)
    text: str
    source: str = ""
    cut: int = 0
    searched: str = ""
    own: bool = True
    tokens: int | None = None
    vector: Vector | None = None
    words: float = 0.0
    views: dict[str, float] = {}
    factor: float = 1.0
    matched: float = -1.0
    cosine: float | None = None
    relevance: float = 0.0
    score: float = 0.0

    def measure(self, question: Question) -> None:
        """Compare with a question, as far as its source has not done so."""
        if self.matched < 0:
            self.matched = matched(question.rarities, self.searched or self.text)
        if self.cosine is None:
            self.cosine = cosine(question.vector, self.vector)


class SummaryCandidate(Candidate, kw_only=True):
    """Summary that may answer a question. `date` is when its last turn ended.

    Attributes:
        stems: None if the summary is compared once only, which is quicker without them.
    """

    summary: Summary
    stems: SummaryStems | None = None


class FindingCandidate(Candidate, kw_only=True):
    """Finding that may answer a question. `date` is when it was written; its vector is that of its summary.

    Attributes:
        summary_id: Empty for a finding of an insight.
        became: What became of it, if it no longer holds.
    """

    finding: Finding
    summary_id: str = ""
    became: str = ""


class SummaryStems(msgspec.Struct, frozen=True, kw_only=True):
    """Stems of a summary's texts, kept while it is compared with one message after the other.

    Attributes:
        findings: Stems of each of its findings, in their order.
    """

    summary: Summary
    whole: TextStems
    findings: tuple[TextStems, ...]


def stems_of(summary: Summary) -> SummaryStems:
    """Return the stems of a summary's texts."""
    findings = tuple(text_stems(finding.text) for finding in summary.key_findings)
    return SummaryStems(summary=summary, whole=text_stems(summary_text(summary)), findings=findings)


def summary_text(summary: Summary) -> str:
    """Return all texts of a summary."""
    facts = (finding.text for finding in summary.key_findings)
    return "\n".join((summary.conversation_summary, summary.actions_summary, *facts, *summary.files_mentioned))


async def turns_elsewhere(
    store: Store, question: Question, others: Others, pick: Pick, turns: Ranges | None = None, *, own: bool = False
) -> list[Candidate]:
    """Return turns of other conversations by words or meaning, unordered.

    Args:
        turns: Only these: by conversation, ranges of turns with both ends included.
        own: The conversations are those of the one that asks.
    """
    found = await store.other_conversations.turns(
        others,
        question.rarest,
        question.vector,
        question.model,
        limit=pick.asked,
        turns=turns,
        keyless=pick.keyless,
    )
    return [
        Candidate(
            conversation_id=turn.conversation_id,
            title=turn.title,
            turn_index=turn.turn_index,
            date=turn.date,
            text=shown(turn.text),
            searched=turn.text,
            own=own,
            vector=turn.vector,
            words=turn.words,
        )
        for turn in found
    ]


async def summaries_elsewhere(store: Store, question: Question, others: Others, limit: int) -> list[SummaryCandidate]:
    """Return summaries of other conversations that have its rarer words or are nearest to it in meaning."""
    found = await store.other_conversations.summaries(
        others, question.rarest, question.vector, question.model, limit=limit
    )
    return [of_summary(other) for other in found]


def of_summary(other: OtherSummary) -> SummaryCandidate:
    """Return a summary as a candidate."""
    summary = other.summary
    return SummaryCandidate(
        conversation_id=summary.conversation_id,
        title=other.title,
        turn_index=summary.start_turn_index,
        last_turn=summary.end_turn_index,
        date=other.ended,
        text=summary_text(summary),
        own=False,
        vector=other.vector,
        summary=summary,
    )


def own_summary(
    question: Question,
    summary: Summary,
    ended: datetime | None = None,
    vector: Vector | None = None,
    stems: SummaryStems | None = None,
) -> SummaryCandidate:
    """Return a summary of the conversation that asks; with known stems its text is not made."""
    known = stems if stems is not None and stems.summary == summary else None
    return SummaryCandidate(
        conversation_id=summary.conversation_id,
        turn_index=summary.start_turn_index,
        last_turn=summary.end_turn_index,
        date=ended or summary.created_at,
        text=summary_text(summary) if known is None else "",
        vector=vector,
        matched=-1.0 if known is None else matched_stems(question.rarities, known.whole),
        summary=summary,
        stems=known,
    )


def findings_in(question: Question, summaries: Iterable[SummaryCandidate]) -> Iterator[FindingCandidate]:
    """Yield the findings of summaries that have a word of the question."""
    for one in summaries:
        for place, finding in enumerate(one.summary.key_findings):
            if one.stems is None:
                shared = matched(question.rarities, finding.text)
            else:
                shared = matched_stems(question.rarities, one.stems.findings[place])
            if shared:
                yield FindingCandidate(
                    conversation_id=one.conversation_id,
                    title=one.title,
                    turn_index=min(finding.turns, default=one.turn_index),
                    last_turn=max(finding.turns, default=one.last_turn),
                    date=one.summary.created_at,
                    text=finding.text,
                    own=one.own,
                    vector=one.vector,
                    matched=shared,
                    finding=finding,
                    summary_id=one.summary.uuid,
                )


def holding(findings: Iterable[FindingCandidate], settled: Settled, *, past: bool) -> Iterator[FindingCandidate]:
    """Yield the findings that still hold; for a question about the past the others too, with what became of them."""
    for one in findings:
        gone = settled.repeated_by(
            one.finding, one.conversation_id, last_turn=one.last_turn, date=None if one.own else one.date
        )
        if gone is None:
            yield one
        elif past:
            one.became = settled.what_became(gone)
            yield one


def cosine(a: Vector | None, b: Vector | None) -> float | None:
    """Return the cosine of two unit vectors, None if one is unknown."""
    return None if a is None or b is None or len(a) != len(b) else float(a @ b)
