"""A stored turn as text, for a model that opened it in full. Used by the memory tools' sources."""

from __future__ import annotations

from collections.abc import Iterator

from ragforge_tui.export import main_argument, result_text
from ragforge_tui.shared.records import Conversation, Message, ToolCall, Turn, call_end
from ragforge_tui.shared.sanitize import plain_text


def turn_view(conversation: Conversation, turn: Turn) -> str:
    """Return a turn's origin, its messages, and each tool call with its outcome and result.

    Replaced answers are left out.
    """
    shown = [message for message in turn.messages if message.state != "superseded"]
    when = f", {shown[0].timestamp:%Y-%m-%d %H:%M} UTC" if shown else ""
    title = " ".join(plain_text(conversation.title).split()) or "untitled"
    blocks = [f"[t{turn.turn_index}] of conversation {conversation.uuid} ({title}){when}"]
    for message in shown:
        blocks += _message(message)
    return "\n\n".join(blocks)


def _message(message: Message) -> Iterator[str]:
    own = "The user" if message.tool_calls else "System"
    speaker = {"user": "The user", "assistant": message.persona or "The assistant", "system": own}[message.role]
    if message.reasoning:
        yield f"{speaker}, thinking:\n{plain_text(message.reasoning)}"
    if message.content:
        yield f"{speaker}:\n{plain_text(message.content)}"
    for call in message.tool_calls:
        yield _call(call)
    if message.state != "complete":
        yield f"({message.state}{': ' + plain_text(message.error) if message.error else ''})"


def _call(call: ToolCall) -> str:
    end = call_end(call)
    outcome = {"unknown": "outcome unknown", "ok": "succeeded"}.get(end, end)
    took = "" if call.duration_ms is None else f" in {call.duration_ms} ms"
    head = f"Tool {call.tool_name} {main_argument(call)}".rstrip() + f", {outcome}{took}"
    text = result_text(call)
    return f"{head}:\n{text}" if text else f"{head}."
