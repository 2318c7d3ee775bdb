"""A model that plays a script in this process: no server, no LiteLLM.

What providers and LiteLLM do is the subject of `tests/llm` and of the tests marked `http`; all others need a model that
answers as it is told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from ragforge_tui.llm import ChatModel, ModelChoice, OfflineAssistant
from ragforge_tui.llm.base import (
    DEFAULT_CONTEXT_WINDOW,
    Finished,
    Messages,
    ModelPart,
    Progress,
    ReasoningPart,
    TextPart,
    ToolRequest,
)
from ragforge_tui.llm.forms import formed
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import Usage
from ragforge_tui.shared.redaction import mask_value
from tests.support.chat_templates import refusal
from tests.support.model_script import Recorded, Script, deltas, usage_of


class ScriptedModel:
    """A `ChatModel` that takes its replies from a script.

    Args:
        live: Returns the settings as they are now.
    """

    offline = False
    takes_reasoning = True
    destination = server = "this machine"

    def __init__(self, script: Script, name: str, settings: ModelSettings, live: Callable[[], ModelSettings]) -> None:
        self.name = name
        self._script = script
        self._settings = settings
        self._live = live

    @property
    def context_window(self) -> int:
        """See `ChatModel.context_window`."""
        return self._settings.context_window or DEFAULT_CONTEXT_WINDOW

    @property
    def takes_images(self) -> bool:
        """See `ChatModel.takes_images`."""
        return self._live().images != "no"

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """See `ChatModel.stream`."""
        request = self._recorded(messages, tools)
        step = self._script.take(request.body)
        assert not step.raw, "only a server can do this: mark the test http"
        failed = step.status != 200 or step.drop
        sent = [] if failed else deltas(step)
        try:
            for number, delta in enumerate(sent):
                await self._script.pause(step, number, len(sent))
                yield _part(delta)
            if step.stall:
                await asyncio.Event().wait()
        except (GeneratorExit, asyncio.CancelledError):
            request.closed = True
            raise
        if failed or step.cut:
            raise ModelError(f"The model failed: {step.message}", kind="provider")
        for number, call in enumerate(step.tool_calls):
            written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            made_id = f"call_{number}_{call.name}" if call.id is None else call.id
            yield ToolRequest(id=made_id, name=call.name, arguments=written)
        reason = step.finish or ("tool_calls" if step.tool_calls else "stop")
        yield Finished(reason=reason, usage=_usage(usage_of(step, request.body)))

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """See `ChatModel.complete`."""
        parts = [part async for part in self.stream(messages, tools=None)]
        usage = next(part.usage for part in parts if isinstance(part, Finished))
        return "".join(part.text for part in parts if isinstance(part, TextPart)), usage

    def _recorded(self, messages: Messages, tools: list[dict[str, Any]] | None) -> Recorded:
        """Note a request in the form in which a provider would receive it."""
        # The system message holds the persona byte for byte.
        masked = [message if message["role"] == "system" else mask_value(message) for message in messages]
        body: dict[str, Any] = {
            "model": self.name.removeprefix("openai/"),
            "messages": formed(masked, source=self.name, forms=set()),
        }
        body |= {"tools": tools} if tools else {}
        raw = json.dumps(body).encode()
        # What the program changes later must not change what was sent.
        request = Recorded(method="POST", path="/chat/completions", headers={}, raw=raw, body=json.loads(raw))
        self._script.requests.append(request)
        if error := refusal(request.body):
            self._script.refused.append(error)
        return request


def model_of(script: Script, **settings: Any) -> ScriptedModel:
    """Return a model of its own, with these settings."""
    chosen = ModelSettings(**settings)
    return ScriptedModel(script, "openai/scripted", chosen, lambda: chosen)


def make_scripted(script: Script) -> Callable[..., ChatModel]:
    """Return a `make_model` whose models, offline ones aside, all take their replies from one script."""

    def make(
        choice: ModelChoice, settings: ModelSettings, live: Callable[[], ModelSettings], stated: object = None
    ) -> ChatModel:
        return OfflineAssistant() if choice.offline else ScriptedModel(script, choice.name, settings, live)

    return make


def _part(delta: dict[str, Any]) -> ModelPart:
    if "content" in delta:
        return TextPart(delta["content"])
    return ReasoningPart(delta["reasoning_content"]) if "reasoning_content" in delta else Progress()


def _usage(counts: dict[str, Any]) -> Usage:
    read, written = counts.get("prompt_tokens_details") or {}, counts.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=counts["prompt_tokens"],
        output_tokens=counts["completion_tokens"],
        cached_tokens=read.get("cached_tokens", 0),
        cost_usd=counts.get("cost_usd"),
        reasoning_tokens=written.get("reasoning_tokens", 0),
    )
