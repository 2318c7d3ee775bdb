"""A conversation as one HTML page that needs no network: the tree of summaries, then every turn, tool calls folded.

It has no script and names no other file, so it can be sent by mail, opened years later, and cannot tell anyone who
reads it. Light or dark as the reader's system is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources

from ragforge_tui.export import html_text
from ragforge_tui.export.html_text import line
from ragforge_tui.shared.accessed_files import accesses_of, merge_by_path, top_files
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.finding_records import KeptFinding, said_kind
from ragforge_tui.shared.images import image_lines
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import (
    AccessedFile,
    CallEnd,
    Conversation,
    Finding,
    Message,
    Summary,
    ToolCall,
    Turn,
    call_end,
)
from ragforge_tui.shared.tool_calls import (
    CALL_MARKS,
    commit_line,
    commits_of,
    given_reason,
    main_argument,
    result_text,
    written_name,
)
from ragforge_tui.shared.truncation import cut_middle

MOST_FILES = 100
_RESULT_CHARS = 20_000
_KINDS = {"decision": "Decided", "preference": "Preference", "open": "Open"}
_GROUPS = {"modified": "Files changed", "read": "Files read"}
_ENDS: dict[CallEnd, str] = {"ok": "ok", "failed": "failed", "refused": "failed"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def to_html(export: ConversationExport) -> str:
    """Return the whole page, with secrets masked. Replaced replies are left out."""
    files = merge_by_path(file for turn in export.turns for file in accesses_of(turn)).values()
    memory = "".join(_memory(export.memory, files))
    conversation = export.conversation
    title = line(conversation.title) or "Untitled conversation"
    style = resources.files(__package__).joinpath("page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<div class="page{" with-memory" if memory else ""}">
<header>
<h1>{title}</h1>
<p class="facts">{"".join(_facts(conversation))}</p>
{f'<div class="about text">{html_text.prose(conversation.summary)}</div>' if conversation.summary else ""}
</header>
{f'<nav class="memory" aria-label="Memory of this conversation">{memory}</nav>' if memory else ""}
<main>
{"".join(map(_turn, export.turns))}</main>
<footer>Exported by ragforge-chat. Keys and passwords that were recognised are masked.</footer>
</div>
</body>
</html>
"""


def _facts(conversation: Conversation) -> Iterator[str]:
    last = f"{conversation.updated_at:%Y-%m-%d %H:%M} UTC"
    facts = (
        f"{conversation.created_at:%Y-%m-%d %H:%M} to {last}",
        conversation.model,
        f"persona {conversation.persona}" if conversation.persona else "",
        conversation.workspace,
        " ".join(f"#{tag}" for tag in conversation.tags),
        conversation.status if conversation.status != "active" else "",
    )
    for fact in filter(None, facts):
        yield f"<span>{line(fact)}</span>"
    yield f'<span class="mono">{line(conversation.uuid)}</span>'


def _memory(memory: MemoryExport, files: Iterable[AccessedFile]) -> Iterator[str]:
    if memory.insight is not None:
        findings = "".join(map(_finding, [*memory.insight.key_findings, *memory.insight.action_items]))
        yield f"<h2>In short</h2><p>{line(memory.insight.main_topic)}</p><ul>{findings}</ul>"
    if kept := "".join(_kept(one) for one in memory.findings if one.kind != "fact"):
        yield f"<h2>Decisions, wishes, open points</h2><ul>{kept}</ul>"
    if memory.summaries:
        yield f"<h2>Summaries</h2>{''.join(_tree(memory.summaries))}"
    if memory.topics:
        topics = "".join(
            f"<li>{line(t.name)}{f': {line(t.description)}' if t.description else ''}</li>" for t in memory.topics
        )
        yield f"<h2>Topics</h2><ul>{topics}</ul>"
    chosen = top_files(files, MOST_FILES)
    for group, heading in _GROUPS.items():
        rows = "".join(
            f'<li class="mono">{line(f.path)} {_link(f.turn_index)}</li>' for f in chosen if f.group == group
        )
        if rows:
            yield f"<h2>{heading}</h2><ul>{rows}</ul>"


def _tree(summaries: list[Summary]) -> Iterator[str]:
    """Yield the summaries as they contain each other, in order of their turns; what is still to close is a string."""
    by_id = {summary.uuid: summary for summary in summaries}
    top = [summary for summary in summaries if summary.parent not in by_id]
    pending: list[Summary | str] = [*sorted(top, key=lambda s: s.start_turn_index, reverse=True)]
    while pending:
        summary = pending.pop()
        if isinstance(summary, str):
            yield summary
            continue
        yield from _summary(summary)
        below = [by_id[uuid] for uuid in summary.parent_summaries if uuid in by_id]
        pending += ["</div></details>", *sorted(below, key=lambda s: s.start_turn_index, reverse=True)]


