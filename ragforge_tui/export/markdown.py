"""Readable form of a conversation in Markdown: its summaries, topics and files, then every turn.

Foreign text cannot change the document's structure: text that is harmless as Markdown stays as written, any other is
quoted, with its tags escaped. A parser decides, so nothing is guessed. The document can also be written in pieces,
each starting with the blank line before it, whose concatenation equals the whole: a real-time export writes only the
new turns and copies the rest.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ragforge_tui.shared.accessed_files import accesses_of, merge_by_path, top_files
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport
from ragforge_tui.shared.finding_records import KeptFinding, said_kind
from ragforge_tui.shared.images import image_lines
from ragforge_tui.shared.markdown_limits import bound_links
from ragforge_tui.shared.records import (
    AccessedFile,
    Conversation,
    Finding,
    Insight,
    Message,
    Summary,
    ToolCall,
    Turn,
    call_end,
)
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import CALL_MARKS, commit_line, commits_of, main_argument, result_text, written_name
from ragforge_tui.shared.truncation import cut_middle

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_FILES = 100
_GROUPS = {"read": "Read", "modified": "Modified", "found": "Found in searches"}
_KINDS = {"decision": "Decided", "preference": "Preference", "open": "Open"}
_RESULT_CHARS = 4_000

_PARSED_CHARS = 200_000
"""Longest text that is parsed. A longer one is fenced: it is hardly prose, and parsing it would take long."""
_SENTINEL = "after-the-text"
_OWN_HEADINGS = ("h1", "h2")
"""Heading levels that the document uses itself; a text may contain lower ones."""
_FENCE_RUN = re.compile(r"`{3,}")
_TICKS = re.compile("`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_PUNCTUATION = frozenset("\\`*_[]<>#+-.)!&~|")
_SPECIAL = re.compile(r"[\\`*_\[\]<>#!&~|]|^[-+]|^\d+[.)]")
_PLAIN_ITEM = [
    "bullet_list_open",
    "list_item_open",
    "paragraph_open",
    "inline",
    "paragraph_close",
    "list_item_close",
    "bullet_list_close",
]


def to_markdown(export: ConversationExport) -> str:
    """Return the whole document. Replaced replies are left out."""
    files = merge_by_path(file for turn in export.turns for file in accesses_of(turn)).values()
    pieces = [head_text(export.conversation), memory_text(export.memory), files_text(files)]
    return "".join((*pieces, *map(turn_text, export.turns))) + "\n"


def head_text(conversation: Conversation) -> str:
    """Return the document's title, facts and summary."""
    facts = {
        "Created": f"{conversation.created_at:%Y-%m-%d %H:%M} UTC",
        "Updated": f"{conversation.updated_at:%Y-%m-%d %H:%M} UTC",
        "Status": conversation.status,
        "Folder": escaped_line(conversation.workspace),
        "Persona": escaped_line(conversation.persona),
        "Model": escaped_line(conversation.model),
        "Tags": ", ".join(map(escaped_line, conversation.tags)),
        "Branch of": escaped_line(conversation.branch_of or ""),
    }
    lines = [f"- Id: `{conversation.uuid}`", *(f"- {name}: {value}" for name, value in facts.items() if value)]
    title = escaped_line(conversation.title) or "Untitled conversation"
    summary = escaped_block(conversation.summary)
    return mask_secrets("\n\n".join(part for part in (f"# {title}", "\n".join(lines), summary) if part))


def memory_text(memory: MemoryExport) -> str:
    """Return the insight, the findings, the tree of summaries and the topics; empty if there are none."""
    parts = []
    if memory.insight is not None:
        parts.append("\n\n## Insight\n\n" + "\n".join(_insight(memory.insight)))
    if kept := [_kept(one) for one in memory.findings if one.kind != "fact"]:
        parts.append("\n\n## Decisions, wishes and open points\n\n" + "\n".join(kept))
    if memory.summaries:
        parts.append("\n\n## Summaries\n\n" + "\n".join(_tree(memory.summaries)))
    if memory.topics:
        lines = (
            f"- {escaped_line(t.name)}" + (f": {escaped_line(t.description)}" if t.description else "")
            for t in memory.topics
        )
        parts.append("\n\n## Topics\n\n" + "\n".join(lines))
    return mask_secrets("".join(parts))


