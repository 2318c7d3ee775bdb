"""Provider errors as sentences the user can act on.

LiteLLM wraps errors in errors and calls a refused connection a server error, so the chain of causes is searched for
the real one. No key ever appears in a sentence. Used by the client and by discovery.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from ragforge_tui.shared.errors import ModelError, NetworkError, quoted
from ragforge_tui.shared.network import certificate_error
from ragforge_tui.shared.redaction import mask_words

_NETWORK_MODULES = ("httpx", "httpcore", "aiohttp", "h11", "socket", "ssl")
_NETWORK_NAMES = {"APIConnectionError"}
_TIMEOUT_NAMES = {"Timeout", "APITimeoutError", "ReadTimeout"}

_CONTEXT_WORDS = re.compile(
    r"context[ _](?:length|window|size)|maximum context|(?:prompt|input) is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"maximum (?:context|prompt|input|number of)?[^\d]{0,40}?(?:is|of|allowed)?[^\d]{0,12}(\d[\d,]{2,})"
    r"|(?:context|n_ctx)(?:[ _](?:length|window|size))?\W{1,4}(\d[\d,]{2,})"
    r"|(?<![\d,])(\d[\d,]{2,}) (?:tokens )?maximum",
    re.IGNORECASE,
)
"""Limit stated by a provider; its groups are alternatives."""
_NO_PROVIDER_WORDS = re.compile(r"provider not provided", re.IGNORECASE)
"""LiteLLM's own words for a name whose provider it does not know; no request was sent."""
_MODEL_WORDS = re.compile(
    r"model[^.]{0,80}(?:not found|does not exist|not exist|is not supported|not a valid)"
    r"|(?:unknown|invalid|no such) model|model_not_found",
    re.IGNORECASE,
)
_KEY_WORDS = re.compile(
    r"api[_ ]key[^.]{0,60}must be (?:set|provided)|missing[^.]{0,40}api[_ ]key|missing credentials", re.IGNORECASE
)
_KEY_TODO = "Enter the right key with /connect, or set the provider's variable or RAGFORGE_API_KEY."
_QUOTA_WORDS = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|current quota|billing|credit balance", re.IGNORECASE
)
_WAIT_WORDS = re.compile(
    r"(?:try again|retry) in ([\d.]+) ?(ms|s|m)|retryDelay\W+([\d.]+)s|retry after ([\d.]+) ?s", re.IGNORECASE
)
_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*(?::|-)\s*")
_MAX_DETAIL = 300


class ForeignRedirectError(Exception):
    """A server wanted a request sent on to another host, given as an address; that was not done."""


