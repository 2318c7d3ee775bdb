"""Message forms: what providers and chat templates accept, and what they expect back.

The conversation builds a request from parts (past turns, the memory block, the new message, notes) and need not know
any of this. The client passes every request through `formed`.

Order: servers of local models render messages with the model's own template, and a template refuses what its model was
not trained on: Gemma's and Mistral's a user message after another user message, Mistral's also one after tool results
and a call id that is not nine letters or digits.

Reasoning: within a turn, a reply that made calls is sent back with its reasoning, in the fields it
arrived in. Anthropic ("Building with extended thinking") and Gemini 3 ("Thought signatures") refuse the request without
their signed blocks; DeepSeek ("Thinking mode"), Kimi K2, GLM and MiniMax M2 ("Interleaved thinking") refuse it or work
worse without the text; OpenRouter ("Preserving reasoning") expects its `reasoning_details` unchanged. All but DeepSeek
accept past turns without it, so these fields are not stored. The plain text is: models whose API takes
`reasoning_content` get that of the newest turns. Servers disagree on it: Groq refuses it, DeepSeek wants it in all past
turns. A request that is refused is sent again in another form (`refusals`), which is then kept for the model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Container, Sequence
from typing import Any

from ragforge_tui.llm.base import IMAGES, PAST_REASONING, PROVIDER_STATE, Messages

NO_ANSWER = "[These results were not answered.]"
"""Sent between tool results and a user message: the turn was interrupted, or a note follows."""
LEFT_OUT = "[Earlier messages are left out.]"
"""Sent first in a conversation that starts with the assistant's message, as some imported ones do."""
NO_TEXT = "(no text)"
"""Sent in place of an empty text, to servers that refuse one."""
SEPARATOR = "\n\n"
_TAKEN_BY_ALL = re.compile(r"[0-9a-zA-Z]{9}")
CACHE_MARKS = 4
"""Anthropic accepts no more of them in a request."""
_CACHED = {"type": "ephemeral"}

ONE_CALL = "one call per reply"
FILLED = "reasoning everywhere"
NO_STATE = "no reasoning"
NO_IMAGES = "no images"
NO_TOOLS = "no tools"
CALLS_AS_TEXT = "calls as text"
PLAIN_SCHEMAS = "plain schemas"
NO_SYSTEM = "no system message"
NO_EMPTY = "no empty texts"
IMAGE, OPTION, TOOL, MOST_TOOLS = "image:", "option:", "tool:", "tools:"
"""Beginnings of forms without one image, option or tool, and with at most so many tools."""
NAMED_ANEW = {"max_tokens": "max_completion_tokens"}
"""Options that servers take under another name."""

IMAGES_REFUSED = "[The server refused images; this message was sent without them.]"
_EMPTY_REASONING = " "
"""DeepSeek and Kimi take a space for a reasoning that is not known, but not an empty text."""
_NAME = re.compile(r"[^A-Za-z0-9_-]+")
"""Characters that no provider takes in the name of a tool."""
_SCHEMA_KEYS = ("type", "description", "enum", "required")


def known_tool(name: str, tools: Container[str]) -> str:
    """Return the tool that a model means by a name with prefixes or template tokens; empty if it is none of these."""
    if name in tools:
        return name
    return next((piece for piece in _NAME.split(name) if piece and piece in tools), "")


def called_name(name: str, tools: Container[str]) -> str:
    """Return the known tool that a call names, else the name without its prefix."""
    pieces = [piece for piece in re.split(r"[.:/]", name) if piece and not piece.isdigit()]
    return known_tool(name, tools) or (pieces[-1] if pieces and not _NAME.search("".join(pieces)) else name)


def image_form(url: str) -> str:
    """Return the form without one image."""
    return IMAGE + hashlib.sha256(url.encode()).hexdigest()[:16]


def request_in_forms(arguments: dict[str, Any], forms: Collection[str]) -> dict[str, Any]:
    """Return the arguments of a request without the options and tools that its server does not take."""
    left_out = {form.removeprefix(OPTION) for form in forms if form.startswith(OPTION)}
    sent = {key: value for key, value in arguments.items() if key not in left_out}
    for form in left_out:
        name, _, anew = form.partition(">")
        if anew and name in sent:
            sent[anew] = sent.pop(name)
    tools = [each for each in sent.pop("tools", ()) if TOOL + each["function"]["name"] not in forms]
    most = [int(form.removeprefix(MOST_TOOLS)) for form in forms if form.startswith(MOST_TOOLS)]
    tools = [] if NO_TOOLS in forms else tools[: min(most, default=None)]
    if PLAIN_SCHEMAS in forms:
        tools = [_plain_tool(tool) for tool in tools]
    return sent | ({"tools": tools} if tools else {})


