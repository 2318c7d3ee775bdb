"""Conversion of a turn's final event into an `Answer` or an error.

`Conversation.send_message` uses it. Part of the public Python API.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.records import ToolCall, Turn, Usage


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """Result of `Conversation.send_message`: the turn's last text, its reasoning, tool calls and usage."""

    content: str
    turn_index: int
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()


def answer_of(end: TurnEnd | None, turn: Turn) -> Answer:
    """Return the answer of a turn from its final event.

    Raises:
        RagforgeError: The turn failed or was cancelled.
    """
    if isinstance(end, TurnFailed):
        raise RagforgeError(end.error.what, todo=end.error.todo, kept=end.error.kept, kind=end.error.kind)
    if not isinstance(end, TurnCompleted):
        raise RagforgeError("The turn was cancelled.", kept="The partial answer is stored.", kind="cancelled")
    replies = [message for message in turn.messages if message.role == "assistant"]
    return Answer(
        content=end.text,
        turn_index=end.turn_index,
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning),
        tool_calls=[call for reply in replies for call in reply.tool_calls],
        usage=end.usage,
    )
