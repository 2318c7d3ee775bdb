"""Functions of a program as models: one that answers messages, and one that makes vectors.

Used by `ConversationAgent(model=…, embedder=…)`, so that a program with a client of its own needs no class for it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

import numpy as np

from ragforge_tui.llm.assemble import Assembler
from ragforge_tui.llm.base import (
    DEFAULT_CONTEXT_WINDOW,
    ChatModel,
    Finished,
    Messages,
    ModelPart,
    ReasoningPart,
    TextPart,
    ThoughtEnded,
    ToolRequest,
)
from ragforge_tui.llm.embeddings import Embedder, Vectors, unit_rows
from ragforge_tui.llm.forms import formed
from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.records import Usage
from ragforge_tui.shared.redaction import mask_value

FunctionReply: TypeAlias = str | Mapping[str, Any]
"""A text, or a message in OpenAI's format: `content`, `reasoning_content` and `tool_calls`, each optional."""
ModelFunction: TypeAlias = Callable[..., FunctionReply | Awaitable[FunctionReply] | AsyncIterable[str]]
EmbedFunction: TypeAlias = Callable[[list[str]], Any]


class FunctionModel:
    """A function as a `ChatModel`.

    It receives the messages in OpenAI's format and, if it has a parameter `tools`, the tools in the same format; None
    for titles and summaries. It may be sync, which runs in a thread, async, or an async generator of pieces of text.

    Args:
        function: Returns a text, or a message in OpenAI's format with `content`, `reasoning_content` and `tool_calls`.
        name: Name shown and stored with its replies; empty for the function's own.
        context_window: Tokens the model can read.
        destination: Where the messages go, as shown to the user.

    Examples:
        ```python
        from ragforge_tui import ConversationAgent, FunctionModel

        def shout(messages: list[dict[str, object]]) -> str:
            return str(messages[-1]["content"]).upper()

        async with ConversationAgent(model=FunctionModel(shout, name="shout", context_window=8_000)) as agent:
            conversation = await agent.create_conversation()
            answer = await conversation.send_message("Is anybody there?")

        assert "IS ANYBODY THERE?" in answer.content
        ```
    """

    offline = False
    takes_reasoning = False
    takes_images = False

    def __init__(
        self,
        function: ModelFunction,
        *,
        name: str = "",
        context_window: int = DEFAULT_CONTEXT_WINDOW,
        destination: str = "a function of the program",
    ) -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.context_window = context_window
        self.destination = self.server = destination
        self._function: Callable[..., Any] = function
        self._takes_tools = "tools" in inspect.signature(function).parameters

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """See `ChatModel.stream`."""
        sent = await asyncio.to_thread(self._formed, messages)
        written: list[str] = []
        reason = "stop"
        try:
            async with aclosing(self._parts(sent, tools)) as parts:
                async for part in parts:
                    if isinstance(part, ToolRequest):
                        reason = "tool_calls"
                    elif isinstance(part, TextPart | ReasoningPart):
                        written.append(part.text)
                    yield part
        except RagforgeError:
            raise
        except Exception as error:
            raise ModelError(
                f"The model {self.name} failed: {type(error).__name__}: {error}", kind="provider"
            ) from error
        yield Finished(reason=reason, usage=await asyncio.to_thread(_usage, sent, "".join(written)))

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """See `ChatModel.complete`."""
        text: list[str] = []
        usage = Usage()
        async with aclosing(self.stream(messages, tools=None)) as parts:
            async for part in parts:
                if isinstance(part, TextPart):
                    text.append(part.text)
                elif isinstance(part, ThoughtEnded):
                    text.clear()
                elif isinstance(part, Finished):
                    usage = part.usage
        return "".join(text), usage

    def _formed(self, messages: Messages) -> Messages:
        # The system message holds the persona byte for byte.
        masked = [message if message["role"] == "system" else mask_value(message) for message in messages]
        return formed(masked, source=self.name, forms=set())

    async def _parts(self, messages: Messages, tools: list[dict[str, Any]] | None) -> AsyncGenerator[ModelPart, None]:
        given: dict[str, Any] = {"tools": tools} if self._takes_tools else {}
        if inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function):
            reply: Any = self._function(messages, **given)
        else:
            reply = await asyncio.to_thread(self._function, messages, **given)
        assembler = Assembler(tools or ())
        if isinstance(reply, AsyncIterable):
            async for piece in reply:
                for part in assembler.feed({"choices": [{"delta": {"content": piece}}]}):
                    yield part
            reply = ""
        if inspect.isawaitable(reply):
            reply = await reply
        message = {"content": reply} if isinstance(reply, str) else reply
        if not isinstance(message, Mapping):
            raise TypeError(f"expected a text or a message with content and tool_calls, found {type(reply).__name__}")
        calls = [
            {"id": f"call_{number}", **call, "function": {"arguments": "{}", **call["function"]}}
            for number, call in enumerate(message.get("tool_calls") or ())
        ]
        whole = {"message": {**message, "tool_calls": calls}, "finish_reason": "stop"}
        for last in (*assembler.feed({"choices": [whole]}), *assembler.rest(), *assembler.requests()):
            yield last


class FunctionEmbedder:
    """A function as an `Embedder`; sync, which runs in a thread, or async.

    Args:
        function: Returns a vector for each text; they are scaled to unit length.
        name: Name that the graph records with the vectors: those of different models are never compared.
        dimension: Length of each vector.
    """

    def __init__(self, function: EmbedFunction, *, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension
        self._function = function

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        filled = [number for number, text in enumerate(texts) if text.strip()]
        if not filled:
            return vectors
        wanted = [texts[number] for number in filled]
        try:
            if inspect.iscoroutinefunction(self._function):
                made = await self._function(wanted)
            else:
                made = await asyncio.to_thread(self._function, wanted)
        except Exception as error:
            raise ModelError(
                f"The embedding model {self.name} failed: {type(error).__name__}: {error}", kind="provider"
            ) from error
        rows = unit_rows(made, self.dimension, self.name)
        if len(rows) != len(filled):
            raise ModelError(
                f"The embedding model {self.name} returned {len(rows)} vectors for {len(filled)} texts.",
                kind="provider",
            )
        vectors[filled] = rows
        return vectors


def model_of(given: ChatModel | ModelFunction) -> ChatModel:
    """Return a model as it is, or the model made of a function.

    Raises:
        TypeError: It is neither.
    """
    if callable(getattr(given, "stream", None)) and callable(getattr(given, "complete", None)):
        model: ChatModel = given  # type: ignore[assignment]
        return model
    if callable(given):
        return FunctionModel(given)
    raise TypeError(f"model must be a name, a ChatModel or a function, not {type(given).__name__}.")


def check_embedder(given: Embedder) -> Embedder:
    """Return an embedder as it is.

    Raises:
        TypeError: It lacks a name, a dimension or the method `embed`.
    """
    if (
        isinstance(getattr(given, "name", None), str)
        and isinstance(getattr(given, "dimension", None), int)
        and callable(getattr(given, "embed", None))
    ):
        return given
    raise TypeError(
        "embedder must have a name, a dimension and a method embed(texts): wrap a function in FunctionEmbedder."
    )


def _usage(messages: Messages, written: str) -> Usage:
    """Return counts by our own tokenizer; a function has no price that is known."""
    read = sum(count_tokens(str(message.get("content") or "")) for message in messages)
    return Usage(input_tokens=read, output_tokens=count_tokens(written))
