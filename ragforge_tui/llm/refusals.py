"""Recovery from refused requests: leave out the refused part, resend, remember.

Servers refuse an option, tools or one tool, a role, reasoning, images, in words of their own. No list of sentences
knows them: what the words name is looked for in the request as it was sent. If they name nothing there, what this
server has not taken before is left out, the newest first, one part at a time. A refusal in the same words means that it
was not this part; in other words, that another part is refused too. What a server takes once it is left out stays left
out; nothing is remembered of a request that was refused in every form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import msgspec

from ragforge_tui.llm.forms import (
    CALLS_AS_TEXT,
    FILLED,
    IMAGE,
    MOST_TOOLS,
    NAMED_ANEW,
    NO_EMPTY,
    NO_IMAGES,
    NO_STATE,
    NO_SYSTEM,
    NO_TOOLS,
    ONE_CALL,
    OPTION,
    PLAIN_SCHEMAS,
    TOOL,
    image_form,
)
from ragforge_tui.shared.errors import ModelError

MOST_STEPS = 16
"""Most requests that one refusal causes."""
_NEEDED = {"model", "messages", "tools", "stream", "timeout", "num_retries", "max_retries", "api_base", "api_key"}
_OWN_FIELDS = {"role", "content", "tool_calls", "tool_call_id", "name", "cache_control"}
_WANTED = re.compile(r"must|missing|require|expect|need|provide", re.IGNORECASE)
_UNWANTED = re.compile(r"\bun|\bnot\b|\bno\b|extra|forbid|invalid", re.IGNORECASE)
_PLAIN_KEYS = ("type", "description", "properties", "enum", "required", "items")
_INDEX = re.compile(r"(?:tools|functions|function_declarations)\W{1,2}(\d+)")
_IMAGE_NAME = re.compile(r"\[image ([^\[\],]+), [^\[\]]+\]")
_SAID = {
    CALLS_AS_TEXT: "results of tools: they are sent as the user's",
    ONE_CALL: "several calls in one reply: they are sent one by one",
    FILLED: "replies without reasoning: they are sent with an empty one",
    NO_STATE: "the reasoning of earlier replies: it was left out",
    NO_IMAGES: "images: they were left out",
    NO_TOOLS: "tools: the agent can only talk",
    PLAIN_SCHEMAS: "details of the tools' schemas: they were left out",
    NO_SYSTEM: "a system message: it is sent as the user's",
    NO_EMPTY: "empty texts: a remark replaces them",
}


class _Part(msgspec.Struct, frozen=True):
    """Part of a request that can be left out.

    Attributes:
        forms: The forms without it.
        names: How words may name it; the name of a field stands for its words too.
        said: Its name for the user, if the form does not tell it.
        exact: Whether only the name itself counts, as it is written.
        blind: Whether it may be left out although nothing names it.
    """

    forms: tuple[str, ...]
    names: tuple[str, ...]
    said: str = ""
    exact: bool = False
    blind: bool = True

    def is_named(self, words: str) -> bool:
        if self.exact:
            return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words) for name in self.names)
        spoken = (re.escape(name).replace("_", r"\W{0,3}_?") for name in self.names)
        return any(re.search(rf"(?<![a-z0-9]){name}s?(?![a-z0-9])", words, re.IGNORECASE) for name in spoken)

    def is_field(self, words: str) -> bool:
        """Return whether words name an image, a tool that is too long itself, or an option as it is written."""
        form = self.forms[0]
        return (
            form.startswith(IMAGE)
            or (form.startswith(TOOL) and not re.search("token|context", words, re.IGNORECASE))
            or (form.startswith(OPTION) and any("_" in name and name in words for name in self.names))
        )


class Refusals:
    """Accepted and refused parts of requests to one model's server.

    Args:
        kept: Forms that it needed in earlier processes.
        keep: Stores all the forms it needs.
    """

    def __init__(self, kept: Iterable[str] = (), keep: Callable[[set[str]], None] = lambda forms: None) -> None:
        self.forms = set(kept)
        self._keep = keep
        self.taken: set[str] = set()
        self.hopeless: set[tuple[str, frozenset[str]]] = set()
        """Words with which requests were refused in every form, with the parts of these requests."""

    def accepted(self, arguments: dict[str, Any], way: WayOut) -> str:
        """Note an answered request; return the parts left out for the first time, empty if none."""
        self.taken.update(form for part in _parts(arguments, "") for form in part.forms)
        new = way.forms - self.forms
        if not new:
            return ""
        seen = any(form.startswith(IMAGE) for form in self.taken)
        if not seen and any(f.startswith(IMAGE) for f in new) and any(f.startswith(IMAGE) for f in self.forms):
            new.add(NO_IMAGES)
        self.forms |= new
        self._keep(self.forms)
        return "; ".join(dict.fromkeys(way.said.get(form) or _said(form) for form in sorted(new)))


class WayOut:
    """Search for a form in which a server takes one request.

    Attributes:
        forms: All forms of the next request.
        said: What some of them leave out, in words.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self.forms = set(refusals.forms)
        self.said: dict[str, str] = {}
        self._words = ""
        self._began: tuple[str, frozenset[str]] | None = None
        self._last: set[str] = set()
        self._failed: set[str] = set()
        self._untold: set[str] = set()
        self._steps = 0

    def next(self, error: ModelError, arguments: dict[str, Any]) -> bool:
        """Leave out another part of a request; return whether there is one.

        Args:
            arguments: The request that was refused, as it was sent.
        """
        kind = error.info.kind
        if (
            kind not in ("bad_request", "context_too_long", "provider", "unknown_model")
            or self._steps >= MOST_STEPS
            or not error.words
        ):
            return False
        self._steps += 1
        parts = [*_parts(arguments, error.words, self._refusals.taken)]
        words = re.sub(r"\d+", "0", error.words)
        if self._last and words == self._words:
            self.forms -= self._last
            self._failed |= self._last
        self._words = words
        present = words, frozenset(form for part in parts for form in part.forms)
        if present in self._refusals.hopeless:
            return False
        self._began = self._began or present
        parts = [part for part in parts if not (self._failed | self.forms).issuperset(part.forms)]
        named = [part for part in parts if part.is_named(error.words)]
        if kind == "context_too_long":
            # The words for sizes are those for parts of a request; what they name as a field is meant.
            named = [part for part in named if part.is_field(error.words)]
        if not named and kind == "bad_request":
            new = [part for part in parts if part.blind and not self._refusals.taken.intersection(part.forms)]
            self._untold.update(form for part in new for form in part.forms)
            named = new or self._all_at_once()
            if not named:
                self._refusals.hopeless.add(self._began)
        part = named[0] if named else _Part((), ())
        self._last = set(part.forms)
        self.forms |= self._last
        self.said |= dict.fromkeys(part.forms, part.said)
        return bool(named)

    def _all_at_once(self) -> list[_Part]:
        """Return all parts that did not help alone, once."""
        together, self._untold = tuple(self._untold & self._failed), set()
        self._failed -= set(together)
        return [_Part(together, ())] if len(together) > 1 else []


