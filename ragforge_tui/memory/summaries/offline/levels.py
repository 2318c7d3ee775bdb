"""Summaries of summaries, and of a whole conversation, without a model.

The counterpart of `extractive`, which summarises turns. Sentences of the parts are selected and ordered; nothing is
added.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ragforge_tui.graph.store.topic_links import ProposedTopic, topic_key
from ragforge_tui.memory.keyterms import EXTRACTED_CONFIDENCE, stem, topics_of, weights, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import compress, cut, opening_sentence, sentences
from ragforge_tui.memory.summaries.draft import MAX_FILES, MAX_FINDINGS, MAX_TOPICS, PART_CHARS, Draft, limited
from ragforge_tui.memory.summaries.offline.extract import ended, extract
from ragforge_tui.memory.summaries.offline.informativeness import alike, decides, score
from ragforge_tui.memory.summaries.offline.phrase_tables import phrases
from ragforge_tui.memory.summaries.offline.phrases import Phrases
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Summary, Turn

_STRETCHES = 4
_SENTENCE_CHARS = 160


def extract_over(children: Sequence[Summary], *, language: str = "") -> Draft:
    """Return the summary of consecutive summaries: for each stretch the user's requests, then the findings."""
    texts = [f"{child.conversation_summary} {' '.join(f.text for f in child.key_findings)}" for child in children]
    language = language or language_of("\n".join(texts))
    wording = phrases(language)
    weigh = weights([finding.text for child in children for finding in child.key_findings] or texts, language)
    chosen: list[Finding] = []
    course = []
    stretches = _stretches(children)
    limit = PART_CHARS // len(stretches) - 2
    for stretch in stretches:
        first, last = stretch[0].start_turn_index, stretch[-1].end_turn_index
        label = wording.turns.format(first, last) if last > first else wording.turn.format(first)
        left = limit - len(label) - 2
        requests = _requests(stretch, wording, weigh, language, left)
        used = [*chosen, *(Finding(text=text, turns=[]) for text in requests)]
        quoted = f"{', '.join(requests)}." if requests else ""
        findings = _fitting(_best_findings(stretch, wording, weigh, language, used), left - len(quoted))
        if requests and sum(len(finding.text) + 2 for finding in findings) > left - len(quoted):
            findings = []
        text = " ".join(part for part in (quoted, *(ended(finding.text) for finding in findings)) if part)
        course.append(f"{label}: {text or ended(compress(stretch[0].conversation_summary, left))}")
        chosen += findings
    rest = _best_findings(children, wording, weigh, language, chosen)
    draft = Draft(
        conversation_summary=" ".join(course),
        actions_summary=_acts([child.actions_summary for child in children], wording, PART_CHARS),
        key_findings=sorted(rest or chosen, key=lambda f: f.turns),
        files_mentioned=joined_files(children),
        topics=_joined_topics(children, wording) or topics_of(texts, language),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def _requests(
    stretch: Sequence[Summary], wording: Phrases, weigh: dict[str, float], language: str, limit: int
) -> list[str]:
    """Return the user's most important quotations that fit into `limit` characters, in their original order."""
    quotations = _quoted(stretch, wording)
    chosen: list[str] = []
    for text in sorted(quotations, key=lambda text: (not decides(text), -score(text, 1, weigh, language))):
        if len(", ".join([*chosen, text])) < limit:
            chosen.append(text)
    return [text for text in quotations if text in chosen]


def _quoted(summaries: Sequence[Summary], wording: Phrases) -> list[str]:
    """Return the quotations in extracted summaries: they are the user's questions and statements."""
    before, _, after = wording.quote.partition("{}")
    quoted = re.compile(rf"{re.escape(before)}.+?{re.escape(after)}")
    texts = (summary.conversation_summary for summary in summaries)
    return list(dict.fromkeys(match[0] for text in texts for match in quoted.finditer(text)))


def _fitting(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """Return the findings, given best first, that fit into `limit` characters, and always the best one; by turn."""
    chosen: list[Finding] = []
    for finding in findings:
        if not chosen or sum(len(other.text) + 2 for other in (*chosen, finding)) <= limit:
            chosen.append(finding)
    return sorted(chosen, key=lambda finding: finding.turns)


def _stretches(children: Sequence[Summary]) -> list[Sequence[Summary]]:
    """Return consecutive groups of about the same size, at most `_STRETCHES`."""
    count = min(_STRETCHES, len(children))
    bounds = [len(children) * i // count for i in range(count + 1)]
    return [children[start:end] for start, end in itertools.pairwise(bounds)]


def _best_findings(
    children: Sequence[Summary], wording: Phrases, weigh: dict[str, float], language: str, used: Sequence[Finding]
) -> list[Finding]:
    """Return the user's decisions, then the highest-scoring findings, without duplicates and those in `used`."""
    chosen: list[Finding] = []
    findings = [finding for child in children for finding in child.key_findings]

    def rank(finding: Finding) -> tuple[bool, float, list[int]]:
        return not _decided(finding, wording), -score(finding.text, 1, weigh, language), finding.turns

    for finding in sorted(findings, key=rank):
        if not any(alike(finding.text, other.text) for other in (*used, *chosen)):
            chosen.append(finding)
        if len(chosen) == MAX_FINDINGS:
            break
    return chosen


def _decided(finding: Finding, wording: Phrases) -> bool:
    """Return whether a finding is a decision of the user."""
    return finding.text.startswith(wording.person.partition("{}")[0]) and decides(finding.text)


def _acts(texts: Sequence[str], wording: Phrases, limit: int) -> str:
    """Return as many sentences about actions as fit, in their order: changes and failures, else looks at files."""
    acts = list(dict.fromkeys(sentence for text in texts for sentence in sentences(text)))
    changes, failures = (
        re.compile(
            "|".join(rf"\b{re.escape(getattr(wording, name).partition('{')[0].strip())}" for name in names), re.I
        )
        for names in (("created", "wrote", "edited", "ran"), ("failed",))
    )
    rank = [0 if changes.search(act) else 1 if failures.search(act) else 2 for act in acts]
    chosen: set[int] = set()
    left = limit
    for index in sorted((i for i in range(len(acts)) if rank[i] < 2 or min(rank) == 2), key=lambda i: (rank[i], i)):
        if len(acts[index]) < left:
            chosen.add(index)
            left -= len(acts[index]) + 1
    return " ".join(acts[i] for i in sorted(chosen)) or (cut(acts[0], limit) if acts else "")


def _joined_topics(children: Sequence[Summary], wording: Phrases) -> list[ProposedTopic]:
    """Return the most frequent topics of several summaries; of equal ones the user's own, then the latest, win."""
    quotations = [{stem(word) for word in words(text)} for text in _quoted(children, wording)]
    counted: dict[str, tuple[int, int, str]] = {}
    for place, child in enumerate(children):
        for name in child.topics:
            count = counted.get(topic_key(name), (0, 0, ""))[0]
            counted[topic_key(name)] = (count + 1, place, name)

    def rank(item: tuple[int, int, str]) -> tuple[int, int, int, str]:
        count, place, name = item
        stems = {stem(word) for word in words(name)}
        return -count, -sum(stems <= quotation for quotation in quotations), -place, name

    ranked = sorted(counted.values(), key=rank)
    return [ProposedTopic(name=name, confidence=EXTRACTED_CONFIDENCE) for _, _, name in ranked[:MAX_TOPICS]]


def joined_files(children: Sequence[Summary]) -> list[str]:
    """Return the files of several summaries, the most frequent first."""
    counted: dict[str, int] = {}
    for child in children:
        for path in child.files_mentioned:
            counted[path] = counted.get(path, 0) + 1
    return sorted(counted, key=lambda path: -counted[path])[:MAX_FILES]


def extract_conversation(
    frontier: Sequence[Summary], recent: Sequence[Turn], *, goal: str = "", language: str = ""
) -> str:
    """Return two or three sentences on a whole conversation: its subject, the actions, the main finding.

    Args:
        frontier: The summaries without a parent.
        recent: Turns after them.
        goal: The user's first message.
        language: The conversation's language, empty if unknown.
    """
    drafts = [extract_over(frontier, language=language)] if frontier else []
    if recent:
        drafts.append(extract(recent, language=language))
    if not drafts:
        return ""
    language = language or language_of(" ".join(draft.conversation_summary for draft in drafts))
    wording = phrases(language)
    parts = [_about(drafts, goal, wording)]
    acted = [summary.actions_summary for summary in frontier] + [draft.actions_summary for draft in drafts[-1:]]
    if done := _acts([text for text in acted if text], wording, _SENTENCE_CHARS):
        parts.append(ended(wording.done.format(done)))
    findings = [finding for draft in drafts for finding in draft.key_findings]
    weigh = weights([finding.text for finding in findings], language)
    if best := max(findings, key=lambda f: (_decided(f, wording), score(f.text, 1, weigh, language)), default=None):
        parts.append(ended(wording.found.format(compress(best.text, _SENTENCE_CHARS))))
    return cut(" ".join(parts), PART_CHARS)


def _about(drafts: Sequence[Draft], goal: str, wording: Phrases) -> str:
    """Return a sentence on the subject: the topics, and the first message."""
    names = list(dict.fromkeys(topic.name for draft in drafts for topic in draft.topics))[:MAX_TOPICS]
    if not names:
        return compress(drafts[0].conversation_summary, _SENTENCE_CHARS)
    listed = f"{', '.join(names[:-1])} {wording.conjunction} {names[-1]}" if len(names) > 1 else names[0]
    first = compress(opening_sentence(goal), _SENTENCE_CHARS - len(listed) - 20)
    if not first:
        return wording.about.format(listed)
    return ended(wording.about.format(listed).rstrip(".") + wording.began.format(wording.quote.format(first)))
