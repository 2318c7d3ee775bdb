"""A summary before it is stored, with the limits of every draft, whoever wrote it.

Between the writers (`answer` for a model's, `extractive` without one) and the summarizer.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.graph.store.topic_links import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.summaries.sentences import cut
from ragforge_tui.shared.records import Finding

PART_CHARS = 500
FINDING_CHARS = 300
MAX_FINDINGS = 5
MAX_FILES = 30
MAX_TOPICS = 4
TOPIC_CHARS = 60


class Draft(msgspec.Struct, kw_only=True):
    """Content of a summary before it is stored."""

    conversation_summary: str
    actions_summary: str = ""
    key_findings: list[Finding] = []
    files_mentioned: list[str] = []
    topics: list[ProposedTopic] = []
    links: list[TopicLink] = []
    made_by: str = ""


def limited(draft: Draft) -> Draft:
    """Return the draft within the limits: texts cut at a sentence, lists to their first entries, no duplicates."""
    findings: dict[str, Finding] = {}
    for finding in draft.key_findings:
        text = cut(finding.text, FINDING_CHARS)
        findings.setdefault(text.casefold(), Finding(text=text, turns=finding.turns))
    topics: dict[str, ProposedTopic] = {}
    for topic in draft.topics:
        name = cut(topic.name, TOPIC_CHARS)
        if topic_key(name):
            topics.setdefault(topic_key(name), msgspec.structs.replace(topic, name=name))
    return msgspec.structs.replace(
        draft,
        conversation_summary=cut(draft.conversation_summary, PART_CHARS),
        actions_summary=cut(draft.actions_summary, PART_CHARS),
        key_findings=[finding for key, finding in findings.items() if key][:MAX_FINDINGS],
        files_mentioned=list(dict.fromkeys(draft.files_mentioned))[:MAX_FILES],
        topics=list(topics.values())[:MAX_TOPICS],
    )
