"""A conversation as Markdown, for /export. Pure; loaded when it is first wanted."""

from __future__ import annotations

from collections.abc import Iterator

from ragforge_tui.models import ConversationExport, Message, ToolCall


def markdown(export: ConversationExport) -> str:
    """Title, then every turn with its tool calls; superseded attempts are left out."""
    conversation = export.conversation
    lines = [f"# {conversation.title or conversation.uuid}", "", f"Conversation {conversation.uuid}", ""]
    for turn in export.turns:
        for message in turn.messages:
            if message.state != "superseded":
                lines += _message(message)
    return "\n".join(lines)


def _message(message: Message) -> Iterator[str]:
    who = "You" if message.role == "user" else message.persona or message.role.capitalize()
    state = "" if message.state == "complete" else f" ({message.state})"
    if message.role == "user" or message.content:
        yield f"## {who}{state} · turn {message.turn_index} · {message.timestamp:%Y-%m-%d %H:%M}"
        yield ""
        yield message.content
        yield ""
    for call in message.tool_calls:
        yield _call(call)
    if message.tool_calls:
        yield ""


def _call(call: ToolCall) -> str:
    outcome = "ran" if call.success else "failed" if call.success is False else "outcome unknown"
    fence = "``" if "`" in call.arguments else "`"
    return f"- **{call.tool_name}** {fence}{call.arguments}{fence} {outcome}"