def _plain_tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    plain = {key: function[key] for key in ("name", "description") if key in function}
    return {"type": "function", "function": plain | {"parameters": _plain_schema(function.get("parameters") or {})}}


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of types, descriptions and properties alone, which all servers take."""
    plain = {key: schema[key] for key in _SCHEMA_KEYS if schema.get(key)}
    if not isinstance(plain.get("type"), str):
        kinds = plain.get("type") or [each.get("type") for each in schema.get("anyOf") or () if isinstance(each, dict)]
        plain["type"] = next((kind for kind in kinds if isinstance(kind, str) and kind != "null"), "string")
        plain["type"] = "object" if "properties" in schema else plain["type"]
    if plain["type"] == "object":
        properties = schema.get("properties") or {}
        plain["properties"] = {name: _plain_schema(each) for name, each in properties.items() if isinstance(each, dict)}
    elif plain["type"] == "array":
        items = schema.get("items")
        plain["items"] = _plain_schema(items) if isinstance(items, dict) else {"type": "string"}
    return plain


def formed(
    messages: Messages, *, source: str, both_names: bool = False, marks: Sequence[int] | None = None, forms: set[str]
) -> Messages:
    """Return the messages as they are sent.

    Args:
        source: Model and address that receive them: what another one sent with a reply means nothing to this one.
        both_names: Send reasoning under both of its names. vLLM reads `reasoning` only (its issue 38488), llama.cpp
            and SGLang `reasoning_content`; which of them a server used is lost in LiteLLM.
        marks: See `ChatModel.stream`; None if the provider knows no marks.
        forms: Forms the server asked for.
    """
    sent = [_with_state(message, source, both_names, forms) for message in messages]
    as_text = bool({NO_TOOLS, CALLS_AS_TEXT}.intersection(forms))
    sent = [written for message in sent for written in _as_text(message)] if as_text else sent
    if NO_SYSTEM in forms:
        sent = [message | {"role": "user"} if message["role"] == "system" else message for message in sent]
    sent = alternating(_one_by_one(sent) if ONE_CALL in forms else sent)
    if NO_EMPTY in forms:
        sent = [message if message.get("content") else message | {"content": NO_TEXT} for message in sent]
    sent = sent if marks is None else _marked_for_cache(sent, marks)
    return [_in_parts(message, forms) if IMAGES in message else message for message in sent]


def _in_parts(message: dict[str, Any], forms: set[str]) -> dict[str, Any]:
    """Return a user message with its images as parts of its content, before the text, as Anthropic recommends."""
    plain = {key: value for key, value in message.items() if key not in (IMAGES, "cache_control")}
    kept = {key: message[key] for key in ("cache_control",) if key in message}
    urls = [url for url in message[IMAGES] if NO_IMAGES not in forms and image_form(url) not in forms]
    text = message["content"] if urls == message[IMAGES] else f"{message['content']}{SEPARATOR}{IMAGES_REFUSED}"
    if not urls:
        return {**plain, **kept, "content": text}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {**plain, "content": [*images, {"type": "text", "text": text, **kept}]}


def _as_text(message: dict[str, Any]) -> Messages:
    """Return a message with its calls, or the result of one, as text."""
    if message["role"] == "tool":
        return [{"role": "user", "content": f"[Result of a call:]\n{message['content']}"}]
    if not (calls := message.get("tool_calls")):
        return [message]
    made = [f"[Called {call['function']['name']} with {call['function']['arguments']}]" for call in calls]
    text = "\n".join(filter(None, (message["content"], *made)))
    return [{key: value for key, value in message.items() if key != "tool_calls"} | {"content": text}]


def _with_state(message: dict[str, Any], source: str, both_names: bool, forms: set[str]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return message
    message = dict(message)
    state = message.pop(PROVIDER_STATE, None)
    reasoning = message.pop(PAST_REASONING, "")
    if reasoning and NO_STATE not in forms:
        message["reasoning_content"] = reasoning
    if state and state["source"] == source and NO_STATE not in forms:
        message |= state["message"]
        calls = zip(message["tool_calls"], state["calls"], strict=True)
        message["tool_calls"] = [call | fields for call, fields in calls]
    if both_names and "reasoning_content" in message:
        message["reasoning"] = message["reasoning_content"]
    if FILLED in forms and NO_STATE not in forms:
        message.setdefault("reasoning_content", _EMPTY_REASONING)
    return message


def _one_by_one(messages: Messages) -> Messages:
    """Return the messages with at most one call in a reply, followed by its result."""
    split: Messages = []
    waiting: dict[str, dict[str, Any]] = {}
    for message in messages:
        if message["role"] == "tool" and message["tool_call_id"] in waiting:
            split += [waiting.pop(message["tool_call_id"])]
        first, *others = message.get("tool_calls") or [None]
        waiting |= {call["id"]: {"role": "assistant", "content": "", "tool_calls": [call]} for call in others}
        split.append({**message, "tool_calls": [first]} if others else message)
    return split


def _marked_for_cache(messages: Messages, marks: Sequence[int]) -> Messages:
    """Return the messages with marks for Anthropic's cache at the ends of prefixes that later requests share.

    These are the newest message, for the next request of the turn; the past before the newest question, for the next
    turn; and the past before the question before, which is where the previous turn put that mark: the cache looks back
    20 blocks only ("Prompt caching"), and a turn may have more. The marks left go to the system message.
    """
    questions = [at for at, message in enumerate(messages) if message["role"] == "user"]
    ends = {len(messages) - 1, *(at - 1 for at in questions[-2:])}
    marked = [
        {**message, "cache_control": _CACHED} if at in ends and at > 0 and message["content"] else message
        for at, message in enumerate(messages)
    ]
    left = CACHE_MARKS - sum("cache_control" in message for message in marked)
    if marked[0]["role"] == "system":
        marked[0] = _in_blocks(marked[0], marks[-left:])
    return marked


def _in_blocks(system: dict[str, Any], marks: Sequence[int]) -> dict[str, Any]:
    """Return the system message in blocks, with a mark at the end of each but what follows the last offset."""
    text: str = system["content"]
    cuts = zip((0, *marks), (*marks, len(text)), strict=True)
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text[start:end]} for start, end in cuts if start < end]
    for block in blocks[: len(marks)]:
        block["cache_control"] = _CACHED
    return {**system, "content": blocks}


def alternating(messages: Messages) -> Messages:
    """Return the messages with user and assistant in turn, the user first; no text is left out.

    Runs of one role are joined. Tool results stay after the calls they answer.
    """
    ordered: Messages = []
    for message in messages:
        role, before = message["role"], ordered[-1]["role"] if ordered else "system"
        if role == before and role in ("user", "assistant"):
            ordered[-1] = _joined(ordered[-1], message)
            continue
        if role == "assistant" and before == "system":
            ordered.append({"role": "user", "content": LEFT_OUT})
        elif role == "user" and before == "tool":
            ordered.append({"role": "assistant", "content": NO_ANSWER})
        ordered.append(message)
    return [_with_taken_names(message) for message in ordered]


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both as one message; of two replies only the second has calls, whose results follow it."""
    texts = [text for text in (first["content"], second["content"]) if text]
    images = [*first.get(IMAGES, ()), *second.get(IMAGES, ())]
    return {**first, **second, "content": SEPARATOR.join(texts), **({IMAGES: images} if images else {})}


def _with_taken_names(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with ids and names of calls that every provider takes."""
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [_with_taken_name(call) | {"id": _short_id(call["id"])} for call in calls]}
    if call_id := message.get("tool_call_id"):
        return {**message, "tool_call_id": _short_id(call_id)}
    return message


def _with_taken_name(call: dict[str, Any]) -> dict[str, Any]:
    name = _NAME.sub("_", call["function"]["name"]).strip("_")[:64] or "unknown"
    return {**call, "function": {**call["function"], "name": name}}


def _short_id(call_id: str) -> str:
    """Return an id of nine letters and digits, the same for the same call in every request."""
    if _TAKEN_BY_ALL.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
