"""Built-in assistant that answers without any language model, from the files and the memory.

It runs the same loop as a model: it requests tools, gets their results in the next request and quotes them with path
and line. Everything follows from the messages alone, so the same conversation gets the same answer. Used by the
conversation through `ChatModel`; understanding and wording are in `offline_intents` and `offline_answers`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from ragforge_tui.llm.base import DEFAULT_CONTEXT_WINDOW, OFFLINE_NAME, THIS_MACHINE, Messages
from ragforge_tui.llm.offline.answers import Done, Evidence, answer
from ragforge_tui.llm.offline.intents import Intent, key_terms, understand
from ragforge_tui.llm.offline.plan import Wish, next_calls
from ragforge_tui.llm.parts import Finished, ModelPart, TextPart, ToolRequest
from ragforge_tui.shared.records import Usage

_MOST_ROUNDS = 4
_PIECE = re.compile(r"\s*\S+\s*")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_QUOTED = re.compile(r"^(?:- )?`[^`]+:\d+(?:-\d+)?`|^- (?:you|me|vous|moi): |^`[^`]+`$|^>")


class OfflineAssistant:
    """Deterministic `ChatModel` that states plainly that it is not a language model."""

    name = OFFLINE_NAME
    context_window = DEFAULT_CONTEXT_WINDOW
    offline = True
    destination = THIS_MACHINE
    server = THIS_MACHINE

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Request the next tools, or answer from their results, in small pieces."""
        start = _last_question(messages)
        intent = understand(_text(messages[start])) if messages else Intent(kind="help")
        done = _done(messages[start + 1 :])
        rounds = sum(1 for message in messages[start + 1 :] if message.get("tool_calls"))
        offered = {str(tool["function"]["name"]) for tool in tools or []}
        wishes = next_calls(intent, done, offered) if rounds < _MOST_ROUNDS else []
        if wishes:
            for number, wish in enumerate(wishes):
                yield _request(wish, f"offline_{start}_{rounds}_{number}")
            yield Finished(reason="tool_calls", usage=_usage(messages, ""))
            return
        evidence = Evidence(
            intent=intent,
            done=done,
            past=_past(messages[:start], intent.terms),
            first=not any(message.get("role") == "assistant" for message in messages[:start]),
        )
        text = answer(evidence)
        for piece in _PIECE.findall(text):
            yield TextPart(piece)
            await asyncio.sleep(0)
        yield Finished(reason="stop", usage=_usage(messages, text))

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """Return the start of the last message: not a summary, but never wrong."""
        question = _text(messages[_last_question(messages)]) if messages else ""
        words = " ".join(question.split())[: (max_tokens or 50) * 4]
        return words, _usage(messages, words)


def _last_question(messages: Messages) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            return index
    return max(0, len(messages) - 1)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _done(messages: Messages) -> list[Done]:
    """Return the tool calls of this turn that have a result, in order."""
    results = {str(m.get("tool_call_id")): _text(m) for m in messages if m.get("role") == "tool"}
    done: list[Done] = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            if (result := results.get(str(call["id"]))) is not None:
                function = call["function"]
                done.append(Done(name=function["name"], arguments=_arguments(function["arguments"]), text=result))
    return done


def _arguments(written: str) -> dict[str, Any]:
    try:
        arguments = json.loads(written)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _request(wish: Wish, call_id: str) -> ToolRequest:
    arguments = {**wish.arguments, "reason": wish.reason}
    return ToolRequest(id=call_id, name=wish.name, arguments=json.dumps(arguments, ensure_ascii=False))


def _past(messages: Messages, terms: list[str]) -> list[tuple[str, str]]:
    """Return earlier lines of user and assistant about the terms as (role, line), the newest last."""
    if not terms:
        return []
    if messages and messages[-1].get("role") == "user":
        # A user message right before the question is the memory block, or was never answered.
        messages = messages[:-1]
    folded = [term.lower() for term in terms]
    lines: list[tuple[str, str]] = []
    for message in messages:
        if message.get("role") not in ("user", "assistant"):
            continue
        for line in _own_words(_text(message)):
            # One common word of a longer question means little.
            if sum(term in line.lower() for term in folded) >= min(2, len(folded)) and key_terms(line):
                lines.append((str(message["role"]), line.strip()))
    return list(dict.fromkeys(lines))[-5:]


def _own_words(text: str) -> Iterator[str]:
    """Yield the lines of a message that are not quotations: no code, no lines of files, no earlier messages."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line[mark.end() :].strip())):
            fence = "" if fence else mark[1]
        elif not fence and not _QUOTED.match(line.strip()):
            yield line


def _usage(messages: Messages, text: str) -> Usage:
    """Return rough counts at no cost: the assistant has no tokenizer."""
    read = sum(len(_text(message)) for message in messages)
    return Usage(input_tokens=read // 4, output_tokens=len(text) // 4, cost_usd=0.0)