def files_text(files: Iterable[AccessedFile]) -> str:
    """Return the files that tools accessed, by group; empty if there are none."""
    chosen = top_files(files, MOST_FILES)
    parts = []
    for group, heading in _GROUPS.items():
        lines = [
            f"- {escaped_line(f.path)} ({escaped_line(written_name(f.tool))}, t{f.turn_index})"
            for f in chosen
            if f.group == group
        ]
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
    title = f"**{escaped_line(summary.title)}** · " if summary.title else ""
    yield f"{indent}- **L{summary.level}** · {turns} · {title}{escaped_line(summary.conversation_summary)}"
    if summary.actions_summary:
        yield f"{indent}  - Done: {escaped_line(summary.actions_summary)}"
    for finding in summary.key_findings:
        yield f"{indent}  - {_KINDS.get(finding.kind, 'Found')}: {escaped_line(finding.text)}{_cited(finding)}"


def _insight(insight: Insight) -> Iterator[str]:
    yield f"- **{escaped_line(insight.main_topic)}**"
    for finding in insight.key_findings:
        yield f"  - {_KINDS.get(finding.kind, 'Found')}: {escaped_line(finding.text)}{_cited(finding)}"
    for item in insight.action_items:
        yield f"  - To do: {escaped_line(item.text)}{_cited(item)}"


def _kept(finding: KeptFinding) -> str:
    """Return a finding as a list item; one that holds no more is struck through."""
    text = f"{_KINDS.get(said_kind(finding.kind), 'Found')}: {escaped_line(finding.text)}"
    turn = f"(t{finding.turn_index})"
    if finding.is_current:
        return f"- {text} {turn}"
    closed_by = f", {escaped_line(finding.closed_by)}" if finding.closed_by else ""
    return f"- ~~{text}~~ {turn} {finding.state}{closed_by}"


def _cited(finding: Finding) -> str:
    return f" ({', '.join(f't{turn}' for turn in finding.turns)})" if finding.turns else ""


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
    return escaped_line(names[message.role])


