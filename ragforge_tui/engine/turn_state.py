"""State of stored turns: answered by another process, interrupted, and the agent's plan."""

from __future__ import annotations

import msgspec

from ragforge_tui.graph import writer_alive, writer_id
from ragforge_tui.shared.records import Message, Todo, Turn, now
from ragforge_tui.shared.tool_calls import tool_info


class _Todos(msgspec.Struct):
    todos: list[Todo] = []


def _last(turns: list[Turn]) -> Message | None:
    messages = [message for turn in turns[-1:] for message in turn.messages if message.state != "superseded"]
    return messages[-1] if messages else None


def _unanswered(message: Message) -> bool:
    """Return whether a turn that ends with this message is unfinished: a question, or calls without a reply."""
    if message.role == "user":
        return True
    if message.role == "system":
        # A turn that the user runs without the model waits for its result, but never for an answer.
        return any(call.result is None for call in message.tool_calls)
    return message.state == "streaming" or (message.state == "complete" and bool(message.tool_calls))


def foreign_active_turn(turns: list[Turn]) -> int | None:
    """Return the index of the last turn if a live process other than this one is answering it."""
    last = _last(turns)
    if last is None or not _unanswered(last) or not last.writer or last.writer == writer_id():
        return None
    return last.turn_index if writer_alive(last.writer, last.lease_until, now()) else None


def answered_elsewhere(turn: Turn) -> bool:
    """Return whether a live process is answering a turn that was not started here."""
    last = _last([turn])
    if last is None or not _unanswered(last) or not last.writer:
        return False
    return writer_alive(last.writer, last.lease_until, now())


def interrupted_turn(turns: list[Turn]) -> int | None:
    """Return the index of the last turn if it ended without a complete answer."""
    last = _last(turns)
    if last is None or last.role == "system" or last.doing:
        return None
    return last.turn_index if _unanswered(last) or last.state in ("interrupted", "failed") else None


def current_todos(turns: list[Turn]) -> list[Todo]:
    """Return the agent's plan as of the last successful `update_todos`."""
    for turn in reversed(turns):
        for message in reversed(turn.messages):
            for call in reversed(message.tool_calls):
                if tool_info(call.tool_name).result == "plan" and call.success and call.result is not None:
                    return msgspec.json.decode(call.result.result, type=_Todos).todos
    return []
