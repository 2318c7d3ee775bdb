"""Work of a range of time, by conversation: from its summaries where they cover it, else from its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.activity import ActiveTurns
from ragforge_tui.memory.insights import open_todos
from ragforge_tui.memory.prose import cut
from ragforge_tui.memory.summaries.offline.extract import extract
from ragforge_tui.shared.accessed_files import accesses_of
from ragforge_tui.shared.past_records import WorkDone
from ragforge_tui.shared.records import Finding, Insight, Summary, ToolCall, Turn, fingerprint, now
from ragforge_tui.shared.tool_calls import commits_of

MOST_TURNS = 100
"""Turns of one conversation that are read, the newest; summaries cover the others."""
TEXT_CHARS = 700
ACTIONS_CHARS = 400
MAX_FINDINGS = 5
MAX_OPEN = 8
_SHORT_DIGEST = 8
"""Line that git prints for a new commit, such as ``[main 1a2b3c4] store: one retry``."""


async def work_done(
    store: Store,
    *,
    since: datetime,
    until: datetime | None = None,
    workspace: str | None = None,
    private: str = "",
) -> list[WorkDone]:
    """Return the work done in [since, until), that of the conversation used last first.

    Args:
        private: The open conversation, which may be private; others that are private are left out.
    """
    active = await store.activity.turns(since, until or now(), workspace=workspace, private=private)
    insights = await store.insights.of([one.conversation.uuid for one in active])
    found = []
    for one in active:
        uuid = one.conversation.uuid
        turns = await store.turns.between(uuid, start=max(one.first, one.last - MOST_TURNS + 1), end=one.last + 1)
        summaries = await store.summaries.of(uuid)
        found.append(await asyncio.to_thread(_work, one, turns, summaries, insights.get(uuid)))
    return found


def _work(
    active: ActiveTurns, turns: Sequence[Turn], summaries: Sequence[Summary], insight: Insight | None
) -> WorkDone:
    conversation = active.conversation
    inside = [
        one
        for one in summaries
        if one.level == 1 and active.first <= one.start_turn_index and one.end_turn_index <= active.last
    ]
    covered = {turn for one in inside for turn in range(one.start_turn_index, one.end_turn_index + 1)}
    rest = [turn for turn in turns if turn.turn_index not in covered]
    texts = [one.conversation_summary for one in inside]
    actions = [one.actions_summary for one in inside]
    findings = [finding for one in inside for finding in one.key_findings]
    if rest:
        draft = extract(rest)
        texts.append(draft.conversation_summary)
        actions.append(draft.actions_summary)
        findings += draft.key_findings
    return WorkDone(
        conversation_id=conversation.uuid,
        title=conversation.title,
        workspace=conversation.workspace,
        first_turn=active.first,
        last_turn=active.last,
        started=active.started,
        ended=active.ended,
        text=_latest(texts, TEXT_CHARS),
        actions=_latest(actions, ACTIONS_CHARS),
        findings=_settled(findings),
        files=sorted({file.path for turn in turns for file in accesses_of(turn) if file.group == "modified"}),
        commits=list(dict.fromkeys(_commits(turns))),
        open_points=_open(turns, findings, insight if _current(insight, active) else None),
    )


def _commits(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the commits that commands of these turns made, each with its subject."""
    for call in _calls(turns):
        for commit in commits_of(call):
            yield f"{commit.hash[:_SHORT_DIGEST]} {commit.subject}"


def _calls(turns: Sequence[Turn]) -> Iterator[ToolCall]:
    return (call for turn in turns for message in turn.messages for call in message.tool_calls)


def _latest(texts: Sequence[str], limit: int) -> str:
    """Return the texts within a limit, each shortened alike, so that the end of the work is included."""
    given = [text for text in texts if text]
    return " ".join(cut(text, limit // len(given)) for text in given)


def _settled(findings: Sequence[Finding]) -> list[Finding]:
    """Return decisions, then facts and preferences; the newest of each first."""
    known = {finding.text.casefold(): finding for finding in findings if finding.kind != "open"}
    return sorted(known.values(), key=lambda finding: (finding.kind != "decision", -max(finding.turns, default=0)))[
        :MAX_FINDINGS
    ]


def _current(insight: Insight | None, active: ActiveTurns) -> bool:
    return insight is not None and insight.fingerprint == fingerprint(active.conversation)


def _open(turns: Sequence[Turn], findings: Sequence[Finding], insight: Insight | None) -> list[Finding]:
    """Return the open tasks: the agent's plan, then the insight if it is current, else what findings leave open."""
    todos = [Finding(text=todo.content, turns=[turn], kind="open") for todo, turn in open_todos(turns)]
    told = insight.action_items if insight is not None else [one for one in findings if one.kind == "open"]
    return list({item.text.casefold(): item for item in (*todos, *told)}.values())[:MAX_OPEN]
