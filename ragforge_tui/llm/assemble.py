"""Puts a provider's chunks together: text as it comes, tool calls once they are whole, usage at the end.

Apart from the client because providers differ in how they cut tool calls, and this can be tested without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from ragforge_tui.llm.parts import ReasoningPart, TextPart, ToolRequest
from ragforge_tui.llm.thinking import ThoughtSplitter


class _Call:
    """A tool call under way."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""

    def is_another(self, call_id: str, name: str) -> bool:
        """Whether a delta with this id and name begins another call, though it claims to be of this one.

        Some servers give every parallel call the index 0.
        """
        if call_id and self.id:
            return call_id != self.id
        if not name or not self.name:
            return False
        return name != self.name or _is_whole(self.arguments)


class Assembler:
    """Takes chunks in OpenAI's format, one answer each.

    Attributes:
        finish_reason: What the provider said at the end, empty before.
        usage: The provider's own token counts, None when it gave none.
        answered: Whether there was any text or tool call.
    """

    def __init__(self) -> None:
        self.finish_reason = ""
        self.usage: Any = None
        self.answered = False
        self._thoughts = ThoughtSplitter()
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def feed(self, chunk: Any) -> Iterator[TextPart | ReasoningPart]:
        """Take a chunk in; gives what can be shown at once."""
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self.usage = usage
        for choice in getattr(chunk, "choices", None) or []:
            if getattr(choice, "finish_reason", None):
                self.finish_reason = str(choice.finish_reason)
            delta = getattr(choice, "delta", None)
            if delta is None:
                continue
            if reasoning := _reasoning(delta):
                yield ReasoningPart(reasoning)
            if content := getattr(delta, "content", None):
                self.answered = True
                yield from self._thoughts.feed(str(content))
            for piece in getattr(delta, "tool_calls", None) or []:
                self.answered = True
                self._feed_call(piece)

    def rest(self) -> Iterator[TextPart | ReasoningPart]:
        """What is left to show when no more chunks come."""
        return self._thoughts.rest()

    def _feed_call(self, piece: Any) -> None:
        function = getattr(piece, "function", None)
        call_id = str(getattr(piece, "id", None) or "")
        name = str(getattr(function, "name", None) or "")
        index = getattr(piece, "index", None)
        if index is None:
            index = len(self._calls) if (call_id or name) else max(0, len(self._calls) - 1)
        call = self._by_index.get(index)
        if call is None or call.is_another(call_id, name):
            call = self._by_index[index] = _Call()
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += str(getattr(function, "arguments", None) or "")

    def requests(self) -> list[ToolRequest]:
        """The tool calls, in the order they began; a missing id is made up."""
        return [
            ToolRequest(id=call.id or f"call_{uuid4().hex[:24]}", name=call.name, arguments=call.arguments)
            for call in self._calls
            if call.name
        ]


def _reasoning(delta: Any) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        value = getattr(delta, name, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _is_whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True
