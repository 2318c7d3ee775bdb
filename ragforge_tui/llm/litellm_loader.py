"""LiteLLM, loaded late, quietly and without a network. The only module that imports it.

Importing it takes seconds and 140 MB, so it happens on the first request or in `preload`, in a thread. It is
configured here, once, to print nothing, to send no telemetry and to ignore a `.env` in the working folder.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragforge_tui.llm.base import ModelChoice
from ragforge_tui.llm.provider_errors import ForeignRedirectError
from ragforge_tui.llm.providers import provider_of
from ragforge_tui.shared.keys_in_use import hide, keys_of
from ragforge_tui.shared.network import certificate_error, transport

logger = logging.getLogger(__name__)

_LOCK = threading.Lock()
_loaded: Any = None

# LITELLM_MODE: its development mode loads `.env` from the working folder, which could send requests elsewhere.
# REPEATED_STREAMING_CHUNK_LIMIT: by default an answer with 100 equal chunks (a ruled line) is broken off.
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "REPEATED_STREAMING_CHUNK_LIMIT": "1000000",
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


def load_litellm() -> Any:
    """Return LiteLLM, imported and configured; blocks for seconds the first time. Safe from any thread."""
    global _loaded
    if _loaded is None:
        with _LOCK:
            if _loaded is None:
                _loaded = _import()
    return _loaded


def loaded_litellm() -> Any | None:
    """Return LiteLLM if it is loaded already, else None."""
    return _loaded


async def preload() -> None:
    """Import LiteLLM in a thread, so that the first request finds it ready."""
    await asyncio.to_thread(load_litellm)


def provide_keys(choice: ModelChoice) -> None:
    """Trim the keys that LiteLLM reads from the environment itself, and check the one that a model needs.

    Raises:
        ModelError: kind ``bad_key``: it cannot be sent.
    """
    os.environ.update(keys_of(os.environ))
    hide(choice.api_key)
    if not choice.api_base and not choice.api_key and (provider := provider_of(choice.name)) is not None:
        provider.key_in(os.environ)


def litellm_folder() -> Path | None:
    """Return the folder LiteLLM is installed in, found without importing it."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def _import() -> Any:
    # Its 300 000 objects live as long as the process: collecting them is a fifth of the import, and each full
    # collection after it would stall the event loop for 200 ms.
    gc.disable()
    try:
        return _configured()
    except OSError as error:
        raise certificate_error() or error from error
    finally:
        gc.enable()
        gc.freeze()


def _configured() -> Any:
    os.environ.update(_ENVIRONMENT)
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic|openai|httpx)(\.|$)")
    module: Any = importlib.import_module("litellm")
    module.telemetry = False
    module.suppress_debug_info = True
    module.set_verbose = False
    module.drop_params = True
    # Lets it repair requests a provider would refuse, such as ones with tool calls in the history but no tools.
    module.modify_params = True
    # Its token counts of some model families would fetch tokenizers.
    module.disable_hf_tokenizer_download = True
    # aiohttp complains about unclosed sessions when the process ends; httpx closes a cancelled stream at once.
    module.disable_aiohttp_transport = True
    _correct(module)
    _stay_at_the_host()
    _use_our_transport()
    importlib.import_module("ragforge_tui.llm.exchange").listen()
    _silence()
    _warm_up(module)
    return module


def _correct(module: Any) -> None:
    """Replace functions of LiteLLM 1.106 that lose requests; a release without them stays as it is."""
    _send_as_it_is()
    # What LiteLLM sends to OpenAI's newer address (requests with tools to GPT-5.4 and later) fails in a search for
    # MCP servers among the tools, for lack of a package that LiteLLM does not depend on.
    responses: Any = importlib.import_module("litellm.responses.main")
    responses._responses_try_dispatch_mcp_gateway = lambda **_: None
    # LiteLLM switches Claude's thinking off when the last reply with calls has no thinking blocks, even in a past turn,
    # where Anthropic does not ask for them.
    name = "last_assistant_with_tool_calls_has_no_thinking_blocks"
    lacks_blocks = getattr(module.utils, name, None)
    if lacks_blocks is not None:
        for key, using in list(sys.modules.items()):
            if key.startswith("litellm.") and name in vars(using):
                setattr(using, name, lambda messages: lacks_blocks(_since_question(messages)))


