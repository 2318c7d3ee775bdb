"""Any LiteLLM model as a `ChatModel`: streaming, retries the user can see, errors in sentences.

Used by the conversation through `ChatModel`. Messages (`forms`), chunks (`assemble`), errors (`provider_errors`) and
loading (`litellm_loader`) have modules of their own, so this one holds only the course of one request.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ragforge_tui.llm.assemble import Assembler
from ragforge_tui.llm.base import (
    DEFAULT_CONTEXT_WINDOW,
    IMAGES,
    KEYLESS,
    PROVIDER_STATE,
    THIS_MACHINE,
    Finished,
    KnownServers,
    LeftOut,
    Messages,
    ModelChoice,
    ModelPart,
    Progress,
    Retrying,
    TextPart,
    ThoughtEnded,
)
from ragforge_tui.llm.forms import NO_IMAGES, NO_STATE, formed, request_in_forms
from ragforge_tui.llm.litellm_loader import load_litellm, loaded_litellm, provide_keys
from ragforge_tui.llm.provider_errors import cut_off, never_began, no_provider, stalled, to_model_error, unfinished
from ragforge_tui.llm.refusals import Refusals, WayOut
from ragforge_tui.settings.schema import LIVE_MODEL_SETTINGS, ModelSettings
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import Usage
from ragforge_tui.shared.redaction import mask_value

logger = logging.getLogger(__name__)

LONGEST_WAIT = 120.0
"""Seconds; if a provider asks for a longer wait, the error is shown and no retry is sent."""
RETRIES_BEFORE_FALLBACK, LONGEST_BEFORE_FALLBACK = 1, 5.0
"""Retries, and seconds to wait for one, where `model.fallbacks` names another model that may answer at once."""
_LONGEST_BACKOFF = 30.0
FIRST_TOKEN_TIMEOUT = 600.0
"""Seconds a remote server may take to start its answer; models that hide their reasoning take minutes."""
_CONNECT_TIMEOUT = 30.0
_NO_REASON = "Stream ended before a finish_reason was received"
"""Error of LiteLLM from 1.110 on for an answer without a reason, for which 1.106 invents one."""
_NO_TIMEOUT = 1e7
"""Seconds; at most providers LiteLLM reads None as its own limit of 600 s."""


class _Clock:
    """Time limit for the next chunk of an answer.

    Args:
        first: Seconds until the answer starts, None for no limit.
        token: Seconds between tokens after that.
    """

    def __init__(self, first: float | None, token: float) -> None:
        self.limit = first
        self.begun = False
        self._token = token
        self._ends = None if first is None else asyncio.get_running_loop().time() + first

    def begin(self) -> None:
        """Switch to the limit between tokens: the answer has started."""
        self.begun, self.limit, self._ends = True, self._token, None

    def deadline(self) -> asyncio.Timeout:
        """Limit the wait for the next chunk."""
        if self.begun:
            return asyncio.timeout(self._token)
        return asyncio.timeout_at(self._ends)


_OPENAI_API = ("openai/", "hosted_vllm/")
_TAKES_REASONING = ("deepseek/", "minimax/", "moonshot/", "zai/")
"""Providers whose API takes `reasoning_content` in past replies. Anthropic, Gemini and OpenAI take their own signed
blocks only, and only while a turn runs."""


class LiteLLMModel:
    """Model reached through LiteLLM.

    Args:
        choice: The model and its address.
        settings: Sampling, limits and timeouts of requests.
        live: Returns the current settings; those in `LIVE_MODEL_SETTINGS` replace the ones in `settings` at the
            start of each request, so that a change in a running chat applies from the next request.
        known: What is known of the model's server, and where to keep what is learned.
        backoff: Seconds before the first retry, doubled for each further one.
    """

    offline = False

    def __init__(
        self,
        choice: ModelChoice,
        settings: ModelSettings,
        *,
        live: Callable[[], ModelSettings] | None = None,
        known: KnownServers | None = None,
        backoff: float = 1.0,
    ) -> None:
        self.name = choice.name
        self.destination = choice.destination
        self._choice = choice
        self._settings = settings
        self._live = live
        self._known = known
        self._backoff = backoff
        self._source = f"{choice.name} {choice.api_base}"
        self._refusals = Refusals()
        if known is not None:
            self._refusals = Refusals(known.refused(self), lambda forms: known.refuse(self, forms))

    @property
    def server(self) -> str:
        """See `ChatModel.server`."""
        if self.destination != THIS_MACHINE or not self._choice.api_base:
            return self.destination
        return urlsplit(self._choice.api_base).netloc.rpartition("@")[2] or self.destination

    @property
    def context_window(self) -> int:
        """Tokens the model can read: from the settings, its server, or LiteLLM's table once that is loaded."""
        return self._known_window() or DEFAULT_CONTEXT_WINDOW

    @property
    def window_assumed(self) -> bool:
        """Whether nothing tells the model's window."""
        return self._known_window() is None

    def _known_window(self) -> int | None:
        if self._settings.context_window is not None:
            return self._settings.context_window
        if self._known is not None and (stated := self._known.stated(self)) is not None:
            return stated
        entry = self._table_entry()
        values = (entry.get(key) for key in ("max_input_tokens", "max_tokens"))
        return next((value for value in values if isinstance(value, int)), None)

    @property
    def takes_reasoning(self) -> bool:
        """See `ChatModel.takes_reasoning`: servers with the API of OpenAI, until one refuses, and known providers."""
        custom = bool(self._choice.api_base) and self.name.startswith(_OPENAI_API)
        return (custom or self.name.startswith(_TAKES_REASONING)) and NO_STATE not in self._refusals.forms

    @property
    def takes_images(self) -> bool:
        """See `ChatModel.takes_images`: as `model.images` and LiteLLM's table say, and until the server refuses one."""
        wanted = (self._live() if self._live is not None else self._settings).images
        refused = NO_IMAGES in self._refusals.forms
        if wanted != "auto" or refused:
            return wanted != "no" and not refused
        litellm = load_litellm()
        if entry := self._table_entry():
            return bool(entry.get("supports_vision"))
        custom = bool(self._choice.api_base)
        return custom and _litellm_name(litellm, self.name, custom=custom).startswith(_OPENAI_API)

    @property
    def takes_effort(self) -> bool:
        """Whether the model takes `reasoning_effort`, as LiteLLM's tables say once it is loaded."""
        if (litellm := loaded_litellm()) is None:
            return False
        name = _litellm_name(litellm, self.name, custom=bool(self._choice.api_base))
        try:
            model, provider, *_ = litellm.get_llm_provider(name)
            taken = litellm.get_supported_openai_params(model, custom_llm_provider=provider)
        except Exception as error:
            # A model that its tables do not know raises all kinds of errors.
            logger.info("No parameters known for %s: %s", self.name, type(error).__name__)
            return False
        return "reasoning_effort" in (taken or ())

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        async with aclosing(self._with_retries(messages, tools, cache_marks, None)) as parts:
            async for part in parts:
                yield part

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """See `ChatModel.complete`. Streamed as well, so that a stall is noticed."""
        text: list[str] = []
        usage = Usage()
        retries = 0
        async with aclosing(self._with_retries(messages, None, (), max_tokens)) as parts:
            async for part in parts:
                if isinstance(part, TextPart):
                    text.append(part.text)
                elif isinstance(part, ThoughtEnded):
                    text.clear()
                elif isinstance(part, Retrying):
                    retries = part.attempt
                elif isinstance(part, Finished):
                    usage = part.usage
        return "".join(text), msgspec.structs.replace(usage, retries=retries)

    async def _with_retries(
        self, messages: Messages, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int], max_tokens: int | None
    ) -> AsyncGenerator[ModelPart, None]:
        litellm = loaded_litellm() or await asyncio.to_thread(load_litellm)
        self._apply_settings()
        provide_keys(self._choice)
        messages = await asyncio.to_thread(_without_secrets, messages)
        way = WayOut(self._refusals)
        arguments = self._arguments(litellm, messages, tools, cache_marks, max_tokens, way.forms)
        attempt, retries = 1, self._settings.retries
        if self._settings.fallbacks:
            retries = min(retries, RETRIES_BEFORE_FALLBACK)
        while True:
            shown = accepted = False
            try:
                async with aclosing(self._attempt(litellm, arguments)) as parts:
                    async for part in parts:
                        if not accepted:
                            accepted = True
                            if refused := self._refusals.accepted(arguments, way):
                                yield LeftOut(f"The server of {self.name} refuses {refused}.")
                        shown = shown or not isinstance(part, Progress)
                        yield part
                return
            except ModelError as error:
                # A failure of the server may pass: its words count once it fails again.
                again = not error.transient or attempt > 1 or not retries
                if again and not shown and way.next(error, arguments):
                    arguments = self._arguments(litellm, messages, tools, cache_marks, max_tokens, way.forms)
                    logger.info("%s is asked in another form: %s", self.name, ", ".join(sorted(way.forms)))
                    continue
                if error.info.kind == "stall":
                    # The wait was long, and a new request discards what the server did meanwhile, such as reading the
                    # prompt. On this machine a retry is pointless; elsewhere a lost connection is worth one more.
                    retries = 0 if self.destination == THIS_MACHINE else min(retries, 1)
                # Once text was shown, a retry would show it twice: the user decides.
                wait = self._wait(error, attempt)
                if shown or wait is None or attempt > retries:
                    raise
                logger.info("Asking %s again in %.1f s: %s", self.name, wait, error.info.kind)
                reason, limited = error.info.what, error.info.kind == "rate_limit"
            yield Retrying(attempt=attempt, attempts=retries, wait_seconds=wait, reason=reason, limited=limited)
            await asyncio.sleep(wait)
            attempt += 1

    def _apply_settings(self) -> None:
        if self._live is not None:
            now = self._live()
            changed = {name: getattr(now, name) for name in LIVE_MODEL_SETTINGS}
            self._settings = msgspec.structs.replace(self._settings, **changed)

    def _first_token_timeout(self) -> float | None:
        """Return the seconds within which an answer has to start; None for no limit."""
        settings = self._settings
        if settings.first_token_timeout is not None:
            return settings.first_token_timeout
        # If the limit between two tokens exceeds the default for the first one, the provider is slow.
        return None if self.destination == THIS_MACHINE else max(FIRST_TOKEN_TIMEOUT, settings.token_timeout)

    def _wait(self, error: ModelError, attempt: int) -> float | None:
        """Return the seconds until the next attempt, None if a retry is pointless."""
        longest = LONGEST_BEFORE_FALLBACK if self._settings.fallbacks else LONGEST_WAIT
        if not error.transient or (error.retry_after or 0) > longest:
            return None
        backoff: float = min(_LONGEST_BACKOFF, self._backoff * 2.0 ** (attempt - 1)) * random.uniform(0.75, 1.25)
        return max(backoff, error.retry_after or 0.0)

    async def _attempt(self, litellm: Any, arguments: dict[str, Any]) -> AsyncGenerator[ModelPart, None]:
        assembler = Assembler(arguments.get("tools") or ())
        clock = _Clock(self._first_token_timeout(), self._settings.token_timeout)
        async with aclosing(self._chunks(litellm, arguments, assembler, clock)) as chunks:
            async for chunk in chunks:
                parts: list[ModelPart] = list(assembler.feed(chunk))
                if not parts and assembler.answered:
                    parts = [Progress()]
                if parts:
                    clock.begin()
                for part in parts:
                    yield part
        for part in assembler.rest():
            yield part
        if not assembler.finish_reason:
            raise unfinished(self._where()) if assembler.answered else cut_off(self._where())
        requests = assembler.requests()
        for request in requests:
            yield request
        reason = "tool_calls" if requests and assembler.finish_reason == "stop" else assembler.finish_reason
        state = assembler.state()
        yield Finished(
            reason=reason,
            usage=self._usage(litellm, assembler.usage),
            state=state and {"source": self._source, **state},
        )

    async def _chunks(
        self, litellm: Any, arguments: dict[str, Any], assembler: Assembler, clock: _Clock
    ) -> AsyncGenerator[Any, None]:
        """Yield the provider's chunks; the clock limits every wait for one, every error becomes a `ModelError`."""
        from ragforge_tui.llm.exchange import Exchange

        exchange = Exchange()
        response: Any = None
        try:
            with exchange.listening():
                response = await self._soon(litellm.acompletion(**arguments), clock)
            if "stream" not in arguments:
                yield response
                return
            chunks: AsyncIterator[Any] = aiter(response)
            while True:
                try:
                    chunk = await self._soon(anext(chunks), clock)
                except StopAsyncIteration:
                    for event in exchange.take():
                        yield event
                    if not exchange.read_here:
                        # LiteLLM invents a "stop" where the provider gave no reason: a server that died in the middle
                        # of its answer looks the same, unless the transfer was chunked. The reason of some providers,
                        # such as Gemini, is in the second field only.
                        fields = ("received_finish_reason", "intermittent_finish_reason")
                        if not any(getattr(response, field, "unknown") for field in fields):
                            assembler.finish_reason = ""
                        assembler.ended(exchange.finish_reason)
                    return
                if not exchange.read_here:
                    yield chunk
                for event in exchange.take():
                    yield event
        except (ModelError, GeneratorExit, asyncio.CancelledError):
            raise
        except Exception as error:
            if _NO_REASON in str(error):
                assembler.finish_reason = ""
                return
            failure = to_model_error(
                exchange.refusal or error,
                model=self.name,
                destination=self._where(),
                size=len(str(arguments["messages"])) + len(str(arguments.get("tools", ""))),
            )
            # If the answer had started, there was a connection.
            cut = response is not None and failure.info.kind == "no_network"
            raise (cut_off(self._where()) if cut else failure) from None
        finally:
            if hasattr(response, "aclose"):
                await response.aclose()

    async def _soon(self, awaitable: Any, clock: _Clock) -> Any:
        deadline = clock.deadline()
        try:
            async with deadline:
                return await awaitable
        except TimeoutError:
            if not deadline.expired():
                raise
            raise (stalled if clock.begun else never_began)(self._where(), clock.limit) from None

    def _arguments(
        self,
        litellm: Any,
        messages: Messages,
        tools: list[dict[str, Any]] | None,
        cache_marks: Sequence[int],
        max_tokens: int | None,
        forms: set[str],
    ) -> dict[str, Any]:
        settings, choice = self._settings, self._choice
        model = _litellm_name(litellm, choice.name, custom=bool(choice.api_base))
        caches = cache_marks and ("anthropic/" in model or "claude" in model)
        messages = formed(
            messages,
            source=self._source,
            both_names=model.startswith(_OPENAI_API),
            marks=cache_marks if caches else None,
            forms=forms,
        )
        arguments: dict[str, Any] = {
            "model": model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "num_retries": 0,
            "max_retries": 0,
            "timeout": self._network_timeout(),
            "temperature": settings.temperature,
            "reasoning_effort": settings.reasoning_effort,
            "max_tokens": max_tokens or settings.max_output_tokens,
            "api_base": choice.api_base or None,
            # A key in the environment belongs to its provider: no other address ever receives it.
            "api_key": choice.api_key or (KEYLESS if choice.api_base else None),
        }
        if tools:
            # Without the flag LiteLLM checks for MCP servers among the tools, with a package it does not depend on.
            arguments |= {"tools": tools, "_skip_mcp_handler": True}
        if model.startswith("ollama_chat/"):
            # Ollama silently truncates requests to a small window unless it is given the size.
            arguments["num_ctx"] = self.context_window
        return request_in_forms({key: value for key, value in arguments.items() if value is not None}, forms)

    def _network_timeout(self) -> Any:
        """Return LiteLLM's own timeout, a backstop for ours: a connection needs no time to load a model."""
        import httpx

        first = self._first_token_timeout()
        silence = _NO_TIMEOUT if first is None else max(first, self._settings.token_timeout) + 60
        return httpx.Timeout(silence, connect=_CONNECT_TIMEOUT)

    def _table_entry(self) -> dict[str, Any]:
        litellm = loaded_litellm()
        if litellm is None:
            return {}
        table: dict[str, dict[str, Any]] = litellm.model_cost
        # The table lists a model by its full name, without its provider, or (at a reseller) by its last part.
        names = (self.name, self.name.partition("/")[2], self.name.rpartition("/")[2])
        return next((table[name] for name in names if name in table), {})

    def _usage(self, litellm: Any, usage: Any) -> Usage:
        if isinstance(usage, dict):
            try:
                usage = litellm.Usage(**usage)
            except (TypeError, ValueError):
                usage = None
        if usage is None:
            return Usage()
        details = getattr(usage, "prompt_tokens_details", None)
        written = getattr(usage, "completion_tokens_details", None)
        return Usage(
            input_tokens=int(getattr(usage, "prompt_tokens", 0) or 0),
            output_tokens=int(getattr(usage, "completion_tokens", 0) or 0),
            cached_tokens=int(getattr(details, "cached_tokens", 0) or 0),
            cost_usd=self._cost(litellm, usage),
            reasoning_tokens=int(getattr(written, "reasoning_tokens", 0) or 0),
        )

    def _cost(self, litellm: Any, usage: Any) -> float | None:
        entry = self._table_entry()
        if not (entry.get("input_cost_per_token") or entry.get("output_cost_per_token")):
            return None
        try:
            costs = litellm.cost_per_token(model=self.name, usage_object=usage)
        except Exception as error:
            # A price table with a hole is no reason to fail an answer that is already there.
            logger.info("No price for %s: %s", self.name, type(error).__name__)
            return None
        return float(sum(costs))

    def _where(self) -> str:
        """Return the server's name with its address; "this machine" alone would blame the user's own computer."""
        if self.destination != THIS_MACHINE:
            return self.destination
        address = "" if self.server == THIS_MACHINE else f" ({self.server})"
        return f"the model's server on this machine{address}"