def _parts(arguments: dict[str, Any], words: str, taken: Collection[str] = ()) -> Iterator[_Part]:
    """Yield the parts that can be left out of a request, those first that are named most exactly and missed least."""
    messages, tools = arguments["messages"], arguments.get("tools") or []
    functions = [tool["function"] for tool in tools]
    index = _INDEX.search(words)
    if index is not None and int(index[1]) < len(functions):
        yield _Part((TOOL + functions[int(index[1])]["name"],), (index[0],), exact=True, blind=False)
    for function in functions:
        yield _Part((TOOL + function["name"],), (function["name"],), exact=True, blind=False)
    for option in reversed([key for key in arguments if key not in _NEEDED and not key.startswith("_")]):
        anew = NAMED_ANEW.get(option, "")
        renamed = f">{anew}" if anew and anew in words else ""
        yield _Part((f"{OPTION}{option}{renamed}",), (option,))
    replies = [message for message in messages if message["role"] == "assistant"]
    fields = {key for reply in replies for key in reply if key not in _OWN_FIELDS}
    inner = {key for reply in replies for call in reply.get("tool_calls") or () for key in call}
    fields |= inner - {"id", "type", "function"}
    if _WANTED.search(words) and not _UNWANTED.search(words) and any("reasoning_content" not in r for r in replies):
        yield _Part((FILLED,), ("reasoning_content", "reasoning"), blind=False)
    if fields:
        yield _Part((NO_STATE,), (*sorted(fields), "reasoning", "thinking", "thought", "signature"))
    contents = [message.get("content") for message in messages]
    images = dict(each for content in contents if isinstance(content, list) for each in _images(content))
    # It is the image that is new which was refused, if others were taken before.
    for refused in filter(None, (tuple(form for form in images if form not in taken), tuple(images))):
        one = images[refused[0]] if len(refused) == 1 else ""
        said = f"the image {one}: it was left out" if one else ""
        yield _Part(refused, ("image", "image_url", "vision", "multimodal"), said)
    if any(len(reply.get("tool_calls") or ()) > 1 for reply in replies):
        yield _Part((ONE_CALL,), ("tool_call", "call", "parallel"))
    if any(content in ("", None) for content in contents):
        yield _Part((NO_EMPTY,), ("content", "empty"))
    yield from _parts_of_tools(functions, words)
    if any(message["role"] == "tool" for message in messages):
        yield _Part(
            (CALLS_AS_TEXT,), ("role_tool", "tool_role", "tool_message", "tool_result", "tool_call_id"), blind=False
        )
    if any(message["role"] == "system" for message in messages):
        yield _Part((NO_SYSTEM,), ("system", "role"))
    if tools:
        yield _Part((NO_TOOLS,), ("tool", "function", "tool_choice"), blind=False)
    if "stream" in arguments:
        yield _Part((f"{OPTION}stream",), ("stream", "streaming"), blind=False)


