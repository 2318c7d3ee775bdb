"""Assembly of a provider's chunks: text as it arrives, tool calls once they are complete, usage at the end.

Separate from the client because providers split tool calls in different ways, and this can be tested without one.
Chunks are a server's own events or LiteLLM's objects. What a server left unparsed in the text is read by `written`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import msgspec

from ragforge_tui.llm.base import ReasoningPart, TextPart, ThoughtEnded, ToolRequest
from ragforge_tui.llm.forms import called_name
from ragforge_tui.llm.written import TextReader, read_calls
from ragforge_tui.shared.json_text import decode_json

_ENDS = {
    "stop": (
        "stop",
        "end",
        "end_turn",
        "eos",
        "eos_token",
        "stop_sequence",
        "complete",
        "completed",
        "done",
        "finished",
    ),
    "tool_calls": ("tool_calls", "tool_call", "tool_use", "function_call", "function_calls"),
    "length": (
        "length",
        "max_tokens",
        "max_output_tokens",
        "max_length",
        "model_length",
        "model_context_window_exceeded",
    ),
    "content_filter": (
        *("content_filter", "content_filtered", "safety", "recitation", "refusal", "sensitive", "blocklist"),
        *("prohibited_content", "spii", "image_safety", "guardrail_intervened"),
    ),
}
_REASONS = {word: reason for reason, words in _ENDS.items() for word in words}
"""Reasons for the end by the providers' words for them; any other word marks an answer as cut short."""
_TEXTS = ("text", "content", "thinking", "reasoning", "reasoning_content", "summary", "value", "refusal")
"""Fields that hold the text of a part of a content."""
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

    def is_another(self, call_id: str, name: str, tools: Mapping[str, Any]) -> bool:
        """Return whether a delta with this id and name starts another call, although its index is this call's.

        Some servers give every parallel call the index 0, and some send a name in pieces.
        """
        if call_id and self.id:
            return call_id != self.id
        if not name or not self.name or self.is_rest(name, tools):
            return False
        return name != self.name or _is_whole(self.arguments)

    def is_rest(self, name: str, tools: Mapping[str, Any]) -> bool:
        """Return whether a name is the rest of this call's."""
        return not self.arguments and self.name not in tools and self.name + name in tools


