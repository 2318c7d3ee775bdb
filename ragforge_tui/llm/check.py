"""Check that a model answers, before a conversation depends on it.

One request for the list of models mostly tells. Where a name is not listed, which an alias is not either, a short
question decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from ragforge_tui.llm.base import ModelChoice
from ragforge_tui.llm.client import LiteLLMModel, check_provider
from ragforge_tui.llm.discover import NAMED_TIMEOUT, missing_key
from ragforge_tui.llm.listing import list_names
from ragforge_tui.llm.provider_errors import unknown_model
from ragforge_tui.llm.providers import ListFormat, host_of, provider_of
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError

ANSWER_SECONDS = 15.0
"""Longest wait for the answer to the question."""
_QUESTION = [{"role": "user", "content": "Answer with one word: ready?"}]
_ANSWER_TOKENS = 16


async def check_model(choice: ModelChoice, settings: ModelSettings, env: Mapping[str, str]) -> None:
    """Check that requests to a model can be answered.

    Raises:
        ModelError: kind ``unknown_model``, ``bad_key``, ``not_configured`` if there is no key, or ``unreachable`` if
            its server does not answer now.
    """
    if choice.offline:
        return
    if (provider := missing_key(choice, env)) is not None:
        raise ModelError(
            f"There is no API key for {provider.title}.",
            kind="not_configured",
            todo=f"/connect {provider.prefix} asks for it.",
        )
    # The list needs no import of LiteLLM, which takes seconds in which a message would go to the model before.
    if not await _listed(choice, env):
        await check_provider(choice)
        await _answers(choice, settings)


async def _listed(choice: ModelChoice, env: Mapping[str, str]) -> bool:
    """Return whether the server lists the model; False also if that cannot be told."""
    kind: ListFormat = "openai"
    ollama = choice.name.startswith(("ollama/", "ollama_chat/"))
    if ollama:
        kind, api = "ollama", choice.api_base or env.get("OLLAMA_API_BASE") or "http://127.0.0.1:11434"
    elif choice.api_base:
        api = choice.api_base
    elif (provider := provider_of(choice.name)) is not None:
        kind, api = provider.kind, provider.address(env)
    else:
        return False
    try:
        names = await list_names(api, kind, choice.api_key or _key_in(env, choice), NAMED_TIMEOUT, every=True)
    except ModelError as error:
        if error.info.kind == "no_network":
            raise _unreachable(host_of(api), NAMED_TIMEOUT) from None
        if error.info.kind in ("bad_key", "environment"):
            raise
        return False
    wanted = {choice.name, choice.name.partition("/")[2]}
    if ollama and not wanted.intersection(names) and f"{choice.name.partition('/')[2]}:latest" not in names:
        raise unknown_model(choice.name, "Ollama")
    return ollama or bool(wanted.intersection(names))


def _key_in(env: Mapping[str, str], choice: ModelChoice) -> str:
    """Return the key in the provider's variable, which belongs to no other address."""
    provider = None if choice.api_base else provider_of(choice.name)
    return provider.key_in(env) if provider is not None else ""


async def _answers(choice: ModelChoice, settings: ModelSettings) -> None:
    """Ask a short question; an answer, and an error that may pass or is about the question, tell that it works."""
    brief = msgspec.structs.replace(
        settings, retries=0, first_token_timeout=ANSWER_SECONDS, token_timeout=ANSWER_SECONDS, reasoning_effort=None
    )
    try:
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            await LiteLLMModel(choice, brief).complete(_QUESTION, max_tokens=_ANSWER_TOKENS)
    except TimeoutError:
        raise _unreachable(choice.destination, ANSWER_SECONDS) from None
    except ModelError as error:
        if error.info.kind in ("no_network", "stall"):
            raise _unreachable(choice.destination, ANSWER_SECONDS) from None
        if error.info.kind in ("unknown_model", "bad_key", "environment"):
            raise


def _unreachable(where: str, seconds: float) -> ModelError:
    return ModelError(
        f"{where} did not answer within {seconds:g} s.",
        kind="unreachable",
        todo="Check the network, the address and that the server runs.",
        transient=True,
    )
