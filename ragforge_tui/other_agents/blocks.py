"""Parts of messages: texts, thoughts, calls and results, in the forms in which agents keep what APIs sent.

The forms of Anthropic, Google and OpenAI differ in the names of their keys alone, and agents mix them. So one reader
knows them all, and a new version of an agent that stores another form is still read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from ragforge_tui.other_agents.reading import decoded, fields, items, number, text_of, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.records import Usage

PartKind = Literal["text", "thought", "call", "result", "file"]
_RESULTS = ("result", "response", "output")
_CALLS = ("call", "tooluse", "toolrequest")
_THOUGHTS = ("thinking", "reasoning", "thought")
_CALL_IDS = ("tool_use_id", "tool_call_id", "call_id", "callID", "id")
_ARGUMENTS = ("input", "arguments", "args", "action")
_TAG = re.compile(r"<([a-z][\w-]{0,80})(?:\s[^<>]{0,300})?>")
_PROGRAMS = re.compile(r"[a-z][a-z\d]*(?:[-_][a-z\d]+)+|skill|image|permissions")
"""Names such as programs give to the elements with which they begin a text."""
_APPENDED = re.compile(r"system-reminder|environment_details|mode_notice|[\w-]+-hook")
"""Names of elements that programs put among the user's words."""
_MOST_UNCLOSED = 100
"""Elements without an end that are searched to the end of a text: one may consist of nothing else."""
_INPUT = (
    "accumulated_input_tokens",
    "session_prompt_tokens",
    "input_tokens",
    "inputTokens",
    "promptTokenCount",
    "input",
    "prompt_tokens",
)
_OUTPUT = (
    "accumulated_output_tokens",
    "session_completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidatesTokenCount",
    "output",
    "completion_tokens",
)
_CACHED = ("cache_read_input_tokens", "cached_input_tokens", "cacheReadTokens", "cachedContentTokenCount", "cached")
_REASONING = ("thoughtsTokenCount", "thoughts", "reasoning")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a message; `value` holds the arguments of a call, or a result as it was stored."""

    kind: PartKind
    text: str = ""
    id: str = ""
    name: str = ""
    value: Any = None


def parts_of(content: object) -> Iterator[Part]:
    """Yield the parts of a content: a text, or a list of parts in the form of any API."""
    if isinstance(content, str):
        yield Part(kind="text", text=content)
    for block in items(content):
        yield from _part(block)


def add_parts(
    transcript: Transcript,
    role: object,
    content: object,
    at: datetime | None,
    *,
    id: str = "",
    model: str = "",
    usage: Usage | None = None,
    words: Callable[[str], str] | None = None,
    details: object = None,
) -> None:
    """Add a message of any role: the results it carries, the user's words, or a reply with its calls.

    Args:
        id: The agent's own id of the message; parts of a reply that come with the same id are one reply.
        words: Returns what the user wrote of a text; `own_words` if None.
        details: What the agent stored in addition to the results.
    """
    parts = list(parts_of(content))
    for part in parts:
        if part.kind == "result":
            transcript.result(part.id, part.value, at, details=details)
    said = [part.text for part in parts if part.kind in ("text", "file")]
    if role == "user":
        transcript.user("\n\n".join(filter(None, map(words or own_words, said))), at, id=id)
    elif role in ("assistant", "model", "gemini") and (parts or usage):
        thought = "\n\n".join(filter(None, (part.text for part in parts if part.kind == "thought")))
        text = "\n\n".join(filter(None, said))
        transcript.reply(text, at, reasoning=thought, model=model, usage=usage, id=id)
        for part in parts:
            if part.kind == "call":
                transcript.call(part.id, part.name, part.value, at)


def own_words(text: str) -> str:
    """Return the user's own words of a text, without the elements of programs."""
    return without_elements(without_elements(text, _APPENDED)[0], _PROGRAMS, leading=True)[0].strip()


def without_elements(text: str, names: re.Pattern[str], *, leading: bool = False) -> tuple[str, list[str]]:
    """Return a text without the elements of these names, and the contents of those.

    Args:
        leading: Only those at the beginning, one after the other.
    """
    kept, inside = list[str](), list[str]()
    at = unclosed = 0
    for tag in _TAG.finditer(text):
        if leading and text[at : tag.start()].strip():
            break
        if tag.start() < at or not names.fullmatch(tag[1]):
            continue
        end = text.find(f"</{tag[1]}", tag.end())
        if end >= 0:
            kept.append(text[at : tag.start()].rstrip())
            inside.append(text[tag.end() : end].strip())
            at = text.find(">", end) + 1 or len(text)
        elif (unclosed := unclosed + 1) > _MOST_UNCLOSED:
            break
    return "".join([*kept, text[at:]]), inside


def usage_of(value: object, *, cached_apart: bool = False) -> Usage | None:
    """Return the tokens of a reply, whatever their names are; None without any.

    Args:
        cached_apart: The tokens sent do not include those of the cache, as in Anthropic's API.
    """
    told = fields(value)
    cache = fields(told.get("cache"))
    sent, received, cached = (_count(told, names) for names in (_INPUT, _OUTPUT, _CACHED))
    if not told or not (sent or received):
        return None
    cached = cached or number(cache.get("read"))
    written = number(told.get("cache_creation_input_tokens")) or number(cache.get("write"))
    reasoning, cost = _count(told, _REASONING), told.get("cost")
    return Usage(
        input_tokens=sent + (cached + written if cached_apart else 0),
        output_tokens=received + reasoning,
        cached_tokens=cached,
        reasoning_tokens=reasoning or number(told.get("reasoning_output_tokens")),
        cost_usd=float(cost) if isinstance(cost, int | float) and cost > 0 else None,
    )


def _count(told: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((count for name in names if (count := number(told.get(name)))), 0)


def _part(block: dict[str, Any]) -> Iterator[Part]:
    kind = word(block.get("type")).lower().replace("_", "")
    for inner in ("functionCall", "functionResponse"):
        if isinstance(block.get(inner), dict):
            block, kind = block[inner], inner.lower()
    if isinstance(block.get("data"), dict):
        block = block["data"]
    block = {**block, **fields(fields(block.get("toolCall")).get("value")), **fields(block.get("function"))}
    id = next((found for name in _CALL_IDS if (found := word(block.get(name)))), "") or word(block.get("name"))
    if kind in _THOUGHTS or block.get("thought") is True:
        texts = (text_of(block.get(name)) for name in ("thinking", "text", "summary", "content"))
        yield Part(kind="thought", text=next(filter(None, texts), ""))
    elif kind.endswith(_RESULTS):
        yield Part(kind="result", id=id, value=block.get("toolResult", block))
    elif kind.endswith(_CALLS) or "arguments" in block:
        value: Any = next((block[name] for name in _ARGUMENTS if name in block), {})
        name = word(block.get("name") or block.get("tool")) or kind.removesuffix("call")
        yield Part(kind="call", id=id, name=name, value=_whole(value))
    elif kind in ("image", "document"):
        media = word(fields(block.get("source")).get("media_type"))
        yield Part(kind="file", text=f"[{kind}: {media or 'attached'}]")
    elif "text" in block or kind.endswith("text"):
        yield Part(kind="text", text=word(block.get("text")))


def _whole(arguments: object) -> object:
    """Return arguments as an object: some APIs give their JSON text, some both."""
    value = fields(arguments).get("value", arguments)
    return decoded(value) or value if isinstance(value, str) else value