class Assembler:
    """Collector of the chunks of one answer, in OpenAI's format.

    Args:
        tools: Tools that were offered, in OpenAI's format.

    Attributes:
        finish_reason: The provider's reason for the end, see `Finished.reason`; empty until it arrives.
        usage: The provider's own token counts, None if it sent none.
        answered: Whether any text or tool call arrived.
    """

    def __init__(self, tools: Iterable[dict[str, Any]] = ()) -> None:
        self.finish_reason = ""
        self.usage: Any = None
        self.answered = False
        functions = [tool["function"] for tool in tools]
        self._tools = {each["name"]: each.get("parameters") or {} for each in functions}
        self._reader = TextReader(self._tools)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._blocks: dict[str, list[dict[str, Any]]] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._thoughts: list[str] = []
        self._said = False
        self._choice: Any = None
        self._refused = False

    def feed(self, chunk: Any) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        """Add a chunk and yield the parts that can be shown at once."""
        usage = _field(chunk, "usage")
        if usage is not None:
            self.usage = usage
        for choice in _field(chunk, "choices") or []:
            self._choice = _field(choice, "index") if self._choice is None else self._choice
            if _field(choice, "index") not in (None, self._choice):
                continue
            self.ended(_reason(_field(choice, "finish_reason")))
            delta = _field(choice, "delta") or _field(choice, "message") or {"content": _field(choice, "text")}
            yield from self._feed_delta(delta)

    def ended(self, reason: str) -> None:
        """Take in the provider's own word for the end; empty changes nothing."""
        word = reason.strip().lower().replace(" ", "_").replace("-", "_")
        if word and word != "null":
            self.finish_reason = _REASONS.get(word, reason)

    def _feed_delta(self, delta: Any) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        for field in _BLOCK_FIELDS:
            for block in _field(delta, field) or []:
                _add_block(self._blocks.setdefault(field, []), dict(block))
        fields = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
        pieces = [("thought", next((text for field in fields if (text := _words(_field(delta, field)))), ""))]
        pieces += [("refusal", _words(_field(delta, "refusal"))), *_pieces(_field(delta, "content"))]
        for kind, text in pieces:
            if text and kind == "thought":
                self._reasoning.append(text)
                self._thoughts.append(text)
                yield ReasoningPart(text)
            elif text:
                self.answered = True
                self._refused = self._refused or kind == "refusal"
                self._text.append(text)
                yield from self._noted(self._reader.feed(text))
        legacy = _field(delta, "function_call")
        for piece in _field(delta, "tool_calls") or ([{"index": 0, "function": legacy}] if legacy else []):
            self.answered = True
            self._feed_call(piece)

    def rest(self) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        """Yield the text held back, once no more chunks arrive, and take in the calls written as text."""
        yield from self._noted(self._reader.rest())
        calls = self._reader.calls
        thought = "".join(self._thoughts).strip()
        if not (self._said or self._calls or calls) and thought and self.finish_reason == "stop":
            # The answer is there, in the wrong field or without the tag that ends its thought.
            start = thought.rfind("\n", 0, max(thought.rfind("{"), 0)) + 1
            found = read_calls(thought[start:], self._tools) or read_calls(thought, self._tools)
            calls = found[0] if found else []
            if not calls:
                yield TextPart(thought)
        for name, arguments in calls if self.finish_reason in ("stop", "tool_calls") else ():
            call = _Call()
            call.name, call.arguments = name, arguments
            self._calls.append(call)
        if self._refused and self.finish_reason == "stop":
            self.finish_reason = "refusal"

    def _noted(self, parts: Iterator[TextPart | ReasoningPart | ThoughtEnded]) -> Iterator[Any]:
        """Note which parts were text and which reasoning."""
        for part in parts:
            match part:
                case ReasoningPart(text=text):
                    self._thoughts.append(text)
                case ThoughtEnded():
                    self._said = False
                case TextPart(text=text):
                    self._said = self._said or bool(text.strip())
            yield part

    def _feed_call(self, piece: Any) -> None:
        function = _field(piece, "function")
        call_id = str(_field(piece, "id") or "")
        name = str(_field(function, "name") or "")
        index = _field(piece, "index")
        if index is None:
            index = len(self._calls) if (call_id or name) else max(0, len(self._calls) - 1)
        call = self._by_index.get(index)
        if call is None or call.is_another(call_id, name, self._tools):
            call = self._by_index[index] = _Call()
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name + name if call.name and call.is_rest(name, self._tools) else call.name or name
        arguments = _field(function, "arguments") or ""
        call.arguments += arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        call.fields |= {field: value for field in _CALL_FIELDS if (value := _field(piece, field))}

    def requests(self) -> list[ToolRequest]:
        """Return the tool calls in the order they started; a missing id is generated."""
        return [
            ToolRequest(
                id=call.id or f"call_{uuid4().hex[:24]}",
                name=called_name(call.name, self._tools),
                arguments=call.arguments,
            )
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
        if self._reader.thought and not self._reader.calls:
            # MiniMax M2 and servers that do not parse reasoning: it is part of the text.
            message["content"] = "".join(self._text)
        return {"message": message, "calls": calls} if calls and (message or any(calls)) else None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _reason(value: Any) -> str:
    """Return a reason for the end, also of an object that holds it."""
    if isinstance(value, dict):
        value = next((each for each in value.values() if isinstance(each, str)), "")
    return str(value or "")


def _pieces(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a content, each with its kind: a text, an object, or a list of them."""
    if isinstance(content, list):
        for each in content:
            yield from _pieces(each)
        return
    kind = str(_field(content, "type") or "") if isinstance(content, dict) else ""
    thought = "think" in kind or "reason" in kind
    yield ("thought" if thought else "refusal" if kind == "refusal" else "text"), _words(content)


def _words(value: Any) -> str:
    """Return the text in a value: itself, or that of its parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_words, value))
    if not isinstance(value, dict):
        return ""
    return next((text for name in _TEXTS if (text := _words(value.get(name)))), "")


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


def _is_whole(arguments: str) -> bool:
    try:
        decode_json(arguments)
    except msgspec.DecodeError:
        return False
    return True