def to_model_error(error: BaseException, *, model: str, destination: str) -> ModelError:
    """Return the error of a request as a `ModelError` in plain sentences.

    Args:
        error: The exception that was raised.
        model: Name of the requested model.
        destination: Destination of the request, in words.
    """
    chain = list(_chain(error))
    detail = _detail(error)
    quote = quoted(detail) if detail else ""
    where = destination or "The provider"
    status = _status(chain)
    if _KEY_WORDS.search(detail):
        return ModelError(f"There is no API key for {where}.", kind="bad_key", todo=_KEY_TODO)
    if any(isinstance(cause, ssl.SSLError | FileNotFoundError) for cause in chain):
        chain += filter(None, [certificate_error()])
    for cause in chain:
        if isinstance(cause, NetworkError):
            return ModelError(mask_words(cause.info.what), kind="environment", todo=cause.info.todo)
        if isinstance(cause, ForeignRedirectError):
            return ModelError(
                f"{_sentence(where)} redirects to {mask_words(str(cause))}, another host; nothing was sent there.",
                kind="bad_request",
                todo="If you trust it, set it as the address (model.api_base).",
            )
    if any(map(_is_unsendable, chain)):
        return ModelError(f"The key for {where} cannot be sent in a request.", kind="bad_key", todo=_KEY_TODO)
    if _is_timeout(chain):
        return stalled(where)
    if _is_network(chain):
        return ModelError(
            f"No connection to {where}: {_reason(chain)}.",
            kind="no_network",
            todo="Check the network and the address (model.api_base), then retry.",
            transient=True,
        )
    if status in (401, 403):
        return ModelError(
            f"{_sentence(where)} refused the API key.{quote}",
            kind="bad_key",
            todo=_KEY_TODO,
        )
    if _CONTEXT_WORDS.search(detail) or status == 413:
        return ModelError(
            f"The request is longer than {model} can read.{quote}",
            kind="context_too_long",
            todo="Start a new conversation (/new), choose a model with a larger window, or set model.context_window.",
            window=_stated_window(detail),
        )
    if status in (402, 429):
        return _limited(chain, detail, where, quote)
    if _NO_PROVIDER_WORDS.search(detail):
        return no_provider(model)
    if _MODEL_WORDS.search(detail):
        return unknown_model(model, where)
    if status == 404:
        return ModelError(
            f"{_sentence(where)} answered a request for the model {model} with 404 (not found).{quote}",
            kind="unknown_model",
            todo="Check the address (model.api_base) and the name, or choose another model with /model; then /retry.",
        )
    if status is not None and status < 500 and status != 408:
        return ModelError(
            f"{_sentence(where)} refused the request.{quote}", kind="bad_request", todo="Change it and retry."
        )
    has_status = status is not None
    return ModelError(
        f"{_sentence(where)} failed{f' ({status})' if has_status else ''}.{quote or f' {type(error).__name__}.'}",
        kind="provider",
        todo="Retry in a moment; if the error persists, choose another model with /model.",
        retry_after=_retry_after(chain, detail),
        transient=has_status,
    )


def no_provider(model: str) -> ModelError:
    """Return the error for a model whose name does not determine its provider; nothing was sent."""
    provider, slash, _ = model.partition("/")
    why = f"there is no provider named {provider}" if slash else "its name does not include a known provider"
    return ModelError(
        f"The model {model} cannot be used: {why}.",
        kind="unknown_model",
        todo="Choose a model with /model; names look like openai/gpt-5.2 or ollama/llama3.2.",
    )


def unknown_model(model: str, where: str) -> ModelError:
    """Return the error for a model that its provider does not offer to this user."""
    provider, _, name = model.partition("/")
    if provider in ("ollama", "ollama_chat"):
        todo = f"Get it with `ollama pull {name}`, or choose another model with /model; then /retry."
        return ModelError(f"Ollama does not have the model {name}.", kind="unknown_model", todo=todo)
    return ModelError(
        f"{_sentence(where)} has no model {model}, or the key has no access to it.",
        kind="unknown_model",
        todo="Choose another model with /model, then /retry.",
    )


def stalled(where: str, seconds: float | None = None) -> ModelError:
    """Return the error for a provider that stopped sending."""
    waited = f" for {seconds:g} s" if seconds is not None else ""
    return ModelError(
        f"{_sentence(where)} sent nothing{waited}, so the request was cancelled.",
        kind="stall",
        todo="Use /retry; for a slow model raise model.token_timeout in /settings.",
        transient=True,
    )


def never_began(where: str, seconds: float | None) -> ModelError:
    """Return the error for an answer that did not start in time."""
    return ModelError(
        f"{_sentence(where)} did not start to answer within {seconds or 0:g} s, so the request was cancelled.",
        kind="stall",
        todo="Use /retry; for a slow model raise model.first_token_timeout in /settings.",
        transient=True,
    )


def cut_off(where: str) -> ModelError:
    """Return the error for a connection lost in the middle of an answer."""
    return ModelError(
        f"The connection to {where} broke during the answer.",
        kind="no_network",
        todo="Use /retry to ask again.",
        transient=True,
    )


def unfinished(where: str) -> ModelError:
    """Return the error for an answer that ended normally but without a finish reason."""
    return ModelError(
        f"{_sentence(where)} stopped in the middle: the answer has no finish reason.",
        kind="unfinished",
        todo="Use /retry to ask again.",
        transient=True,
    )


