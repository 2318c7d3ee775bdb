"""Assembly of a provider's chunks: text as it arrives, tool calls once they are complete, usage at the end.

Separate from the client because providers split tool calls in different ways, and this can be tested without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from ragforge_tui.llm.parts import ReasoningPart, TextPart, ToolRequest
from ragforge_tui.llm.thinking import ThoughtSplitter


class _Call:
    """Tool call whose pieces are still arriving."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""

    def is_another(self, call_id: str, name: str) -> bool:
        """Return whether a delta with this id and name starts another call, although its index is this call's.

        Some servers give every parallel call the index 0.
        """
        if call_id and self.id:
            return call_id != self.id
        if not name or not self.name:
            return False
        return name != self.name or _is_whole(self.arguments)


class Assembler:
    """Collector of the chunks of one answer, in OpenAI's format.

    Attributes:
        finish_reason: The provider's reason for the end, empty until it arrives.
        usage: The provider's own token counts, None if it sent none.
        answered: Whether any text or tool call arrived.
    """

    def __init__(self) -> None:
        self.finish_reason = ""
        self.usage: Any = None
        self.answered = False
        self._thoughts = ThoughtSplitter()
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def feed(self, chunk: Any) -> Iterator[TextPart | ReasoningPart]:
        """Add a chunk and yield the parts that can be shown at once."""
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
        """Yield the text held back, once no more chunks arrive."""
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
        """Return the tool calls in the order they started; a missing id is generated."""
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