def _stay_at_the_host() -> None:
    """Keep all HTTP clients from following a redirect to another host: it would get the whole conversation.

    LiteLLM and OpenAI's client make clients of their own that follow any, and offer no option for it.
    """
    httpx: Any = importlib.import_module("httpx")
    for client in (httpx.AsyncClient, httpx.Client):
        if (build := getattr(client, "_build_redirect_request", None)) is not None:
            client._build_redirect_request = _within_host(build)


def _use_our_transport() -> None:
    """Make LiteLLM's clients connect as all of the program do; with a foreign transport they look at no proxies."""
    httpx: Any = importlib.import_module("httpx")
    handler: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler

    def ours(ssl_context: Any = None, ssl_verify: bool | None = None, **_: object) -> Any:
        return transport(httpx, verify=ssl_context if ssl_context is not None else ssl_verify is not False)

    for name in ("create_async_transport", "_create_async_transport"):
        if hasattr(handler, name):
            setattr(handler, name, staticmethod(ours))


def _within_host(build: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def checked(client: Any, request: Any, response: Any) -> Any:
        following = build(client, request, response)
        old, new = request.url, following.url
        upgraded = (old.scheme, new.scheme) == ("http", "https")
        if old.host != new.host or ((old.scheme, old.port) != (new.scheme, new.port) and not upgraded):
            raise ForeignRedirectError(f"{new.scheme}://{new.netloc.decode('ascii', 'replace')}")
        return following

    return checked


def _since_question(messages: list[Any]) -> list[Any]:
    start = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=0)
    return messages[start:]


def _send_as_it_is() -> None:
    """Keep OpenAI's client from comparing each request with its types, which changes nothing in a chat request.

    It renames fields and formats dates, neither of which a chat request has, and leaves out values that are not given,
    which is done here. The comparison walks through every message and every tool on the event loop, for each request.
    """
    openai: Any = importlib.import_module("openai")
    completions: Any = importlib.import_module("openai.resources.chat.completions.completions")

    async def given(data: dict[str, Any], _: object) -> dict[str, Any]:
        return {name: value for name, value in data.items() if not isinstance(value, openai.NotGiven | openai.Omit)}

    if hasattr(completions, "async_maybe_transform"):
        completions.async_maybe_transform = given


def _warm_up(module: Any) -> None:
    """Answer a request without a network, so that the modules LiteLLM imports on its first one are loaded.

    There are some 500 of them; without this they stall the event loop for most of a second.
    """
    tool = {"type": "function", "function": {"name": "none", "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "user", "content": "none"}]
    try:
        with _logging_at_once():
            answer = module.completion(
                model="openai/none",
                messages=messages,
                tools=[tool],
                stream=True,
                mock_response="none",
                api_key="none",
                _skip_mcp_handler=True,
            )
            for _ in answer:
                pass
        for name in ("anyio._backends._asyncio", "litellm._service_logger"):
            importlib.import_module(name)
        _build_client()
    except Exception as error:
        # Then the first request takes longer, and reports the error if it persists.
        logger.info("LiteLLM could not be warmed up: %s", type(error).__name__)


def _build_client() -> None:
    """Do what the first client does: load certificates and httpcore."""
    importlib.import_module("litellm.llms.custom_httpx.http_handler").get_ssl_configuration()
    importlib.import_module("httpx").AsyncClient(verify=False)  # it never sends anything


@contextmanager
def _logging_at_once() -> Iterator[None]:
    """Let LiteLLM's executor run what it is given at once: a process with threads cannot be forked."""
    executors: Any = importlib.import_module("litellm.litellm_core_utils.thread_pool_executor")
    executor = getattr(executors, "executor", None)
    if executor is None:
        yield
        return
    executor.submit = lambda function, *args, **kwargs: function(*args, **kwargs)
    try:
        yield
    finally:
        del executor.submit


def _silence() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        # Its records may hold keys and prompts, so they are dropped; the errors it raises say enough.
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
    for name in ("httpx", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
