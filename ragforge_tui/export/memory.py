"""What a conversation's memory holds, as plain text: the tree of summaries, topics, files."""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.models import AccessedFile, Summary, Topic
from ragforge_tui.protocol import MemoryView

_GROUPS = {"read": "Read", "modified": "Modified", "found": "Found in searches"}


def memory_text(view: MemoryView) -> str:
    """The view as text; the tree with its highest summaries first, their own under them."""
    parts = []
    if view.behind:
        parts.append(f"The memory is behind: {view.behind}")
    parts.append("## Summary\n" + (view.summary or "None yet."))
    parts.append("## Tree of summaries\n" + (tree_text(view.summaries) or "None yet."))
    if view.next_turns or view.next_chars:
        parts.append(f"The next summary comes after {view.next_turns} turns or {view.next_chars} characters.")
    if view.topics:
        parts.append("## Topics\n" + topics_text(view.topics))
    if view.files:
        parts.append("## Recently accessed files\n" + files_text(view.files))
    return "\n\n".join(parts)


def tree_text(summaries: Sequence[Summary]) -> str:
    """The summaries as a tree, each under the one that summarises it, in order of the turns."""
    children: dict[str, list[Summary]] = {}
    ids = {summary.uuid for summary in summaries}
    for summary in sorted(summaries, key=lambda s: (s.start_turn_index, -s.level)):
        children.setdefault(summary.parent if summary.parent in ids else "", []).append(summary)
    lines: list[str] = []
    waiting = [(summary, 0) for summary in reversed(children.get("", []))]
    while waiting:
        summary, depth = waiting.pop()
        lines += _summary_lines(summary, "   " * depth)
        waiting += [(child, depth + 1) for child in reversed(children.get(summary.uuid, []))]
    return "\n".join(lines)


def _summary_lines(summary: Summary, indent: str) -> list[str]:
    head = f"L{summary.level} t{summary.start_turn_index}–t{summary.end_turn_index}"
    if summary.topics:
        head += f" · {', '.join(summary.topics)}"
    lines = [f"{indent}◆ {head}", f"{indent}  {summary.conversation_summary}"]
    if summary.actions_summary:
        lines.append(f"{indent}  {summary.actions_summary}")
    for finding in summary.key_findings:
        cited = f" [{', '.join(f't{turn}' for turn in finding.turns)}]" if finding.turns else ""
        lines.append(f"{indent}  - {finding.text}{cited}")
    return lines


def topics_text(topics: Sequence[Topic]) -> str:
    """Topics, one a line, with how much is about them and what is near."""
    lines = []
    for topic in topics:
        counted = f" ({topic.summaries} summaries, {topic.conversations} conversations)" if topic.summaries else ""
        lines.append(f"{topic.name}{counted}")
        if topic.description:
            lines.append(f"   {topic.description}")
        near = [f"{other.name} ({other.relation})" for other in topic.related]
        if near:
            lines.append(f"   near: {', '.join(near)}")
    return "\n".join(lines)


def files_text(files: Sequence[AccessedFile]) -> str:
    """Files in their groups, with the tool and turn that touched them last."""
    lines = []
    for group, title in _GROUPS.items():
        own = [file for file in files if file.group == group]
        if own:
            lines.append(f"{title}:")
            lines += [f"   {file.path} · {file.tool}, t{file.turn_index}" for file in own]
    return "\n".join(lines)