def _sentence(where: str) -> str:
    """Return a subject fit for the start of a sentence; host names keep their case."""
    return f"The{where[3:]}" if where.startswith("the ") else where


def _limited(chain: list[BaseException], detail: str, where: str, quote: str) -> ModelError:
    if _status(chain) == 402 or _QUOTA_WORDS.search(detail):
        return ModelError(
            f"The account at {where} has no credit or quota left.{quote}",
            kind="rate_limit",
            todo="Check its billing page, or choose another model with /model.",
        )
    wait = _retry_after(chain, detail)
    when = f" Wait {_seconds(wait)}." if wait is not None else ""
    return ModelError(
        f"{_sentence(where)} is limiting requests.{when}{quote}",
        kind="rate_limit",
        todo="Wait and retry, or choose another model with /model.",
        retry_after=wait,
        transient=True,
    )


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        error = error.__cause__ or error.__context__ or (original if isinstance(original, BaseException) else None)


def _is_timeout(chain: list[BaseException]) -> bool:
    # A connection that could not be opened in time (the system's own TimeoutError has an errno) is not a stall.
    if any(type(e).__name__ == "ConnectTimeout" for e in chain):
        return False
    return any(type(e).__name__ in _TIMEOUT_NAMES or (isinstance(e, TimeoutError) and e.errno is None) for e in chain)


def _is_unsendable(error: BaseException) -> bool:
    # Whatever else is in a header comes from the program or a library.
    return isinstance(error, UnicodeEncodeError) or (
        type(error).__name__ == "LocalProtocolError" and "header" in str(error).lower()
    )


def _is_network(chain: list[BaseException]) -> bool:
    # LiteLLM also uses its APIConnectionError for "anything else"; a status in the chain says more.
    for error in chain:
        module = type(error).__module__.split(".")[0]
        if module in _NETWORK_MODULES and type(error).__name__ != "HTTPStatusError":
            return True
        if isinstance(error, ConnectionError) or (module == "openai" and type(error).__name__ in _NETWORK_NAMES):
            return True
    return False


def _status(chain: list[BaseException]) -> int | None:
    # The innermost status is the server's own.
    for error in reversed(chain):
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= 400 and type(error).__name__ != "APIConnectionError":
            return status
    return None


def _reason(chain: list[BaseException]) -> str:
    for error in reversed(chain):
        if isinstance(error, OSError) and error.errno:
            return os.strerror(error.errno).lower() if error.errno > 0 else mask_words(str(error.strerror)).lower()
    text = mask_words(str(chain[-1])).strip().splitlines()
    return text[0][:_MAX_DETAIL].rstrip(". ") if text else "the connection failed"


def _detail(error: BaseException) -> str:
    """Return the provider's own message on one line."""
    text = getattr(error, "message", None) or str(error)
    text = " ".join(mask_words(str(text)).split())
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    text = text.split(" Original exception:")[0]
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 1] + "…"


def _retry_after(chain: list[BaseException], detail: str) -> float | None:
    for error in chain:
        headers = getattr(getattr(error, "response", None), "headers", None)
        for source in (headers, getattr(error, "litellm_response_headers", None)):
            if source is not None and (wait := _header_wait(source)) is not None:
                return wait
    if match := _WAIT_WORDS.search(detail):
        value = float((match[1] or match[3] or match[4]).rstrip(".") or 0)
        return value * {"ms": 0.001, "m": 60.0}.get(match[2] or "s", 1.0)
    return None


def _header_wait(headers: object) -> float | None:
    get = getattr(headers, "get", None)
    if get is None:
        return None
    milliseconds, value = get("retry-after-ms"), get("retry-after")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(value)) if value else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(str(value)).timestamp() - time.time())
    except ValueError:
        return None


def _stated_window(detail: str) -> int | None:
    """Return the tokens a model reads, as its provider states them in a rejection."""
    match = _WINDOW.search(detail)
    if match is None:
        return None
    return int(next(group for group in match.groups() if group).replace(",", ""))
