"""The answer of a turn, as a program gets it."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.records import ContextRecord, ToolCall, Turn, Usage


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """Result of `Conversation.send_message`.

    Attributes:
        content: The turn's last text.
        turn_index: The turn's place in the conversation; while the graph is unreachable a guess, which `TurnsMoved`
            corrects.
        reasoning: The model's reasoning before its replies.
        tool_calls: All calls of the turn with their results.
        context_used: What the request held before the turn's own messages: sections, items with their sources, tokens.
    """

    content: str
    turn_index: int
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()
    context_used: ContextRecord | None = None


def answer_of(end: TurnEnd | None, turn: Turn, sent: ContextRecord | None) -> Answer:
    """Return the answer of a turn from its final event.

    Args:
        sent: Context of the turn's requests, None if it is not known.

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
        turn_index=turn.turn_index,
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning),
        tool_calls=[call for reply in replies for call in reply.tool_calls],
        usage=end.usage,
        context_used=sent,
    )
