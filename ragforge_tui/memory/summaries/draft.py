"""Drafts of summaries: their limits, and the tolerant parser of a model's answer.

Models wrap JSON in prose and fences, leave commas and trailing text, write numbers as text: all of that is accepted.
Findings that cite no existing turn are dropped. Only an answer without JSON or without a text is a problem, which the
summarizer describes in a second request. Few topics are no problem: one, or none, is honest for many ranges. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import msgspec

from ragforge_tui.graph.store.summary_tree import finding_from
from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink
from ragforge_tui.memory.prose import clean_text, cut, cut_before_end
from ragforge_tui.memory.summaries.titles import title_from
from ragforge_tui.memory.summaries.topics import MAX_TOPICS, limited_topics, read_links, read_topics
from ragforge_tui.shared.json_text import find_object
from ragforge_tui.shared.records import TITLE_CHARS, Finding, FindingKind

PART_CHARS = 500
FINDING_CHARS = 300
MAX_FINDINGS = 5
_FEWEST_OTHERS = 2
_MOST_FINDINGS = 60
MAX_FILES = 30
_TITLE_TOPICS = 3
_TITLE_WORDS = 2
"""Fewest words of topics that make a title."""
_NUMBER = re.compile(r"\d+")
_LABEL = re.compile(r"(decision|fact|preference|open)(?: point| question)?:\s+", re.I)
"""Start of a finding whose kind a model wrote into the text."""


class KnownChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says of a finding that it was shown by number.

    Attributes:
        known: Its number, from 1.
        turn: Turn that closed it; 0 if the model named none.
        new: Finding that takes its place; None if it is closed.
    """

    known: int
    turn: int = 0
    new: Finding | None = None


class Draft(msgspec.Struct, kw_only=True):
    """Content of a summary before it is stored."""

    title: str = ""
    conversation_summary: str
    actions_summary: str = ""
    key_findings: list[Finding] = []
    files_mentioned: list[str] = []
    topics: list[ProposedTopic] = []
    links: list[TopicLink] = []
    changes: list[KnownChange] = []
    made_by: str = ""


def limited(draft: Draft) -> Draft:
    """Return the draft within the limits: texts cut at a sentence, lists to their first entries, no duplicates.

    A draft without a title is named after its topics if they are informative enough, else after its first words.
    """
    findings: dict[str, Finding] = {}
    for finding in draft.key_findings:
        text = cut(finding.text, FINDING_CHARS)
        findings.setdefault(text.casefold(), msgspec.structs.replace(finding, text=text))
    topics = limited_topics(draft.topics)
    named = ", ".join([topic.name for topic in topics[:_TITLE_TOPICS]])
    if len(named.split()) < _TITLE_WORDS:
        named = ""
    return msgspec.structs.replace(
        draft,
        title=short_title(draft.title or named or title_from(draft.conversation_summary)),
        conversation_summary=cut_before_end(draft.conversation_summary, PART_CHARS),
        actions_summary=cut(draft.actions_summary, PART_CHARS),
        key_findings=_most_important([finding for key, finding in findings.items() if key]),
        files_mentioned=list(dict.fromkeys(draft.files_mentioned))[:MAX_FILES],
        topics=topics[:MAX_TOPICS],
    )


def _most_important(findings: Sequence[Finding]) -> list[Finding]:
    """Return all decisions and the first other findings, `MAX_FINDINGS` together and always some of these."""
    decisions = sum(finding.kind == "decision" for finding in findings)
    left = max(MAX_FINDINGS - decisions, _FEWEST_OTHERS)
    kept: list[Finding] = []
    for finding in findings:
        if finding.kind == "decision":
            kept.append(finding)
        elif left > 0:
            kept.append(finding)
            left -= 1
    return kept[:_MOST_FINDINGS]


def short_title(text: str) -> str:
    """Return a text as a title of at most `TITLE_CHARS` characters."""
    return cut(text, TITLE_CHARS).rstrip(" .;:,")


