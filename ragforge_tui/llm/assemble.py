"""Assembly of a provider's chunks: text as it arrives, tool calls once they are complete, usage at the end.

Separate from the client because providers split tool calls in different ways, and this can be tested without one. Small
models behind OpenAI-compatible servers write their reasoning as ``<think>…</think>`` at the start of the answer instead
of using a field of its own; it is separated here too, wherever the text is split into chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import msgspec

from ragforge_tui.llm.base import ReasoningPart, TextPart, ToolRequest
from ragforge_tui.shared.json_text import decode_json

_OPEN, _CLOSE = "<think>", "</think>"
_BLOCK_FIELDS = ("thinking_blocks", "reasoning_details", "reasoning_items")
"""Structured reasoning of a reply: Anthropic's, OpenRouter's, and that of OpenAI models LiteLLM asks by responses."""
_BLOCK_TEXTS = {"thinking": "thinking", "reasoning.text": "text", "reasoning.summary": "summary"}
"""Field that holds the text of a block, by its type; blocks of other types arrive whole."""
_CALL_FIELDS = ("provider_specific_fields", "extra_content")
"""Fields of a call that hold Gemini's signature: in LiteLLM, and at Google's OpenAI-compatible address."""


class _Call:
    """Tool call whose pieces are still arriving."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.fields: dict[str, Any] = {}

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
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._blocks: dict[str, list[dict[str, Any]]] = {}
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
            for field in _BLOCK_FIELDS:
                for block in getattr(delta, field, None) or []:
                    _add_block(self._blocks.setdefault(field, []), dict(block))
            if reasoning := _reasoning(delta):
                self._reasoning.append(reasoning)
                yield ReasoningPart(reasoning)
            if content := getattr(delta, "content", None):
                self.answered = True
                self._text.append(str(content))
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
        call.fields |= {field: value for field in _CALL_FIELDS if (value := getattr(piece, field, None))}

    def requests(self) -> list[ToolRequest]:
        """Return the tool calls in the order they started; a missing id is generated."""
        return [
            ToolRequest(id=call.id or f"call_{uuid4().hex[:24]}", name=call.name, arguments=call.arguments)
            for call in self._calls
            if call.name
        ]

    def state(self) -> dict[str, Any] | None:
        """Return what the provider expects back with a reply that made calls; None if nothing.

        ``message`` and ``calls`` are fields of the reply and of each of its calls, as they arrived. Plain reasoning is
        left out next to blocks and signatures, which carry it.
        """
        calls = [call.fields for call in self._calls if call.name]
        message: dict[str, Any] = {field: blocks for field, blocks in self._blocks.items() if blocks}
        if self._reasoning and not message and not any(calls):
            message["reasoning_content"] = "".join(self._reasoning)
        if self._thoughts.found:
            # MiniMax M2 and servers that do not parse reasoning: it is part of the text.
            message["content"] = "".join(self._text)
        return {"message": message, "calls": calls} if calls and (message or any(calls)) else None


def _add_block(blocks: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of structured reasoning; a text arrives in pieces, its signature with the last one."""
    last = blocks[-1] if blocks else {}
    text = _BLOCK_TEXTS.get(piece.get("type", ""))
    same = all(last.get(key) == piece.get(key) for key in ("type", "index"))
    if text is None or not same or last.get("signature"):
        blocks.append(piece)
        return
    joined = (last.get(text) or "") + (piece.get(text) or "")
    last |= {key: value for key, value in piece.items() if value is not None} | {text: joined}


def _reasoning(delta: Any) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        value = getattr(delta, name, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _is_whole(arguments: str) -> bool:
    try:
        decode_json(arguments)
    except msgspec.DecodeError:
        return False
    return True


class ThoughtSplitter:
    """Splitter of one answer's text, fed in pieces. Tags count only at its very start: later on they are text."""

    def __init__(self) -> None:
        self._held = ""
        self._place = "start"
        self.found = False
        """Whether there was any thought."""

    def feed(self, text: str) -> Iterator[TextPart | ReasoningPart]:
        """Yield the parts that can be shown now; text that may turn out to be a tag is held back."""
        self._held += text
        if self._place == "start":
            self._begin()
        if self._place == "thought":
            yield from self._think()
        if self._place == "gap":
            self._held = self._held.lstrip()
            self._place = "text" if self._held else "gap"
        if self._place == "text" and self._held:
            yield TextPart(self._held)
            self._held = ""

    def rest(self) -> Iterator[TextPart | ReasoningPart]:
        """Yield the text held back, once no more arrives."""
        if self._held and self._place != "gap":
            yield ReasoningPart(self._held) if self._place == "thought" else TextPart(self._held)
        self._held = ""

    def _begin(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPEN):
            self._held = begun.removeprefix(_OPEN)
            self._place = "thought"
        elif not _OPEN.startswith(begun):
            self._place = "text"

    def _think(self) -> Iterator[ReasoningPart]:
        thought, closed, after = self._held.partition(_CLOSE)
        if closed:
            self._held, self._place = after, "gap"
        else:
            count = _partial_close(thought)
            self._held, thought = thought[len(thought) - count :], thought[: len(thought) - count]
        # White space around the thought is layout; so is a line end that arrives with the closing tag.
        thought = thought if self.found else thought.lstrip()
        thought = thought.rstrip() if closed else thought
        if thought:
            self.found = True
            yield ReasoningPart(thought)


def _partial_close(text: str) -> int:
    """Return how many characters at the end may be the start of the closing tag."""
    return next((n for n in range(min(len(_CLOSE) - 1, len(text)), 0, -1) if text.endswith(_CLOSE[:n])), 0)
