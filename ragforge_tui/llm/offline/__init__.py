"""Built-in assistant that answers without any language model, from the files and the memory.

It runs the same loop as a model: it requests tools, gets their results in the next request and quotes them with path
and line. Everything follows from the messages alone, so the same conversation gets the same answer. Used by the
conversation through `ChatModel`; `intents` reads the questions and `answers` words the answers.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import msgspec

from ragforge_tui.llm.base import (
    DEFAULT_CONTEXT_WINDOW,
    OFFLINE_NAME,
    THIS_MACHINE,
    Finished,
    Messages,
    ModelPart,
    TextPart,
    ToolRequest,
)
from ragforge_tui.llm.offline.answers import (
    Evidence,
    FinishedCall,
    Hit,
    answer,
    best_hits,
    grep_hits,
    introducing_file,
    is_listing,
)
from ragforge_tui.llm.offline.intents import Intent, key_terms, parse_intent
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import Usage

_MOST_ROUNDS = 4
_INTRODUCING_LINES = 80
_PIECE = re.compile(r"\s*\S+\s*")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_QUOTED = re.compile(r"^(?:- )?`[^`]+:\d+(?:-\d+)?`|^- (?:you|me|vous|moi): |^`[^`]+`$|^>")
_BEFORE, _AFTER = 3, 14
_CUT = re.compile(r"^\[\d+ matches in \d+ files", re.M)
_ENDINGS = re.compile(r"(?:ies|ing|es|ed|s)$")


class OfflineAssistant:
    """Deterministic `ChatModel` that states plainly that it is not a language model."""

    name = OFFLINE_NAME
    context_window = DEFAULT_CONTEXT_WINDOW
    offline = True
    takes_reasoning = False
    takes_images = False
    destination = THIS_MACHINE
    server = THIS_MACHINE

    async def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Request the next tools, or answer from their results, in small pieces."""
        start = _last_question(messages)
        intent = parse_intent(_text(messages[start])) if messages else Intent(kind="help")
        done = _done(messages[start + 1 :])
        rounds = sum(1 for message in messages[start + 1 :] if message.get("tool_calls"))
        offered = {str(tool["function"]["name"]) for tool in tools or []}
        planned = next_calls(intent, done, offered) if rounds < _MOST_ROUNDS else []
        if planned:
            for number, call in enumerate(planned):
                yield _request(call, f"offline_{start}_{rounds}_{number}")
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


def _done(messages: Messages) -> list[FinishedCall]:
    """Return the tool calls of this turn that have a result, in order."""
    results = {str(m.get("tool_call_id")): _text(m) for m in messages if m.get("role") == "tool"}
    done: list[FinishedCall] = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            if (result := results.get(str(call["id"]))) is not None:
                function = call["function"]
                arguments = json_object(function["arguments"])
                done.append(FinishedCall(name=function["name"], arguments=arguments, text=result))
    return done


def _request(call: PlannedCall, call_id: str) -> ToolRequest:
    arguments = {**call.arguments, "reason": call.reason}
    return ToolRequest(id=call_id, name=call.name, arguments=json.dumps(arguments, ensure_ascii=False))


def _past(messages: Messages, terms: list[str]) -> list[tuple[str, str]]:
    """Return earlier lines of user and assistant about the terms as (role, line), the newest last."""
    if not terms:
        return []
    # A user message right before another is context (workspace, memory block, note), or was never answered.
    following = [message.get("role") for message in messages[1:]] + ["user"]
    messages = [m for m, after in zip(messages, following, strict=True) if not m.get("role") == after == "user"]
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


class PlannedCall(msgspec.Struct, frozen=True):
    """Tool call to make."""

    name: str
    arguments: dict[str, Any]
    reason: str


def next_calls(intent: Intent, done: list[FinishedCall], offered: set[str]) -> list[PlannedCall]:
    """Return the calls to make now; none if it is time to answer. No call is ever made twice."""
    match intent.kind:
        case "replace":
            planned = _replace(intent, done)
        case "read":
            planned = _read(intent, done)
        case "lookup":
            planned = _lookup(intent, done)
        case "about":
            planned = _about(done)
        case _:
            planned = [] if done else _only_call(intent)
    made = [(call.name, {key: value for key, value in call.arguments.items() if key != "reason"}) for call in done]
    return [call for call in planned if call.name in offered and (call.name, call.arguments) not in made]


