"""What asking comes to: an answer, or the error that stands for it.

Made by `Conversation.send_message` from the end of a turn. Part of the public Python API.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.models import ToolCall, Turn, Usage


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """What `Conversation.send_message` returns: the turn's last text, with all it took to get there."""

    content: str
    turn_index: int
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()


def answer_of(end: TurnEnd | None, turn: Turn) -> Answer:
    """The answer of a turn that ended so.

    Raises:
        RagforgeError: It failed or was cancelled.
    """
    if isinstance(end, TurnFailed):
        raise RagforgeError(end.error.what, todo=end.error.todo, kept=end.error.kept, kind=end.error.kind)
    if not isinstance(end, TurnCompleted):
        raise RagforgeError("The turn was cancelled.", kept="What had come is stored.", kind="cancelled")
    replies = [message for message in turn.messages if message.role == "assistant"]
    return Answer(
        content=end.text,
        turn_index=end.turn_index,
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning),
        tool_calls=[call for reply in replies for call in reply.tool_calls],
        usage=end.usage,
    )
