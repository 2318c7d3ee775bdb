"""Readable form of a conversation in Markdown: its summaries, topics and files, then every turn.

Foreign text cannot change the document's structure. The document can also be written in pieces, each starting with
the blank line before it, whose concatenation equals the whole: a real-time export writes only the new turns and
copies the rest.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from ragforge_tui.export.contained import contained, fenced, inline
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.records import AccessedFile, Conversation, Message, Summary, ToolCall, Turn, call_end
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import CALL_MARKS, main_argument, result_text
from ragforge_tui.shared.touched_files import joined, most_telling, touched_by
from ragforge_tui.shared.truncation import cut_middle

MOST_FILES = 100
_GROUPS = {"read": "Read", "modified": "Modified", "found": "Found in searches"}
_RESULT_CHARS = 4_000


def to_markdown(export: ConversationExport) -> str:
    """Return the whole document. Replaced replies are left out."""
    files = joined(file for turn in export.turns for file in touched_by(turn)).values()
    pieces = [head_text(export.conversation), memory_text(export.memory), files_text(files)]
    return "".join((*pieces, *map(turn_text, export.turns))) + "\n"


def head_text(conversation: Conversation) -> str:
    """Return the document's title, facts and summary."""
    facts = {
        "Created": f"{conversation.created_at:%Y-%m-%d %H:%M} UTC",
        "Updated": f"{conversation.updated_at:%Y-%m-%d %H:%M} UTC",
        "Status": conversation.status,
        "Folder": inline(conversation.workspace),
        "Persona": inline(conversation.persona),
        "Model": inline(conversation.model),
        "Tags": ", ".join(map(inline, conversation.tags)),
        "Branch of": inline(conversation.branch_of or ""),
    }
    lines = [f"- Id: `{conversation.uuid}`", *(f"- {name}: {value}" for name, value in facts.items() if value)]
    title = inline(conversation.title) or "Untitled conversation"
    summary = contained(conversation.summary)
    return mask_secrets("\n\n".join(part for part in (f"# {title}", "\n".join(lines), summary) if part))


def memory_text(memory: MemoryExport) -> str:
    """Return the tree of summaries and the topics; empty if there are none."""
    parts = []
    if memory.summaries:
        parts.append("\n\n## Summaries\n\n" + "\n".join(_tree(memory.summaries)))
    if memory.topics:
        lines = (f"- {inline(t.name)}" + (f": {inline(t.description)}" if t.description else "") for t in memory.topics)
        parts.append("\n\n## Topics\n\n" + "\n".join(lines))
    return mask_secrets("".join(parts))


def files_text(files: Iterable[AccessedFile]) -> str:
    """Return the files that tools accessed, by group; empty if there are none."""
    chosen = most_telling(files, MOST_FILES)
    parts = []
    for group, heading in _GROUPS.items():
        lines = [f"- {inline(f.path)} ({inline(f.tool)}, t{f.turn_index})" for f in chosen if f.group == group]
        if lines:
            parts.append(f"\n\n{heading}:\n\n" + "\n".join(lines))
    return "\n\n## Files" + "".join(parts) if parts else ""


def turn_text(turn: Turn) -> str:
    """Return one turn; empty if all its messages were replaced."""
    return mask_secrets("".join(f"\n\n{block}" for block in _turn(turn) if block))


def _tree(summaries: list[Summary]) -> Iterator[str]:
    """Yield the top-level summaries in order of their turns, each followed by the summaries it was made from."""
    by_id = {summary.uuid: summary for summary in summaries}
    top = [summary for summary in summaries if summary.parent not in by_id]
    pending = [(summary, 0) for summary in sorted(top, key=lambda s: s.start_turn_index, reverse=True)]
    while pending:
        summary, depth = pending.pop()
        yield from _summary(summary, "  " * depth)
        below = [by_id[uuid] for uuid in summary.parent_summaries if uuid in by_id]
        pending += [(child, depth + 1) for child in sorted(below, key=lambda s: s.start_turn_index, reverse=True)]


def _summary(summary: Summary, indent: str) -> Iterator[str]:
    first, last = summary.start_turn_index, summary.end_turn_index
    turns = f"turn {first}" if first == last else f"turns {first}–{last}"
    yield f"{indent}- **L{summary.level}** · {turns} · {inline(summary.conversation_summary)}"
    if summary.actions_summary:
        yield f"{indent}  - Done: {inline(summary.actions_summary)}"
    for finding in summary.key_findings:
        cited = f" ({', '.join(f't{turn}' for turn in finding.turns)})" if finding.turns else ""
        yield f"{indent}  - Found: {inline(finding.text)}{cited}"


def _turn(turn: Turn) -> Iterator[str]:
    shown = [message for message in turn.messages if message.state != "superseded"]
    if not shown:
        return
    yield f"## Turn {turn.turn_index} · {shown[0].timestamp:%Y-%m-%d %H:%M} UTC"
    speaker = ""
    for message in shown:
        name = _speaker(message)
        if name != speaker:
            yield f"**{name}**"
        speaker = name
        yield from _message(message)


def _speaker(message: Message) -> str:
    own = "You" if message.tool_calls else "System"  # tool calls the user made without the model
    names = {"user": "You", "assistant": message.persona or "Assistant", "system": own}
    return inline(names[message.role])


def _message(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield _folded("Reasoning", contained(message.reasoning))
    if message.content:
        yield contained(message.content)
    for call in message.tool_calls:
        yield _call(call)
    if message.state != "complete":
        yield f"*{message.state}{': ' + inline(message.error) if message.error else ''}*"


def _call(call: ToolCall) -> str:
    end = call_end(call)
    took = "unknown outcome" if call.duration_ms is None else f"{call.duration_ms} ms"
    if end in ("refused", "stopped"):
        took = end if end == "refused" else f"{end} · {took}"
    mark = CALL_MARKS[end]
    name, argument = html.escape(_line(call.tool_name), quote=False), main_argument(call)
    text = result_text(call)
    if not text:
        return f"- {mark} <code>{name}</code> {inline(argument)} · {took}".replace("  ", " ")
    # Markdown is not read within the summary's tags: there the text is HTML alone.
    title = f"{mark} <code>{name}</code> {html.escape(argument, quote=False)} · {took}".replace("  ", " ")
    return _folded(title, fenced(cut_middle(text, _RESULT_CHARS)))


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())