def search_pattern(terms: list[str]) -> str:
    """Return a regular expression that matches any of the terms, also with another ending."""
    stems = [_ENDINGS.sub("", term) if term.isalpha() and term.islower() and len(term) > 5 else term for term in terms]
    return "|".join(re.escape(stem) for stem in dict.fromkeys(stems))


def _only_call(intent: Intent) -> list[PlannedCall]:
    """Return the call of a request that needs no other; none for a greeting."""
    match intent.kind:
        case "run":
            return [PlannedCall("run_command", {"command": intent.command}, "You asked to run it.")]
        case "list":
            return [PlannedCall("glob_files", {"path": intent.path or "."}, "To see what is there.")]
        case "create":
            arguments = {"path": intent.path, "content": intent.new}
            return [PlannedCall("write_file", arguments, "You asked for this file.")]
        case "find_file":
            return [PlannedCall("glob_files", {"pattern": intent.path}, "To find these files.")]
        case _:
            return []


def _about(done: list[FinishedCall]) -> list[PlannedCall]:
    """Return the calls that introduce a project: list its top level, then read its README or manifest."""
    if not done:
        return [PlannedCall("glob_files", {"path": "."}, "To see what is there.")]
    introduction = introducing_file(done[0].text)
    if len(done) > 1 or not introduction:
        return []
    arguments = {"path": introduction, "start_line": 1, "end_line": _INTRODUCING_LINES}
    return [PlannedCall("read_file", arguments, "It introduces the project.")]


def _replace(intent: Intent, done: list[FinishedCall]) -> list[PlannedCall]:
    if not done:
        return [PlannedCall("read_file", {"path": intent.path}, "To see the text before changing it.")]
    if len(done) == 1 and is_listing(done[0].text):
        arguments = {"path": intent.path, "old_string": intent.old, "new_string": intent.new}
        return [PlannedCall("edit_file", arguments, "You asked for this replacement.")]
    return []


def _read(intent: Intent, done: list[FinishedCall]) -> list[PlannedCall]:
    if not done:
        return [_read_call(intent, intent.path)]
    if len(done) == 1 and not is_listing(done[0].text):
        query = intent.path.rsplit("/", 1)[-1]
        return [PlannedCall("glob_files", {"pattern": query}, "No such file; perhaps it is elsewhere.")]
    if len(done) == 2 and done[1].name == "glob_files":
        paths = [line.strip() for line in done[1].text.splitlines()]
        name = intent.path.rsplit("/", 1)[-1].lower()
        same = [path for path in paths if path.rsplit("/", 1)[-1].lower() == name]
        return [_read_call(intent, same[0])] if same else []
    return []


def _read_call(intent: Intent, path: str) -> PlannedCall:
    arguments: dict[str, Any] = {"path": path}
    if intent.lines:
        arguments |= {"start_line": intent.lines[0], "end_line": intent.lines[1]}
    return PlannedCall("read_file", arguments, "To quote it.")


def _lookup(intent: Intent, done: list[FinishedCall]) -> list[PlannedCall]:
    if not intent.terms:
        return []
    if not done:
        words = " ".join(intent.terms)
        pattern = {"pattern": search_pattern(intent.terms), "ignore_case": True}
        return [
            PlannedCall("grep_files", pattern, f"To find where {words} is mentioned."),
            PlannedCall("glob_files", {"pattern": intent.terms[0]}, "It may be a file."),
            PlannedCall("search_history", {"query": words}, "It may have been mentioned before."),
        ]
    if any(call.name == "read_file" for call in done):
        return []
    greps = [call for call in done if call.name == "grep_files"]
    if len(greps) == 1 and len(intent.terms) > 1 and _CUT.search(greps[0].text):
        pattern = {"pattern": _together(intent.terms), "ignore_case": True}
        return [PlannedCall("grep_files", pattern, "Too many matches: lines with two of the words.")]
    hits = [hit for call in done if call.name == "grep_files" for hit in grep_hits(call.text)]
    return [_around(hit) for hit in best_hits(hits, intent.terms)]


def _together(terms: list[str]) -> str:
    """Return a regular expression for lines with two of the terms."""
    stems = [search_pattern([term]) for term in terms[:5]]
    return "|".join(f"{first}.*{second}|{second}.*{first}" for first, second in itertools.combinations(stems, 2))


def _around(hit: Hit) -> PlannedCall:
    arguments = {"path": hit.path, "start_line": max(1, hit.line - _BEFORE), "end_line": hit.line + _AFTER}
    return PlannedCall("read_file", arguments, "To quote the lines around the best match.")
