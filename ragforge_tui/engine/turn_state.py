"""How a stored turn stands: still being answered by another process, left without an answer, its plan."""

from __future__ import annotations

import msgspec

from ragforge_tui.graph import writer_alive, writer_id
from ragforge_tui.models import Message, Todo, Turn, now


class _Todos(msgspec.Struct):
    todos: list[Todo] = []


def _last(turns: list[Turn]) -> Message | None:
    messages = [message for turn in turns[-1:] for message in turn.messages if message.state != "superseded"]
    return messages[-1] if messages else None


def _unanswered(message: Message) -> bool:
    """Whether the turn that ends with this message waits for more: a question, or calls whose results nobody read."""
    if message.role == "user":
        return True
    if message.role == "system":
        # What the person did without the model waits for its end, but never for an answer.
        return any(call.result is None for call in message.tool_calls)
    return message.state == "streaming" or (message.state == "complete" and bool(message.tool_calls))


def foreign_active_turn(turns: list[Turn]) -> int | None:
    """Index of the last turn when a living process other than this one is answering it."""
    last = _last(turns)
    if last is None or not _unanswered(last) or not last.writer or last.writer == writer_id():
        return None
    return last.turn_index if writer_alive(last.writer, last.lease_until, now()) else None


def answered_elsewhere(turn: Turn) -> bool:
    """Whether a living process is answering a turn that was not begun here."""
    last = _last([turn])
    if last is None or not _unanswered(last) or not last.writer:
        return False
    return writer_alive(last.writer, last.lease_until, now())


def interrupted_turn(turns: list[Turn]) -> int | None:
    """Index of the last turn when it ended without a whole answer."""
    last = _last(turns)
    if last is None or last.role == "system" or last.doing:
        return None
    return last.turn_index if _unanswered(last) or last.state in ("interrupted", "failed") else None


def current_todos(turns: list[Turn]) -> list[Todo]:
    """The agent's plan as the last successful `update_todos` left it."""
    for turn in reversed(turns):
        for message in reversed(turn.messages):
            for call in reversed(message.tool_calls):
                if call.tool_name == "update_todos" and call.success and call.result is not None:
                    return msgspec.json.decode(call.result.result, type=_Todos).todos
    return []
