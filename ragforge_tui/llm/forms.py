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
turns. A request that is refused for that is sent again in another form, which is then kept for the model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from ragforge_tui.llm.base import IMAGES, PAST_REASONING, PROVIDER_STATE, Messages

NO_ANSWER = "[These results were not answered.]"
"""Sent between tool results and a user message: the turn was interrupted, or a note follows."""
LEFT_OUT = "[Earlier messages are left out.]"
"""Sent first in a conversation that starts with the assistant's message, as some imported ones do."""
SEPARATOR = "\n\n"
_TAKEN_BY_ALL = re.compile(r"[0-9a-zA-Z]{9}")
CACHE_MARKS = 4
"""Anthropic accepts no more of them in a request."""
_CACHED = {"type": "ephemeral"}

ONE_CALL = "one call per reply"
FILLED = "reasoning everywhere"
NO_STATE = "no reasoning"
NO_IMAGES = "no images"
_REFUSALS = (
    # Llama 3.x: "This model only supports single tool-calls at once!"
    (ONE_CALL, re.compile(r"single tool.?calls? at once|parallel tool calls? (?:is|are) not supported", re.IGNORECASE)),
    # DeepSeek, Kimi: "The reasoning_content in the thinking mode must be passed back to the API."
    (FILLED, re.compile(r"reasoning_content[^.]*must be passed|missing\W+reasoning|reasoning_content is missing")),
    (
        NO_STATE,
        re.compile(
            r"reasoning_(?:content|details|items)|thinking_blocks|extra_content|provider_specific_fields"
            r"|property 'reasoning'|Item with id 'rs_|(?:thought|thinking)\W[^.]*signature|signature[^.]*thinking",
            re.IGNORECASE,
        ),
    ),
    # OpenAI: "image_url is only supported by certain models", llama.cpp: "image input is not supported", vLLM: "is not
    # a multimodal model" or "At most 0 image(s)", DeepSeek: "unknown variant `image_url`".
    (
        NO_IMAGES,
        re.compile(
            r"image_url is only|variant .image_url|image inputs?\b|not a multimodal|At most 0 image|support images?\b"
            r"|images? (?:is|are) not supported",
            re.IGNORECASE,
        ),
    ),
)
IMAGES_REFUSED = "[The server refused images; this message was sent without them.]"
_EMPTY_REASONING = " "
"""DeepSeek and Kimi take a space for a reasoning that is not known, but not an empty text."""


def form_wanted(refusal: str) -> str:
    """Return the form in which a server may take a request that it refused in these words; empty if there is none."""
    return next((form for form, words in _REFUSALS if words.search(refusal)), "")


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
    sent = alternating(_one_by_one(sent) if ONE_CALL in forms else sent)
    sent = sent if marks is None else _marked_for_cache(sent, marks)
    return [_in_parts(message, forms) if IMAGES in message else message for message in sent]


def _in_parts(message: dict[str, Any], forms: set[str]) -> dict[str, Any]:
    """Return a user message with its images as parts of its content, before the text, as Anthropic recommends."""
    plain = {key: value for key, value in message.items() if key not in (IMAGES, "cache_control")}
    kept = {key: message[key] for key in ("cache_control",) if key in message}
    if NO_IMAGES in forms:
        return {**plain, **kept, "content": f"{message['content']}{SEPARATOR}{IMAGES_REFUSED}"}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in message[IMAGES]]
    return {**plain, "content": [*images, {"type": "text", "text": message["content"], **kept}]}


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
    return [_with_short_ids(message) for message in ordered]


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both as one message; of two replies only the second has calls, whose results follow it."""
    texts = [text for text in (first["content"], second["content"]) if text]
    images = [*first.get(IMAGES, ()), *second.get(IMAGES, ())]
    return {**first, **second, "content": SEPARATOR.join(texts), **({IMAGES: images} if images else {})}


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _short_id(call["id"])} for call in calls]}
    if call_id := message.get("tool_call_id"):
        return {**message, "tool_call_id": _short_id(call_id)}
    return message


def _short_id(call_id: str) -> str:
    """Return an id of nine letters and digits, the same for the same call in every request."""
    if _TAKEN_BY_ALL.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
