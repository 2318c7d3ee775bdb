"""Provider errors as sentences the user can act on.

LiteLLM wraps errors in errors and calls a refused connection a server error, so the chain of causes is searched for
the real one. No key ever appears in a sentence. Used by the client and by discovery.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from ragforge_tui.llm.providers import provider_of
from ragforge_tui.shared.errors import ModelError, NetworkError, quoted
from ragforge_tui.shared.network import certificate_error
from ragforge_tui.shared.redaction import mask_words

_NETWORK_MODULES = ("httpx", "httpcore", "aiohttp", "h11", "socket", "ssl")
_NETWORK_NAMES = {"APIConnectionError"}
_TIMEOUT_NAMES = {"Timeout", "APITimeoutError", "ReadTimeout"}

_SIZE = re.compile(
    r"token|context|prompt|input|length|window|request|messages?\b|conversation|history|body|payload|entity|character",
    re.IGNORECASE,
)
_EXCESS = re.compile(
    r"exceed|too[ -](?:long|large|many|big|much)|long(?:er)?\b|larger|more than|greater|maximum|max\b|limit|reduce"
    r"|shorten|truncat|at most|smaller|over(?:flow|size|run|\b)|not fit|up to|fewer|less than|>",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+)(?![\w]|[.,]\d)")
_LIMIT = re.compile(
    r"max(?!\w*_tokens)|limit|most|up to|window|allow|support|smaller|less|fewer|no more|within|context|capacity|n_ctx",
    re.IGNORECASE,
)
_LIMIT_AFTER = re.compile(r"\W{0,2}(?:tokens? )?(?:max|limit|allowed)", re.IGNORECASE)
_SMALLEST_LIMIT = 512
"""A smaller number limits something else than the request: a name, a list, a temperature."""
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
_QUOTA_WORDS = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|current quota|billing|credit balance", re.IGNORECASE
)
_WAIT_WORDS = re.compile(
    r"(?:try again|retry) in ([\d.]+) ?(ms|s|m)|retryDelay\W+([\d.]+)s|retry after ([\d.]+) ?s", re.IGNORECASE
)
_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*(?::|-)\s*")
_MAX_DETAIL = 300


_WORDY = ("message", "detail", "msg", "error", "errors", "error_description", "reason", "title", "raw", "loc", "param")
"""Fields of an error that hold words for people, or the place they are about."""
_MARKUP = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<[^<>]*>", re.IGNORECASE | re.DOTALL)


class ServerRefusal(Exception):
    """Answer of a server that is none: an error, or a page.

    Attributes:
        status_code: Its status, or the one it names; 200 for a page.
        body: What it sent, decoded if it is JSON.
    """

    def __init__(self, status_code: int, headers: Any, body: Any) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code
        self.litellm_response_headers = headers
        self.body = body


class ForeignRedirectError(Exception):
    """A server wanted a request sent on to another host, given as an address; that was not done."""


def to_model_error(error: BaseException, *, model: str, destination: str, size: int = 0) -> ModelError:
    """Return the error of a request as a `ModelError` in plain sentences.

    Args:
        size: Characters of the request, 0 if unknown.
        error: The exception that was raised.
        model: Name of the requested model.
        destination: Destination of the request, in words.
    """
    chain = list(_chain(error))
    body = _body(chain)
    detail = _detail(error, body)
    everything = mask_words(words_of(body, everything=True)) or detail
    provider = provider_of(model)
    where = destination or (provider.host if provider is not None else f"the provider of {model}")
    failure = None if isinstance(error, ServerRefusal) else _unanswered(chain, detail, model, where)
    if failure is None:
        failure = _refused(chain, detail, everything, model, where, size)
        # A page that stands for an answer refuses no part of the request.
        failure.words, failure.of_body = everything if _status(chain) else "", _status(chain) == 413
        most = max((number for _, number, _ in _numbers(detail)), default=0)
        failure.counted = most if failure.window is not None and most > failure.window else None
    return failure


def _unanswered(chain: list[BaseException], detail: str, model: str, where: str) -> ModelError | None:
    """Return the error of a request that no server answered; None for any other."""
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
    if _KEY_WORDS.search(detail):
        return _bad_key(f"There is no API key for {where}.", model, where)
    if any(map(_is_unsendable, chain)):
        return _bad_key(f"The key for {where} cannot be sent in a request.", model, where)
    if _is_timeout(chain):
        return stalled(where)
    if _is_network(chain):
        return ModelError(
            f"No connection to {where}: {_reason(chain)}.",
            kind="no_network",
            todo="Check the network and the address (model.api_base), then retry.",
            transient=True,
        )
    return no_provider(model) if _NO_PROVIDER_WORDS.search(detail) else None


def _refused(chain: list[BaseException], detail: str, everything: str, model: str, where: str, size: int) -> ModelError:
    """Return the error of an answer that is none."""
    status = _status(chain)
    quote = quoted(detail) if detail else ""
    if status in (401, 403):
        return _bad_key(f"{_sentence(where)} refused the API key.{quote}", model, where)
    if _is_too_long(everything, detail, status, size):
        return ModelError(
            f"The request is longer than {model} can read.{quote}",
            kind="context_too_long",
            todo="Start a new conversation (/new), choose a model with a larger window, or set model.context_window.",
            # What a proxy or a limit per minute takes is no window.
            window=None if status == 413 else _stated_window(detail) or _stated_window(everything),
        )
    if status in (402, 429):
        return _limited(chain, detail, where, quote)
    if _MODEL_WORDS.search(detail):
        return unknown_model(model, where)
    if status == 404:
        return ModelError(
            f"{_sentence(where)} answered a request for the model {model} with 404 (not found).{quote}",
            kind="unknown_model",
            todo="Check the address (model.api_base) and the name, or choose another model with /model; then /retry.",
        )
    if status is None and isinstance(chain[0], ServerRefusal):
        return ModelError(
            f"{_sentence(where)} sent a page instead of an answer.{quote}",
            kind="bad_request",
            todo="Check the address (model.api_base) and whether it wants a login, then /retry.",
        )
    if status is not None and status < 500 and status != 408:
        return ModelError(
            f"{_sentence(where)} refused the request.{quote}", kind="bad_request", todo="Change it and retry."
        )
    has_status = status is not None
    return ModelError(
        f"{_sentence(where)} failed{f' ({status})' if has_status else ''}.{quote or f' {type(chain[0]).__name__}.'}",
        kind="provider",
        todo="Retry in a moment; if the error persists, choose another model with /model.",
        retry_after=_retry_after(chain, detail),
        transient=has_status,
    )


def words_of(body: Any, *, everything: bool = False) -> str:
    """Return the words of an answer that is none, whatever its form: an object, a list, a text or a page.

    Args:
        everything: Include codes, types and the names of its fields, which may say what is meant.
    """
    if isinstance(body, str):
        try:
            value = json.loads(body) if body.lstrip()[:1] in ("{", "[") else None
        except (ValueError, RecursionError):
            value = None
        return words_of(value, everything=everything) if value else " ".join(_MARKUP.sub(" ", body).split())
    if isinstance(body, list | tuple):
        return " ".join(filter(None, (words_of(each, everything=everything) for each in body)))
    if not isinstance(body, dict):
        return str(body) if everything and isinstance(body, int | float) and not isinstance(body, bool) else ""
    if everything:
        return " ".join(f"{name} {words_of(value, everything=True)}" for name, value in body.items())
    found = {name: words for name in _WORDY if (words := words_of(body.get(name)))}
    place = " ".join(filter(None, (found.pop("loc", ""), found.pop("param", ""))))
    words = " ".join(dict.fromkeys(found.values())) or " ".join(filter(None, map(words_of, body.values())))
    return f"{words} ({place})" if place and place not in words else words


def _is_too_long(words: str, message: str, status: int | None, size: int) -> bool:
    """Return whether a refusal is about the size of the request.

    A number counts as well as words: one near the tokens of the request, of some two to ten characters each.

    Args:
        words: All that was sent, with codes.
        message: Its words for people.
    """
    if status == 413:
        return True
    if status in (402, 404, 429, 503, 529):
        return False
    words = words.replace("_", " ")
    numbers = [number for _, number, _ in _numbers(message)]
    if numbers and max(numbers) < _SMALLEST_LIMIT and not re.search("token|context", words, re.IGNORECASE):
        return False
    if status is not None and status >= 500:
        return bool(_EXCESS.search(words) and re.search("token|context|prompt|input", words, re.IGNORECASE))
    near = any(max(size / 10, _SMALLEST_LIMIT) < number < size / 2 for number in numbers)
    return bool(near or (_EXCESS.search(words) and (_SIZE.search(words) or numbers)))


def _numbers(words: str) -> Iterator[tuple[str, int, str]]:
    """Yield each number that a refusal states, with the words before and after it up to the next ones."""
    found = list(_NUMBER.finditer(words))
    for at, match in enumerate(found):
        before = words[found[at - 1].end() if at else 0 : match.start()]
        after = words[match.end() : found[at + 1].start() if at + 1 < len(found) else None]
        yield before[-45:], int(match[1].replace(",", "")), after


def _stated_window(words: str) -> int | None:
    """Return the tokens a model reads, as its provider states them in a rejection."""
    numbers = [each for each in _numbers(words) if each[1] >= _SMALLEST_LIMIT]
    compared = [number for before, number, _ in numbers if before.rstrip().endswith(">")]
    limits = [number for before, number, after in numbers if _LIMIT.search(before) or _LIMIT_AFTER.match(after)]
    # Without words for the limit it is the number below what was asked for.
    below = sorted({number for _, number, _ in numbers})[-2:-1]
    found = compared or limits or below
    return min(found) if found else None


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


def _bad_key(what: str, model: str, where: str) -> ModelError:
    """Return an error about a key, with the variable of a provider that is known."""
    provider = provider_of(model)
    variable = provider.key if provider is not None and where == provider.host else "the provider's variable"
    todo = f"Enter the right key with /connect, or set {variable} or RAGFORGE_API_KEY."
    return ModelError(what, kind="bad_key", todo=todo)


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


def _body(chain: list[BaseException]) -> Any:
    """Return the body that the server sent with an error, None without one."""
    return next((body for error in reversed(chain) if (body := getattr(error, "body", None))), None)


def _detail(error: BaseException, body: Any) -> str:
    """Return the provider's own message on one line."""
    text = words_of(body) or (getattr(error, "message", None) or str(error))
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