async def check_provider(choice: ModelChoice) -> None:
    """Check that the provider of a model is known, so that a misspelled name is reported before a message is sent.

    Imports LiteLLM in a thread.

    Raises:
        ModelError: kind ``unknown_model``.
    """
    if not await asyncio.to_thread(_has_provider, choice):
        raise no_provider(choice.name)


def _has_provider(choice: ModelChoice) -> bool:
    litellm = load_litellm()
    try:
        litellm.get_llm_provider(_litellm_name(litellm, choice.name, custom=bool(choice.api_base)))
    except litellm.exceptions.BadRequestError:
        return False
    return True


def _litellm_name(litellm: Any, name: str, *, custom: bool) -> str:
    """Return the name that makes LiteLLM use the right provider and endpoint."""
    provider, slash, rest = name.partition("/")
    if slash and provider == "ollama":
        # LiteLLM's other endpoint for Ollama does not support tool calls.
        return f"ollama_chat/{rest}"
    if custom and (not slash or provider not in {str(getattr(p, "value", p)) for p in litellm.provider_list}):
        return f"openai/{name}"
    return name


def _without_secrets(messages: Messages) -> Messages:
    """Mask secrets in every message except the system message, which holds the persona byte for byte.

    Stored text is masked already; what another program stored, or files hold, is not. What the provider itself sent is
    left alone: a changed signature is refused.
    """
    return [
        message
        if message.get("role") == "system"
        else {key: value if key in (PROVIDER_STATE, IMAGES) else mask_value(value) for key, value in message.items()}
        for message in messages
    ]