def _images(content: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the form without each image of a message, and its name if the text names as many."""
    urls = [part["image_url"]["url"] for part in content if "image_url" in part]
    names = [name for part in content for name in _IMAGE_NAME.findall(part.get("text", ""))]
    for at, url in enumerate(urls):
        yield image_form(url), names[at] if len(names) == len(urls) else ""


def _parts_of_tools(functions: list[dict[str, Any]], words: str) -> Iterator[_Part]:
    numbers = [int(number) for number in re.findall(r"(?<![\w.])\d{1,3}(?![\w.]\d)", words)]
    fewer = [number for number in numbers if 0 < number < len(functions)]
    if fewer:
        yield _Part((f"{MOST_TOOLS}{max(fewer)}",), ("tool", "function"), blind=False)
    keys = set(_keys([function.get("parameters") for function in functions]))
    if keys:
        yield _Part((PLAIN_SCHEMAS,), ("schema", "parameters", *sorted(keys)))


def _keys(value: Any) -> Iterator[str]:
    """Yield the keywords of schemas, not the names of their properties."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each)
    elif isinstance(value, dict):
        yield from (key for key in value if key not in _PLAIN_KEYS)
        for key, each in value.items():
            yield from _keys(list(each.values()) if key == "properties" and isinstance(each, dict) else each)


def _said(form: str) -> str:
    name = form.partition(":")[2]
    if form.startswith(OPTION):
        option, _, anew = name.partition(">")
        return f"the option {option}: it is sent as {anew}" if anew else f"the option {option}: it was left out"
    if form.startswith(TOOL):
        return f"the tool {name}: it was left out"
    if form.startswith(MOST_TOOLS):
        return f"more than {name} tools: the last ones were left out"
    return _SAID[NO_IMAGES if form.startswith(IMAGE) else form]
