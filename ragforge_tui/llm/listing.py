"""The models that a server lists, in the form of each provider. One request, which also tells whether a key is right.

It needs httpx (which LiteLLM brings), imported late.
"""

from __future__ import annotations

import re
from typing import Any

from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.llm.providers import ListFormat, host_of
from ragforge_tui.shared.errors import ModelError, NetworkError
from ragforge_tui.shared.network import transport

_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|-audio|-image|imagen|veo-|sora|davinci|babbage|rerank"
    r"|-ocr|aqa",
    re.IGNORECASE,
)
"""Names of models that cannot chat, which servers list among the others."""


async def list_names(api: str, kind: ListFormat, key: str, seconds: float, *, every: bool = False) -> list[str]:
    """Return the names of the models a server lists.

    Args:
        api: Address below which the list is.
        key: Key of the server; empty for none.
        seconds: Longest wait.
        every: Include the models that cannot chat.

    Raises:
        ModelError: The server cannot be reached, refuses the key, or its answer is not a list of models.
    """
    import httpx

    api = api.rstrip("/")
    headers, paths = _form(kind, key)
    try:
        async with httpx.AsyncClient(transport=transport(httpx), timeout=seconds, follow_redirects=False) as client:
            for path in paths:
                response = await client.get(f"{api}/{path}", headers=headers)
                response.raise_for_status()
            listed = response.json()
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        # Google answers a wrong key with 400.
        refused = status in (401, 403) or (status == 400 and "API_KEY_INVALID" in error.response.text)
        raise ModelError(
            f"{host_of(api)} refused the API key ({status})."
            if refused
            else f"{host_of(api)} does not list its models ({status}).",
            kind="bad_key" if refused else "provider",
            todo="Name the model with --model or model.name, and check the key.",
        ) from None
    except NetworkError as error:
        raise to_model_error(error, model="", destination=host_of(api)) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ModelError(
            f"No model server answers at {api}/{paths[-1]} ({type(error).__name__}).",
            kind="no_network",
            todo="Check model.api_base (RAGFORGE_API_BASE) and that the server runs.",
            transient=True,
        ) from None
    return _listed_names(listed, kind, every=every)


def _form(kind: ListFormat, key: str) -> tuple[dict[str, str], list[str]]:
    """Return the headers, and the paths to ask; what the last one answers is the list."""
    bearer = {"Authorization": f"Bearer {key}"} if key else {}
    match kind:
        case "anthropic":
            return {"x-api-key": key, "anthropic-version": "2023-06-01"}, ["models?limit=1000"]
        case "gemini":
            return {"x-goog-api-key": key}, ["models?pageSize=1000"]
        case "openrouter":
            # Its list needs no key, so the key is asked about first.
            return bearer, ["key", "models"] if key else ["models"]
        case "ollama":
            return {}, ["api/tags"]
        case "openai":
            return bearer, ["models"]


def _listed_names(listed: Any, kind: ListFormat, *, every: bool) -> list[str]:
    list_key, name_key = ("models", "name") if kind in ("ollama", "gemini") else ("data", "id")
    entries = listed.get(list_key) if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return []
    named = [entry for entry in entries if isinstance(entry, dict) and entry.get(name_key)]
    names = [str(entry[name_key]).removeprefix("models/") for entry in named if every or _chats(entry)]
    return [name for name in names if every or not _NO_CHAT.search(name)]


def _chats(entry: dict[str, Any]) -> bool:
    """Return whether a model can chat, and call functions, as far as its entry says."""
    methods, parameters = entry.get("supportedGenerationMethods"), entry.get("supported_parameters")
    if isinstance(methods, list) and "generateContent" not in methods:
        return False
    return not isinstance(parameters, list) or "tools" in parameters