def _message(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield _folded("Reasoning", escaped_block(message.reasoning))
    if message.content:
        yield escaped_block(message.content)
    if message.failed_tests:
        yield f"*The last test run: {escaped_line(message.failed_tests)}*  "
    for image in image_lines(message.note):
        yield f"*Image: {escaped_line(image.shown)}*"
    for call in message.tool_calls:
        yield _call(call)
        yield "\n".join(f"- {escaped_line(commit_line(commit))}" for commit in commits_of(call))
    if message.state != "complete":
        yield f"*{message.state}{': ' + escaped_line(message.error) if message.error else ''}*"


def _call(call: ToolCall) -> str:
    end = call_end(call)
    took = "unknown outcome" if call.duration_ms is None else f"{call.duration_ms} ms"
    if end in ("refused", "stopped"):
        took = end if end == "refused" else f"{end} · {took}"
    mark = CALL_MARKS[end]
    name, argument = html.escape(_line(call.tool_name), quote=False), main_argument(call)
    text = result_text(call)
    if not text:
        return f"- {mark} <code>{name}</code> {escaped_line(argument)} · {took}".replace("  ", " ")
    # Markdown is not read within the summary's tags: there the text is HTML alone.
    title = f"{mark} <code>{name}</code> {html.escape(argument, quote=False)} · {took}".replace("  ", " ")
    return _folded(title, code_block(cut_middle(text, _RESULT_CHARS)))


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def escaped_block(text: str) -> str:
    """Return the text as a block of its own: unchanged if harmless, else quoted, or fenced if too long to parse."""
    text = plain_text(text).strip("\n")
    if not text.strip():
        return ""
    if len(text) > _PARSED_CHARS:
        return code_block(text)
    if _harmless(text):
        return text
    escaped = _escape_tags(text)
    return "\n".join(f"> {line}".rstrip() for line in escaped.split("\n"))


def code_block(text: str) -> str:
    """Return the text as a block of code, between fences longer than any in it."""
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def escaped_line(text: str) -> str:
    """Return the text on one line, escaped only if Markdown or HTML would act on it."""
    line = " ".join(plain_text(text).split())
    tokens = _parser().parse(f"- {line}")
    children = tokens[3].children or [] if [token.type for token in tokens] == _PLAIN_ITEM else []
    plain = all(child.type == "text" for child in children) and "".join(child.content for child in children) == line
    if plain and "~~" not in line:
        return line
    return _SPECIAL.sub(lambda match: "".join(f"\\{char}" if char in _PUNCTUATION else char for char in match[0]), line)


def readable_line(text: str) -> str:
    """Return the text on one line, with its inline code; escaped if Markdown or HTML would act on anything else."""
    line = " ".join(plain_text(text).split())
    tokens = _parser().parse(f"- {line}")
    children = tokens[3].children or [] if [token.type for token in tokens] == _PLAIN_ITEM else []
    only_code = bool(children) and all(child.type in ("text", "code_inline") for child in children)
    return line if only_code else escaped_line(line)


def _harmless(text: str) -> bool:
    """Return whether no block stays open after the text, and no heading, tag or definition reaches beyond it."""
    if text[0].isspace():  # after a list it would continue the last entry
        return False
    environment: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\n{_SENTINEL}\n", environment)
    if environment.get("references") or any(_is_harmful(token) for token in tokens):
        return False
    end = tokens[-3:]
    return (
        [token.type for token in end] == ["paragraph_open", "inline", "paragraph_close"]
        and end[0].level == 0
        and end[1].content == _SENTINEL
    )


def _is_harmful(token: Token) -> bool:
    return _is_tag(token) or (token.type == "heading_open" and token.tag in _OWN_HEADINGS)


def _is_tag(token: Token) -> bool:
    return token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())


def _escape_tags(text: str) -> str:
    """Escape the tags of a text: only those outside of code if that is enough, else all of them."""
    lines = text.split("\n")
    code: set[int] = set()
    for token in _parser().parse(text):
        if token.type in ("fence", "code_block") and token.map:
            code.update(range(*token.map))
    escaped = "\n".join(line if number in code else _escape_outside_spans(line) for number, line in enumerate(lines))
    quoted = "\n".join(f"> {line}" for line in escaped.split("\n"))
    if any(_is_tag(token) for token in _parser().parse(quoted)):
        escaped = _TAG.sub("&lt;", text)
    # A link definition would turn brackets anywhere in the document into links.
    return re.sub(r"^((?:[^\S\n]|>|[-*+][^\S\n])*)\[(?=[^\]\n]*\]:)", r"\1\\[", escaped, flags=re.MULTILINE)


def _escape_outside_spans(line: str) -> str:
    runs = [match.span() for match in _TICKS.finditer(line)]
    closings: list[int] = []
    later: dict[int, int] = {}
    for at, (start, end) in reversed(list(enumerate(runs))):
        closings.append(later.get(end - start, -1))
        later[end - start] = at
    closings.reverse()
    parts: list[str] = []
    position = at = 0
    while at < len(runs):
        if (closing := closings[at]) >= 0:
            start, end = runs[at][0], runs[closing][1]
            parts += [_TAG.sub("&lt;", line[position:start]), line[start:end]]
            position, at = end, closing
        at += 1
    return "".join((*parts, _TAG.sub("&lt;", line[position:])))


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").use(bound_links)
