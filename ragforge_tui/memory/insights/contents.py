"""Contents of an insight: the tolerant parser of a model's answer, and the extract used without one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from ragforge_tui.memory.prose import clean_text, cut
from ragforge_tui.memory.summaries.draft import (
    FINDING_CHARS,
    Draft,
    UnusableAnswerError,
    cited_findings,
)
from ragforge_tui.memory.summaries.offline.extract import extract
from ragforge_tui.memory.summaries.offline.levels import extract_over
from ragforge_tui.shared.json_text import find_object, json_object
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Summary, Todo, Turn

TOPIC_CHARS = 200
MAX_FINDINGS = 7
MAX_ITEMS = 10


class InsightDraft(msgspec.Struct, kw_only=True):
    """Content of an insight before it is stored."""

    main_topic: str
    key_findings: list[Finding] = []
    action_items: list[Finding] = []
    made_by: str = EXTRACTIVE


def read_insight(text: str, *, turns: Collection[int]) -> InsightDraft:
    """Return the insight in a model's answer; a citation of a turn that does not exist is dropped.

    Raises:
        UnusableAnswerError: The answer has no JSON object, or names no topic.
    """
    data = find_object(text, "main_topic")
    if data is None:
        raise UnusableAnswerError(["it contains no JSON object"])
    topic = clean_text(data.get("main_topic")).strip("\"'“”„«»*_# ")
    if not topic:
        raise UnusableAnswerError(['"main_topic" is missing or empty'])
    return _limited(
        topic,
        cited_findings(data.get("key_findings"), turns, uncited=True),
        cited_findings(data.get("action_items"), turns, uncited=True),
    )


def extract_insight(
    summaries: Sequence[Summary], turns: Sequence[Turn], *, title: str = "", language: str = ""
) -> InsightDraft:
    """Return the insight without a model: the findings of the summaries, and those of the turns after them.

    Args:
        summaries: Those without a parent, in order.
        turns: Turns that no summary covers.
        title: Of the conversation; it is its topic.
        language: The conversation's language, empty if unknown.
    """
    drafts: list[Draft] = [extract_over(summaries, language=language)] if summaries else []
    drafts += [extract(turns, language=language)] if turns else []
    findings = [finding for draft in drafts for finding in draft.key_findings]
    topic = title or next((draft.title for draft in drafts if draft.title), "")
    todo = [Finding(text=todo.content, turns=[turn], kind="open") for todo, turn in open_todos(turns)]
    return _limited(
        topic or "Untitled",
        [finding for finding in findings if finding.kind != "open"],
        [*todo, *(finding for finding in findings if finding.kind == "open")],
    )


def open_todos(turns: Iterable[Turn]) -> list[tuple[Todo, int]]:
    """Return what the agent's last plan in these turns left undone, with the turn of the plan."""
    found: list[tuple[Todo, int]] = []
    for turn in turns:
        for message in turn.messages:
            for call in message.tool_calls if message.state != "superseded" else ():
                plan = json_object(call.result.result).get("todos") if call.result and call.result.success else None
                if isinstance(plan, list):
                    found = [(todo, turn.turn_index) for todo in _todos(plan)]
    return [(todo, turn) for todo, turn in found if todo.status != "completed"]


def _todos(plan: list[object]) -> list[Todo]:
    try:
        return msgspec.convert(plan, list[Todo])
    except msgspec.ValidationError:
        return []


def _limited(topic: str, findings: Sequence[Finding], items: Sequence[Finding]) -> InsightDraft:
    """Return the draft within its limits; an open task is not repeated as a finding."""
    open_texts = {item.text.casefold() for item in items}
    findings = [finding for finding in findings if finding.text.casefold() not in open_texts]
    return InsightDraft(
        main_topic=cut(topic, TOPIC_CHARS),
        key_findings=_distinct(findings)[:MAX_FINDINGS],
        action_items=_distinct([msgspec.structs.replace(item, kind="open") for item in items])[:MAX_ITEMS],
    )


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    found: dict[str, Finding] = {}
    for finding in findings:
        text = cut(finding.text, FINDING_CHARS)
        if text:
            found.setdefault(text.casefold(), msgspec.structs.replace(finding, text=text))
    return list(found.values())
