"""Summaries of summaries, and of a whole conversation, without a model.

The counterpart of `extract`, which summarises turns. Sentences of the parts are selected and ordered; nothing is added.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ragforge_tui.graph.store.topic_names import ProposedTopic, topic_key
from ragforge_tui.memory.keyterms import EXTRACTED_CONFIDENCE, stem, topics_of, weights, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import compress, cut, opening_sentence, sentences
from ragforge_tui.memory.summaries.draft import MAX_FILES, PART_CHARS, Draft, limited
from ragforge_tui.memory.summaries.offline.extract import extract, with_full_stop
from ragforge_tui.memory.summaries.offline.informativeness import Statement, decides, distinct, score
from ragforge_tui.memory.summaries.offline.phrases import Phrases, phrases
from ragforge_tui.memory.summaries.topics import MAX_TOPICS
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Summary, Turn
from ragforge_tui.shared.tool_calls import CHANGING, described_tools

_STRETCHES = 4
_SENTENCE_CHARS = 160
_SETTLING = ("decision", "preference", "open")
"""Kinds of findings that higher levels keep first, even if their text names them as well."""


class _Style(msgspec.Struct, frozen=True):
    """Language of a summary, its phrases, and the weights of its words."""

    language: str
    wording: Phrases
    weigh: Mapping[str, float]

    def score(self, text: str) -> float:
        return score(text, 1, self.weigh, self.language)

    def ranked(self, findings: Iterable[Finding]) -> list[Statement]:
        """Return findings as statements: decisions, preferences and open points first, then by score."""
        statements = []
        for finding in findings:
            text, by_user = self.wording.without_label(finding.text)
            statements.append(Statement(text, by_user, tuple(finding.turns), self.score(text), finding.kind))

        def rank(s: Statement) -> tuple[bool, float, tuple[int, ...]]:
            return not (s.kind in _SETTLING or (s.by_user and decides(s.text))), -s.score, s.turns

        return sorted(statements, key=rank)

    def length(self, statements: Iterable[Statement]) -> int:
        """Return the characters of statements with their separators."""
        return sum(len(self.labelled(statement)) + 2 for statement in statements)

    def labelled(self, statement: Statement) -> str:
        return self.wording.user.format(statement.text) if statement.by_user else statement.text


def extract_over(children: Sequence[Summary], *, language: str = "") -> Draft:
    """Return the summary of consecutive summaries: for each stretch the user's requests, then the findings."""
    texts = [f"{child.conversation_summary} {' '.join(f.text for f in child.key_findings)}" for child in children]
    language = language or language_of("\n".join(texts))
    style = _style([finding for child in children for finding in child.key_findings], language, texts)
    wording = style.wording
    used: list[Statement] = []
    course = []
    stretches = _stretches(children)
    for stretch in stretches:
        first, last = stretch[0].start_turn_index, stretch[-1].end_turn_index
        label = wording.turns.format(first, last) if last > first else wording.turn.format(first)
        left = PART_CHARS // len(stretches) - 2 - len(label) - 2
        requests = _requests(stretch, style, left)
        quoted = f"{', '.join(requests)}." if requests else ""
        ranked = style.ranked(finding for child in stretch for finding in child.key_findings)
        found = distinct(ranked, [*(statement.text for statement in used), *requests])
        chosen = _fitting(found, style, left - len(quoted))
        if requests and style.length(chosen) > left - len(quoted):
            chosen = []
        text = " ".join(part for part in (quoted, *(with_full_stop(style.labelled(s)) for s in chosen)) if part)
        course.append(f"{label}: {text or with_full_stop(compress(stretch[0].conversation_summary, left))}")
        used += chosen
    ranked = style.ranked(finding for child in children for finding in child.key_findings)
    rest = distinct(ranked, [statement.text for statement in used if statement.kind not in _SETTLING])
    draft = Draft(
        conversation_summary=" ".join(course),
        actions_summary=_action_sentences([child.actions_summary for child in children], wording, PART_CHARS),
        key_findings=[
            Finding(text=style.labelled(s), turns=list(s.turns), kind=s.kind)
            for s in sorted(rest or used, key=lambda s: s.turns)
        ],
        files_mentioned=joined_files(children),
        topics=_joined_topics(children, wording) or topics_of(texts, language),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def _style(findings: Sequence[Finding], language: str, texts: Sequence[str] = ()) -> _Style:
    wording = phrases(language)
    return _Style(language, wording, weights([wording.without_label(f.text)[0] for f in findings] or texts, language))


def _requests(stretch: Sequence[Summary], style: _Style, limit: int) -> list[str]:
    """Return the user's most important quotations that fit into `limit` characters, in their original order."""
    quotations = _quotations(stretch, style.wording)
    chosen: list[str] = []
    for text in sorted(quotations, key=lambda text: (not decides(text), -style.score(text))):
        if len(", ".join([*chosen, text])) < limit:
            chosen.append(text)
    return [text for text in quotations if text in chosen]


def _quotations(summaries: Sequence[Summary], wording: Phrases) -> list[str]:
    """Return the quotations in extracted summaries: they are the user's questions and statements."""
    before, _, after = wording.quote.partition("{}")
    quoted = re.compile(rf"{re.escape(before)}.+?{re.escape(after)}")
    texts = (summary.conversation_summary for summary in summaries)
    return list(dict.fromkeys(match[0] for text in texts for match in quoted.finditer(text)))


def _fitting(ranked: Sequence[Statement], style: _Style, limit: int) -> list[Statement]:
    """Return the statements that fit into `limit` characters, and always the best one; by turn."""
    chosen: list[Statement] = []
    for statement in ranked:
        if not chosen or style.length([*chosen, statement]) <= limit:
            chosen.append(statement)
    return sorted(chosen, key=lambda statement: statement.turns)


def _stretches(children: Sequence[Summary]) -> list[Sequence[Summary]]:
    """Return consecutive groups of about the same size, at most `_STRETCHES`."""
    count = min(_STRETCHES, len(children))
    bounds = [len(children) * i // count for i in range(count + 1)]
    return [children[start:end] for start, end in itertools.pairwise(bounds)]


def _action_sentences(texts: Sequence[str], wording: Phrases, limit: int) -> str:
    """Return as many sentences about actions as fit, in their order: changes and failures, else looks at files."""
    acts = list(dict.fromkeys(sentence for text in texts for sentence in sentences(text)))
    changes = [verb for tool in described_tools() if tool.access in CHANGING and (verb := wording.verb(tool))]
    rank = [0 if _mentions(act, changes) else 1 if _mentions(act, [wording.failed]) else 2 for act in acts]
    chosen: set[int] = set()
    left = limit
    for index in sorted((i for i in range(len(acts)) if rank[i] < 2 or min(rank) == 2), key=lambda i: (rank[i], i)):
        if len(acts[index]) < left:
            chosen.add(index)
            left -= len(acts[index]) + 1
    return " ".join(acts[i] for i in sorted(chosen)) or (cut(acts[0], limit) if acts else "")


def _mentions(sentence: str, templates: Iterable[str]) -> bool:
    """Return whether a sentence was made with one of the phrases."""
    phrase = "|".join(re.escape(template.replace("{}", "").strip()) for template in templates)
    return re.search(rf"\b(?:{phrase})", sentence, re.I) is not None


def _joined_topics(children: Sequence[Summary], wording: Phrases) -> list[ProposedTopic]:
    """Return the most frequent topics of several summaries; of equal ones the user's own, then the latest, win."""
    quotations = [{stem(word) for word in words(text)} for text in _quotations(children, wording)]
    counted = Counter(topic_key(name) for child in children for name in child.topics)
    latest = {topic_key(name): (place, name) for place, child in enumerate(children) for name in child.topics}

    def rank(key: str) -> tuple[int, int, int, str]:
        place, name = latest[key]
        stems = {stem(word) for word in words(name)}
        return -counted[key], -sum(stems <= quotation for quotation in quotations), -place, name

    ranked = sorted(latest, key=rank)[:MAX_TOPICS]
    return [ProposedTopic(name=latest[key][1], confidence=EXTRACTED_CONFIDENCE) for key in ranked]


def joined_files(children: Sequence[Summary]) -> list[str]:
    """Return the files of several summaries, the most frequent first."""
    counted = Counter(path for child in children for path in child.files_mentioned)
    return [path for path, _ in counted.most_common(MAX_FILES)]


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
    findings = [finding for draft in drafts for finding in draft.key_findings]
    style = _style(findings, language)
    wording = style.wording
    parts = [_about(drafts, goal, wording)]
    acted = [summary.actions_summary for summary in frontier] + [draft.actions_summary for draft in drafts[-1:]]
    if done := _action_sentences([text for text in acted if text], wording, _SENTENCE_CHARS):
        parts.append(with_full_stop(wording.done.format(done)))
    ranked = style.ranked(findings)
    still_open = max((s for s in ranked if s.kind == "open"), key=lambda s: s.turns, default=None)
    if best := next((s for s in ranked if s is not still_open), None):
        parts.append(with_full_stop(wording.found.format(compress(style.labelled(best), _SENTENCE_CHARS))))
    if still_open is not None:
        parts.append(with_full_stop(wording.open.format(compress(still_open.text, _SENTENCE_CHARS))))
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
    return with_full_stop(wording.about.format(listed).rstrip(".") + wording.began.format(wording.quote.format(first)))
