"""Work of a range of time, by conversation: what was done, what is open and what failed, in whole sentences.

What happened comes from the summaries that a model wrote where they cover it, else from the turns themselves; decisions
and open points from the findings that are kept, each in its state now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.activity import ActiveTurns
from ragforge_tui.memory.insights import open_todos
from ragforge_tui.memory.past.told import asked_and_answered, commands_run, failures, said, told_by
from ragforge_tui.memory.prose import ELLIPSIS
from ragforge_tui.shared.accessed_files import accesses_of
from ragforge_tui.shared.finding_records import KeptFinding, said_kind
from ragforge_tui.shared.past_records import WorkDone
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Insight, Summary, ToolCall, Turn, fingerprint, now
from ragforge_tui.shared.tool_calls import commits_of

MOST_TURNS = 100
"""Turns of one conversation that are read, the newest; summaries cover the others."""
MAX_FINDINGS = 5
MAX_OPEN = 8
_SHORT_DIGEST = 8


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
        kept = await store.findings.of_conversation(uuid)
        found.append(await asyncio.to_thread(_work, one, turns, summaries, insights.get(uuid), kept))
    return found


def _work(
    active: ActiveTurns,
    turns: Sequence[Turn],
    summaries: Sequence[Summary],
    insight: Insight | None,
    kept: Sequence[KeptFinding] = (),
) -> WorkDone:
    conversation = active.conversation
    oldest = min((turn.turn_index for turn in turns), default=active.first)
    inside = [
        one
        for one in summaries
        if one.level == 1 and active.first <= one.start_turn_index and one.end_turn_index <= active.last
        if one.made_by != EXTRACTIVE or one.end_turn_index < oldest
    ]
    covered = {turn for one in inside for turn in range(one.start_turn_index, one.end_turn_index + 1)}
    rest = [turn for turn in turns if turn.turn_index not in covered]
    stated = [finding for one in inside for finding in one.key_findings if not _is_cut(finding)]
    in_range = [one for one in kept if active.first <= one.turn_index <= active.last]
    if kept:
        decisions = [_said(one) for one in in_range if one.kind == "decision" and one.is_current]
    else:
        decisions = [one for one in stated if one.kind == "decision"] + said(rest, "decision")
    return WorkDone(
        conversation_id=conversation.uuid,
        title=conversation.title,
        workspace=conversation.workspace,
        first_turn=active.first,
        last_turn=active.last,
        started=active.started,
        ended=active.ended,
        text=" ".join(filter(None, (told_by([one.conversation_summary for one in inside]), asked_and_answered(rest)))),
        actions=commands_run(turns),
        findings=_newest(decisions, MAX_FINDINGS),
        files=sorted({file.path for turn in turns for file in accesses_of(turn) if file.group == "modified"}),
        commits=list(dict.fromkeys(_commits(turns))),
        closed=[_said(one, one.closed_by) for one in kept if one.state == "done" and _closed_in(one, active)],
        failures=failures(turns),
        open_points=_open(turns, stated, kept, insight if _current(insight, active) else None),
    )


def _is_cut(finding: Finding) -> bool:
    return finding.text.rstrip("”»\"'.)").endswith(ELLIPSIS)


def _said(finding: KeptFinding, closed_by: str = "") -> Finding:
    text = f"{finding.text} ({closed_by})" if closed_by else finding.text
    return Finding(text=text, turns=[finding.turn_index], kind=said_kind(finding.kind))


def _closed_in(finding: KeptFinding, active: ActiveTurns) -> bool:
    return finding.kind == "open" and finding.until is not None and finding.until >= active.started


def _commits(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the commits that commands of these turns made, each with its subject."""
    for call in _calls(turns):
        for commit in commits_of(call):
            yield f"{commit.hash[:_SHORT_DIGEST]} {commit.subject}"


def _calls(turns: Sequence[Turn]) -> Iterator[ToolCall]:
    return (call for turn in turns for message in turn.messages for call in message.tool_calls)


def _newest(findings: Sequence[Finding], most: int) -> list[Finding]:
    """Return the newest findings, without those that only repeat another, in order of their turns."""
    known = {finding.text.casefold(): finding for finding in findings}
    return sorted(known.values(), key=lambda finding: max(finding.turns, default=0))[-most:]


def _current(insight: Insight | None, active: ActiveTurns) -> bool:
    return insight is not None and insight.fingerprint == fingerprint(active.conversation)


def _open(
    turns: Sequence[Turn], stated: Sequence[Finding], kept: Sequence[KeptFinding], insight: Insight | None
) -> list[Finding]:
    """Return the open tasks: what the last plan left undone, then the findings that are open.

    A plan counts only in the last turn: what later turns did is not noted in it.
    """
    todos = [Finding(text=todo.content, turns=[turn], kind="open") for todo, turn in open_todos(turns[-1:])]
    if kept:
        told = [_said(one) for one in kept if one.kind == "open" and one.is_current]
    elif insight is not None:
        told = insight.action_items
    else:
        told = [one for one in stated if one.kind == "open"] or said(turns[-1:], "open")
    return list({item.text.casefold(): item for item in (*todos, *told)}.values())[:MAX_OPEN]
