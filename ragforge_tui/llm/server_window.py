"""The window that a model's server states, for servers that run models themselves.

vLLM and gateways list it with their models, llama.cpp tells it in `/props`, LM Studio in `/api/v0/models`, Ollama in
`/api/show`. Providers with an address of their own are not asked: their models are in LiteLLM's table. Nothing here
waits long or fails: a server that tells nothing leaves the window assumed. Used by the conversation, which asks while
the model's client is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any

from ragforge_tui.llm.base import DEFAULT_CONTEXT_WINDOW, ModelChoice
from ragforge_tui.shared.errors import NetworkError
from ragforge_tui.shared.keys_in_use import keys_of
from ragforge_tui.shared.network import transport

logger = logging.getLogger(__name__)

SECONDS = 2.0
"""Most seconds that a server may take for each answer."""
_SMALLEST = 512
"""A smaller number is no window: some servers state 0 for a model that is not loaded."""
_LISTED = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the window in a list of models: vLLM, OpenRouter, Groq and others."""
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
_OLLAMA = ("ollama", "ollama_chat")


async def stated_window(choice: ModelChoice, env: Mapping[str, str]) -> int | None:
    """Return the tokens that the server of a model says it can read; None if it says nothing or there is none to ask.

    Args:
        env: Variables with addresses of servers.
    """
    prefix, slash, model = choice.name.partition("/")
    model = model if slash else choice.name
    base, key = choice.api_base.rstrip("/"), choice.api_key
    if not base and prefix in _OLLAMA:
        base = (env.get("OLLAMA_API_BASE") or "http://127.0.0.1:11434").rstrip("/")
    elif not base and prefix == "openai":
        base = (env.get("OPENAI_BASE_URL") or env.get("OPENAI_API_BASE") or "").rstrip("/")
        key = key or keys_of(env).get("OPENAI_API_KEY", "")
    if choice.offline or not base:
        return None
    import httpx

    root = base.removesuffix("/v1")
    try:
        async with httpx.AsyncClient(
            transport=transport(httpx),
            timeout=SECONDS,
            follow_redirects=False,
            headers={"Authorization": f"Bearer {key}"} if key else {},
        ) as client:
            asked = _Server(client, (model, choice.name))
            if prefix in _OLLAMA:
                return await asked.ollama(root, model)
            if found := await asked.listed(f"{base}/models"):
                return found
            answers = await asyncio.gather(asked.llama_cpp(root), asked.lm_studio(root), asked.ollama(root, model))
            return next((window for window in answers if window), None)
    except (httpx.HTTPError, httpx.InvalidURL, NetworkError) as error:
        logger.info("No window of %s: %s", choice.name, type(error).__name__)
        return None


class _Server:
    """A model's server, and the names under which it may list the model."""

    def __init__(self, client: Any, names: tuple[str, ...]) -> None:
        self._client = client
        self._names = names

    async def listed(self, url: str) -> int | None:
        entry = self._entry(await self._answer(url))
        meta = entry.get("meta")
        return _window(*(entry.get(name) for name in _LISTED), meta.get("n_ctx") if isinstance(meta, dict) else None)

    async def llama_cpp(self, root: str) -> int | None:
        answer = await self._answer(f"{root}/props")
        settings = answer.get("default_generation_settings")
        # The first is what one of several parallel requests gets.
        return _window(settings.get("n_ctx") if isinstance(settings, dict) else None, answer.get("n_ctx"))

    async def lm_studio(self, root: str) -> int | None:
        entry = self._entry(await self._answer(f"{root}/api/v0/models"))
        return _window(entry.get("loaded_context_length")) or _at_most_assumed(entry.get("max_context_length"))

    async def ollama(self, root: str, model: str) -> int | None:
        answer = await self._answer(f"{root}/api/show", {"model": model})
        stated = _NUM_CTX.search(str(answer.get("parameters") or ""))
        if stated:
            return _window(int(stated[1]))
        info = answer.get("model_info")
        named = info.items() if isinstance(info, dict) else ()
        lengths = [value for name, value in named if name.endswith(".context_length")]
        # Requests name the window, and Ollama takes memory for it: what the model could read may be far too much.
        return _at_most_assumed(lengths[0]) if lengths else None

    def _entry(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the model's entry in a list, else the only entry there is."""
        data = answer.get("data")
        entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        named = [entry for entry in entries if entry.get("id") in self._names]
        return (named or (entries if len(entries) == 1 else []) or [{}])[0]

    async def _answer(self, url: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the object that a server answers with; empty if it answers with anything else."""
        response = await (self._client.get(url) if body is None else self._client.post(url, json=body))
        try:
            answer = response.json() if response.status_code == 200 else {}
        except ValueError:
            return {}
        return answer if isinstance(answer, dict) else {}


def _window(*values: Any) -> int | None:
    """Return the first value that can be a window."""
    return next((value for value in values if isinstance(value, int) and value >= _SMALLEST), None)


def _at_most_assumed(value: Any) -> int | None:
    window = _window(value)
    return None if window is None else min(window, DEFAULT_CONTEXT_WINDOW)
