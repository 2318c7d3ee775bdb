"""A conversation as a file: JSON that imports again without loss, Markdown for people.

Used by the command line; exports in real time write the same. A shared word: it leans on the records alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ragforge_tui.errors import RagforgeError
from ragforge_tui.models import Conversation, ConversationExport, Message, ToolCall, Turn
from ragforge_tui.text import cut_middle, plain_text

EXPORT_VERSION = 1
"""The newest form this program reads, and the one it writes."""

ExportFormat = Literal["json", "markdown"]

_SUFFIXES: dict[ExportFormat, str] = {"json": ".json", "markdown": ".md"}
_MAIN_ARGUMENTS = ("path", "command", "pattern", "query", "message")
_RESULT_CHARS = 4_000


def file_name(uuid: str, format: ExportFormat) -> str:
    """What an exported conversation's file is called."""
    return f"conv-{uuid}{_SUFFIXES[format]}"


def to_json(export: ConversationExport) -> bytes:
    """The lossless form."""
    return msgspec.json.format(msgspec.json.encode(export)) + b"\n"


def from_json(data: bytes) -> ConversationExport:
    """Read the lossless form.

    Raises:
        RagforgeError: It is not an export, or one of a newer program.
    """
    try:
        export = msgspec.json.decode(data, type=ConversationExport)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RagforgeError(f"This is not an exported conversation: {error}.", kind="bad_export") from error
    if export.version > EXPORT_VERSION:
        raise RagforgeError(
            f"This export has version {export.version}, which is newer than this program.",
            todo="Upgrade ragforge-tui.",
            kind="bad_export",
        )
    return export


def to_markdown(export: ConversationExport) -> str:
    """The form for people: turns, tool calls with outcome and time, reasoning folded. Replaced answers are left out."""
    blocks = [_head(export.conversation)]
    for turn in export.turns:
        blocks += _turn(turn)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(conversation: Conversation) -> str:
    facts = {
        "Id": f"`{conversation.uuid}`",
        "Created": f"{conversation.created_at:%Y-%m-%d %H:%M} UTC",
        "Updated": f"{conversation.updated_at:%Y-%m-%d %H:%M} UTC",
        "Status": conversation.status,
        "Folder": conversation.workspace,
        "Persona": conversation.persona,
        "Model": conversation.model,
        "Tags": ", ".join(conversation.tags),
    }
    lines = [f"- {name}: {_line(value)}" for name, value in facts.items() if value]
    title = _line(conversation.title) or "Untitled conversation"
    summary = plain_text(conversation.summary)
    return "\n\n".join(part for part in (f"# {title}", "\n".join(lines), summary) if part)


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
    names = {"user": "You", "assistant": message.persona or "Assistant", "system": "System"}
    return _line(names[message.role])


def _message(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield _folded("Reasoning", plain_text(message.reasoning))
    if message.content:
        yield plain_text(message.content)
    for call in message.tool_calls:
        yield _call(call)
    if message.state != "complete":
        yield f"*{message.state}{': ' + _line(message.error) if message.error else ''}*"


def _call(call: ToolCall) -> str:
    mark = "?" if call.success is None else "✓" if call.success else "✗"
    took = "unknown outcome" if call.duration_ms is None else f"{call.duration_ms} ms"
    argument = main_argument(call)
    title = f"{mark} <code>{_html(call.tool_name)}</code> {_html(argument)} · {took}".replace("  ", " ")
    text = result_text(call)
    return _folded(title, _fenced(cut_middle(text, _RESULT_CHARS))) if text else f"- {title}"


def main_argument(call: ToolCall) -> str:
    """The argument that says what the call was about, on one line; empty when there is none."""
    arguments = _object(call.arguments)
    for name in _MAIN_ARGUMENTS:
        if isinstance(arguments.get(name), str):
            return _line(arguments[name])[:200]
    return ""


def result_text(call: ToolCall) -> str:
    """What the model was told."""
    if call.result is None:
        return ""
    text = _object(call.result.result).get("text")
    return plain_text(text if isinstance(text, str) else call.result.error or "")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a model may have written anything
        return {}
    return value if isinstance(value, dict) else {}


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