class UnusableAnswerError(Exception):
    """Answer that cannot be used; `problems` gives the reasons, worded for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_answer(text: str, *, turns: Collection[int], material: str, acted: bool, known: int = 0) -> Draft:
    """Return the summary in an answer.

    Args:
        text: The model's answer.
        turns: Turns that findings may cite.
        material: The summarised text; files that do not occur in it are dropped.
        acted: Whether tools were used; if not, the summary of actions is dropped.
        known: How many findings the model was shown by number.

    Raises:
        UnusableAnswerError: The answer has no JSON object, or no text for the summary.
    """
    data = find_object(text, "conversation_summary")
    if data is None:
        raise UnusableAnswerError(["it contains no JSON object"])
    findings = cited_findings(data.get("key_findings"), turns)
    draft = limited(
        Draft(
            title=clean_text(data.get("title")).strip("\"'“”„«»*_# "),
            conversation_summary=clean_text(data.get("conversation_summary")),
            actions_summary=clean_text(data.get("actions_summary")) if acted else "",
            key_findings=findings,
            files_mentioned=[path for path in _texts(data.get("files_mentioned")) if path in material],
            topics=read_topics(data.get("topics")),
            links=read_links(data.get("same_topics")),
            changes=_changes(data, turns, known),
        )
    )
    if not draft.conversation_summary:
        raise UnusableAnswerError(['"conversation_summary" is missing or empty'])
    return draft


def _changes(data: Mapping[str, Any], turns: Collection[int], known: int) -> list[KnownChange]:
    """Return what an answer says of the known findings, each once; what it replaces it does not close as well."""
    found: dict[int, KnownChange] = {}
    listed = data.get("key_findings")
    for item in _items(data.get("replaces")):
        number = _number(item, "known", "number", "id")
        new = _new_finding(item, listed if isinstance(listed, list) else [], turns)
        if 1 <= number <= known and new is not None:
            found.setdefault(number, KnownChange(known=number, turn=max(new.turns, default=0), new=new))
    for item in _items(data.get("closes")):
        number, turn = _number(item, "known", "number", "id"), _number(item, "turn", "by_turn", "turns")
        if 1 <= number <= known:
            found.setdefault(number, KnownChange(known=number, turn=turn if turn in turns else 0))
    return list(found.values())


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _number(item: Any, *names: str) -> int:
    """Return the number that an item is, or has under one of these names; 0 without one."""
    if isinstance(item, Mapping):
        item = next((item[name] for name in names if item.get(name) is not None), "")
    elif "turn" in names:
        return 0
    return next(iter(_cited(item)), 0)


def _new_finding(item: Any, listed: Sequence[Any], turns: Collection[int]) -> Finding | None:
    """Return the finding that replaces another: one of the answer's by its place, or one given as text."""
    if not isinstance(item, Mapping):
        return None
    place = _number(item, "finding", "by", "with")
    value = item.get("finding") or item.get("by") or item.get("with")
    if place and place <= len(listed) and not (isinstance(value, str) and not value.strip().isdigit()):
        value = listed[place - 1]
    if isinstance(value, int | float):
        return None
    return next(iter(cited_findings([value], turns, uncited=True)), None)


def _texts(value: Any) -> list[str]:
    return [text for item in value if (text := clean_text(item))] if isinstance(value, list) else []


def cited_findings(value: Any, turns: Collection[int], *, uncited: bool = False) -> list[Finding]:
    """Return the findings in a model's answer that cite at least one existing turn; with `uncited` the others too."""
    findings = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            finding, kind = finding_from(clean_text(item)), ""
        elif isinstance(item, Mapping):
            finding = finding_from(clean_text(item.get("text") or item.get("finding")))
            finding = msgspec.structs.replace(finding, turns=[*finding.turns, *_cited(item.get("turns"))])
            kind = clean_text(item.get("kind"))
        else:
            continue
        cited = sorted(set(finding.turns) & set(turns))
        if finding.text and (cited or uncited):
            label = _LABEL.match(finding.text)
            text = finding.text[label.end() :] if label else finding.text
            kind = kind or (label[1] if label else "") or finding.kind
            findings.append(Finding(text=text, turns=cited, kind=_kind(kind)))
    return findings


def _kind(value: str) -> FindingKind:
    """Return the kind a model wrote, empty if there is none like it."""
    word = value.casefold().partition(" ")[0]
    return next((kind for kind in get_args(FindingKind) if kind == word), "")


def _cited(value: Any) -> list[int]:
    items = value if isinstance(value, list) else [value]
    return [
        int(number)
        for item in items
        if not isinstance(item, float)
        for number in _NUMBER.findall(str(item))[:50]
        if len(number) < 10
    ]