def _summary(summary: Summary) -> Iterator[str]:
    first, last = summary.start_turn_index, summary.end_turn_index
    turns = f"t{first}" if first == last else f"t{first}–t{last}"
    told = line(summary.conversation_summary)
    yield f'<details><summary>{line(summary.title) or "Summary"} <span class="range">{turns}</span></summary>'
    yield f'<div class="inside"><p>{told} {_link(first)}</p>'
    if summary.actions_summary:
        yield f'<p><span class="kind">Done:</span> {line(summary.actions_summary)}</p>'
    if summary.key_findings:
        yield f"<ul>{''.join(map(_finding, summary.key_findings))}</ul>"


def _finding(finding: Finding) -> str:
    turns = " ".join(map(_link, finding.turns))
    return f'<li><span class="kind">{_KINDS.get(finding.kind, "Found")}:</span> {line(finding.text)} {turns}</li>'


def _kept(finding: KeptFinding) -> str:
    """Return a finding as a list item; one that holds no more is struck through."""
    text = f'<span class="kind">{_KINDS.get(said_kind(finding.kind), "Found")}:</span> {line(finding.text)}'
    if finding.is_current:
        return f"<li>{text} {_link(finding.turn_index)}</li>"
    closed_by = f", {line(finding.closed_by)}" if finding.closed_by else ""
    return f"<li><del>{text}</del> {_link(finding.turn_index)} {finding.state}{closed_by}</li>"


def _link(turn: int) -> str:
    return f'<a href="#t{turn}">t{turn}</a>'


def _turn(turn: Turn) -> str:
    shown = [message for message in turn.messages if message.state != "superseded"]
    if not shown:
        return ""
    number = turn.turn_index
    head = f'<h2 class="number"><a href="#t{number}">Turn {number}</a>'
    head += f"<time>{shown[0].timestamp:%Y-%m-%d %H:%M} UTC</time></h2>"
    speaker = ""
    parts: list[str] = []
    for message in shown:
        name = _speaker(message)
        inner = "".join(_message(message))
        heading = f'<p class="speaker">{line(name)}</p>\n' if name != speaker else ""
        speaker = name
        parts.append(f'<div class="{"you" if name == "You" else "reply"}">{heading}{inner}</div>\n')
    return f'<section class="turn" id="t{number}">\n{head}\n{"".join(parts)}</section>\n'


def _speaker(message: Message) -> str:
    if message.role == "assistant":
        return f"{message.persona_glyph} {message.persona}".strip() or "Assistant"
    # A message of the system with calls: the user ran them without the model.
    return "You" if message.role == "user" or message.tool_calls else "System"


def _message(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield f'<details class="call"><summary>Reasoning</summary>{_text(message.reasoning)}</details>\n'
    if message.content:
        yield f"{_text(message.content)}\n"
    for image in image_lines(message.note):
        yield f'<p class="image">Image: {line(image.shown)}</p>\n'
    if message.tool_calls:
        yield f'<div class="calls">{"".join(map(_call, message.tool_calls))}</div>\n'
    if message.state != "complete":
        yield f'<p class="state">{message.state}{": " + line(message.error) if message.error else ""}</p>\n'


def _text(text: str) -> str:
    return f'<div class="text">{html_text.prose(text)}</div>'


def _call(call: ToolCall) -> str:
    end = call_end(call)
    took = "unknown outcome" if call.duration_ms is None else f"{call.duration_ms} ms"
    facts = [given_reason(call), end if end in ("refused", "stopped") else "", took if end != "refused" else ""]
    title = f'<span class="{_ENDS.get(end, "muted")}">{CALL_MARKS[end]}</span> '
    title += f'<span class="tool mono">{line(written_name(call.tool_name))}</span> '
    title += f'<span class="mono">{line(main_argument(call))}</span>'
    title += "".join(f" · {line(fact)}" for fact in facts if fact)
    inner = _result(call)
    commits = "".join(f'<p class="commit mono">{line(commit_line(commit))}</p>' for commit in commits_of(call))
    if not inner:
        return f'<div class="call plain">{title}</div>{commits}\n'
    return f'<details class="call"><summary>{title}</summary>{inner}</details>{commits}\n'


def _result(call: ToolCall) -> str:
    changes = json_object(call.result.result).get("diff") if call.result is not None else None
    if isinstance(changes, str) and changes:
        return html_text.diff(cut_middle(changes, _RESULT_CHARS))
    text = result_text(call)
    return html_text.code(cut_middle(text, _RESULT_CHARS)) if text.strip() else ""
