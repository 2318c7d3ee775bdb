"""Summaries of summaries, and of a whole conversation, without a model.

Beside `extractive`, which summarises turns. What stands in the parts is picked and put in order, nothing is added.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ragforge_tui.graph.store.topic_links import ProposedTopic, topic_key
from ragforge_tui.memory.keyterms import stem, weights, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.summaries.draft import MAX_FILES, MAX_FINDINGS, MAX_TOPICS, PART_CHARS, Draft, limited
from ragforge_tui.memory.summaries.extractive import ended, extract
from ragforge_tui.memory.summaries.phrase_tables import phrases
from ragforge_tui.memory.summaries.phrases import Phrases
from ragforge_tui.memory.summaries.sentences import compress, cut, opening, sentences
from ragforge_tui.memory.summaries.telling import alike, decides, score
from ragforge_tui.memory.topics import EXTRACTED_CONFIDENCE, topics_of
from ragforge_tui.models import EXTRACTIVE, Finding, Summary, Turn

_STRETCHES = 4
_SENTENCE_CHARS = 160


def extract_over(children: Sequence[Summary], *, language: str = "") -> Draft:
    """The summary of consecutive summaries: what the person wanted in each stretch of them, then what was found."""
    texts = [f"{child.conversation_summary} {' '.join(f.text for f in child.key_findings)}" for child in children]
    language = language or language_of("\n".join(texts))
    said = phrases(language)
    weigh = weights([finding.text for child in children for finding in child.key_findings] or texts, language)
    chosen: list[Finding] = []
    course = []
    stretches = _stretches(children)
    room = PART_CHARS // len(stretches) - 2
    for stretch in stretches:
        first, last = stretch[0].start_turn_index, stretch[-1].end_turn_index
        label = said.turns.format(first, last) if last > first else said.turn.format(first)
        left = room - len(label) - 2
        wanted = _wanted(stretch, said, weigh, language, left)
        known = [*chosen, *(Finding(text=text, turns=[]) for text in wanted)]
        quoted = f"{', '.join(wanted)}." if wanted else ""
        told = _told(_best_findings(stretch, said, weigh, language, known), left - len(quoted))
        if wanted and sum(len(one.text) + 2 for one in told) > left - len(quoted):
            told = []
        text = " ".join(part for part in (quoted, *(ended(finding.text) for finding in told)) if part)
        course.append(f"{label}: {text or ended(compress(stretch[0].conversation_summary, left))}")
        chosen += told
    rest = _best_findings(children, said, weigh, language, chosen)
    draft = Draft(
        conversation_summary=" ".join(course),
        actions_summary=_acts([child.actions_summary for child in children], said, PART_CHARS),
        key_findings=sorted(rest or chosen, key=lambda f: f.turns),
        files_mentioned=joined_files(children),
        topics=_joined_topics(children, said) or topics_of(texts, language),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def _wanted(stretch: Sequence[Summary], said: Phrases, weigh: dict[str, float], language: str, room: int) -> list[str]:
    """What the person asked and said, quoted, in order: those that tell most, as many as have room."""
    found = _quoted(stretch, said)
    kept: list[str] = []
    for text in sorted(found, key=lambda text: (not decides(text), -score(text, 1, weigh, language))):
        if len(", ".join([*kept, text])) < room:
            kept.append(text)
    return [text for text in found if text in kept]


def _quoted(summaries: Sequence[Summary], said: Phrases) -> list[str]:
    """The quotations in extracted summaries: what the person asked and said."""
    before, _, after = said.quote.partition("{}")
    quoted = re.compile(rf"{re.escape(before)}.+?{re.escape(after)}")
    return list(dict.fromkeys(match[0] for one in summaries for match in quoted.finditer(one.conversation_summary)))


def _told(findings: Sequence[Finding], room: int) -> list[Finding]:
    """Of findings, the best first, those that fit whole into `room` characters, the best one always; by turn."""
    told: list[Finding] = []
    for finding in findings:
        if not told or sum(len(one.text) + 2 for one in (*told, finding)) <= room:
            told.append(finding)
    return sorted(told, key=lambda finding: finding.turns)


def _stretches(children: Sequence[Summary]) -> list[Sequence[Summary]]:
    """Consecutive groups of about the same number, at most `_STRETCHES`."""
    count = min(_STRETCHES, len(children))
    bounds = [len(children) * i // count for i in range(count + 1)]
    return [children[start:end] for start, end in itertools.pairwise(bounds)]


def _best_findings(
    children: Sequence[Summary], said: Phrases, weigh: dict[str, float], language: str, known: Sequence[Finding]
) -> list[Finding]:
    """What the person decided, then the findings that tell most, none like another or like those known."""
    chosen: list[Finding] = []
    findings = [finding for child in children for finding in child.key_findings]
    for finding in sorted(findings, key=lambda f: (not _decided(f, said), -score(f.text, 1, weigh, language), f.turns)):
        if not any(alike(finding.text, other.text) for other in (*known, *chosen)):
            chosen.append(finding)
        if len(chosen) == MAX_FINDINGS:
            break
    return chosen


def _decided(finding: Finding, said: Phrases) -> bool:
    """Whether a finding is what the person decided."""
    return finding.text.startswith(said.person.partition("{}")[0]) and decides(finding.text)


def _acts(texts: Sequence[str], said: Phrases, limit: int) -> str:
    """Sentences about actions, as many as there is room for, in their order: changes and failures, else looks."""
    acts = list(dict.fromkeys(sentence for text in texts for sentence in sentences(text)))
    changes, failures = (
        re.compile("|".join(rf"\b{re.escape(getattr(said, name).partition('{')[0].strip())}" for name in names), re.I)
        for names in (("created", "wrote", "edited", "ran"), ("failed",))
    )
    rank = [0 if changes.search(act) else 1 if failures.search(act) else 2 for act in acts]
    kept: set[int] = set()
    room = limit
    for index in sorted((i for i in range(len(acts)) if rank[i] < 2 or min(rank) == 2), key=lambda i: (rank[i], i)):
        if len(acts[index]) < room:
            kept.add(index)
            room -= len(acts[index]) + 1
    return " ".join(acts[i] for i in sorted(kept)) or (cut(acts[0], limit) if acts else "")


def _joined_topics(children: Sequence[Summary], said: Phrases) -> list[ProposedTopic]:
    """The topics most of several summaries share; among equals what the person spoke of, and the later ones first."""
    spoken = [{stem(word) for word in words(text)} for text in _quoted(children, said)]
    counted: dict[str, tuple[int, int, str]] = {}
    for place, child in enumerate(children):
        for name in child.topics:
            count = counted.get(topic_key(name), (0, 0, ""))[0]
            counted[topic_key(name)] = (count + 1, place, name)

    def rank(item: tuple[int, int, str]) -> tuple[int, int, int, str]:
        count, place, name = item
        stems = {stem(word) for word in words(name)}
        return -count, -sum(stems <= one for one in spoken), -place, name

    ranked = sorted(counted.values(), key=rank)
    return [ProposedTopic(name=name, confidence=EXTRACTED_CONFIDENCE) for _, _, name in ranked[:MAX_TOPICS]]


def joined_files(children: Sequence[Summary]) -> list[str]:
    """The files of several summaries, those of most of them first."""
    counted: dict[str, int] = {}
    for child in children:
        for path in child.files_mentioned:
            counted[path] = counted.get(path, 0) + 1
    return sorted(counted, key=lambda path: -counted[path])[:MAX_FILES]


def extract_conversation(
    frontier: Sequence[Summary], recent: Sequence[Turn], *, goal: str = "", language: str = ""
) -> str:
    """Two or three sentences on a whole conversation: what it is about, what was done, what was found.

    Args:
        frontier: The summaries nothing summarises.
        recent: Turns after them.
        goal: What the person said first.
        language: Its language, as far as it is known.
    """
    drafts = [extract_over(frontier, language=language)] if frontier else []
    if recent:
        drafts.append(extract(recent, language=language))
    if not drafts:
        return ""
    language = language or language_of(" ".join(draft.conversation_summary for draft in drafts))
    said = phrases(language)
    parts = [_about(drafts, goal, said)]
    acted = [summary.actions_summary for summary in frontier] + [draft.actions_summary for draft in drafts[-1:]]
    if done := _acts([text for text in acted if text], said, _SENTENCE_CHARS):
        parts.append(ended(said.done.format(done)))
    findings = [finding for draft in drafts for finding in draft.key_findings]
    weigh = weights([finding.text for finding in findings], language)
    if best := max(findings, key=lambda f: (_decided(f, said), score(f.text, 1, weigh, language)), default=None):
        parts.append(ended(said.found.format(compress(best.text, _SENTENCE_CHARS))))
    return cut(" ".join(parts), PART_CHARS)


def _about(drafts: Sequence[Draft], goal: str, said: Phrases) -> str:
    """What was discussed: the topics, and what it began with."""
    names = list(dict.fromkeys(topic.name for draft in drafts for topic in draft.topics))[:MAX_TOPICS]
    if not names:
        return compress(drafts[0].conversation_summary, _SENTENCE_CHARS)
    listed = f"{', '.join(names[:-1])} {said.conjunction} {names[-1]}" if len(names) > 1 else names[0]
    first = compress(opening(goal), _SENTENCE_CHARS - len(listed) - 20)
    if not first:
        return said.about.format(listed)
    return ended(said.about.format(listed).rstrip(".") + said.began.format(said.quote.format(first)))
