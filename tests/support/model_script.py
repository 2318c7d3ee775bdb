"""Scripts of a model: steps, the requests that each answers, and their form as a provider sends them.

`scripted_model` plays one in this process, `openai_server` over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from pathlib import Path
from typing import Any, Literal

import msgspec

from ragforge_tui.llm import count_tokens


class Call(msgspec.Struct, kw_only=True):
    """One tool call of a reply; `id` "" leaves the id out, a string as arguments is sent as it is written."""

    name: str
    arguments: str | dict[str, Any] = ""
    id: str | None = None


class Step(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One reply.

    Attributes:
        when: Which requests it answers: those with tools (the agent loop), those without (titles, summaries), or any;
            with `turns_only`, "any" means those with tools.
        match: It answers only requests whose last user message contains this.
        task: It answers only requests whose system message contains this.
        reasoning: Sent before the text.
        chunk: Characters in a chunk of text, reasoning and arguments.
        delay: Seconds before each chunk.
        duration: Seconds the whole reply takes, spread over its chunks (instead of `delay`).
        gate: Wait before chunk number `gate_at` until `server.release(gate)`, or until a file of that name exists.
        unfinished: End the reply in order, but without a reason.
        bare: Send the stream without chunked transfer, so that only the end of the connection marks its end.
        cut: Break the connection after the last chunk, before the reply is whole.
        stall: Say nothing more after the last chunk, and keep the connection open.
        drop: Break the connection without any reply.
        status: Anything but 200 is an error with `message`, `code` and `headers`.
        usage: Replaces the token counts of the reply.
        raw: Sent as it is before everything else: deltas, or whole events where there are no deltas in OpenAI's format.
    """

    when: Literal["any", "tools", "plain"] = "any"
    match: str = ""
    task: str = ""
    text: str = ""
    reasoning: str = ""
    tool_calls: list[Call] = []
    finish: str = ""
    unfinished: bool = False
    bare: bool = False
    chunk: int = 8
    delay: float = 0.0
    duration: float = 0.0
    gate: str = ""
    gate_at: int = 0
    cut: bool = False
    stall: bool = False
    drop: bool = False
    status: int = 200
    message: str = "scripted error"
    code: str = ""
    headers: dict[str, str] = {}
    usage: dict[str, Any] | None = None
    raw: list[dict[str, Any]] = []

    def fits(self, body: dict[str, Any], turns_only: bool) -> bool:
        """Whether this step answers that request."""
        when = "tools" if self.when == "any" and turns_only else self.when
        if when != "any" and (when == "tools") != bool(body.get("tools")):
            return False
        return self.match in last_user_text(body) and self.task in _system_text(body)


class Recorded(msgspec.Struct, kw_only=True):
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    closed: bool = False
    """Whether the client went away before the reply was whole."""


class Script:
    """Steps that are left, and the requests so far.

    Args:
        turns_only: Titles and summaries, asked for in the background and without tools, take none of the steps meant
            for turns. Off for tests of the client itself.

    Attributes:
        refused: What chat templates of local models said to the requests they do not take.
    """

    def __init__(self, steps: list[Step] | None = None, *, turns_only: bool = True) -> None:
        self.turns_only = turns_only
        self.steps: list[Step] = list(steps or [])
        self.requests: list[Recorded] = []
        self.refused: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    def script(self, steps: list[Step] | list[dict[str, Any]]) -> None:
        """Replace the steps left by these."""
        self.steps = msgspec.convert(msgspec.to_builtins(steps), list[Step])

    def release(self, gate: str) -> None:
        """Let the steps waiting at this gate go on."""
        self._gates.setdefault(gate, asyncio.Event()).set()

    def chats(self) -> list[dict[str, Any]]:
        """Return the bodies of the chat requests so far; with `turns_only`, of those with tools."""
        bodies = [request.body for request in self.requests if request.path.endswith("/chat/completions")]
        return [body for body in bodies if body.get("tools") or not self.turns_only]

    def take(self, body: dict[str, Any]) -> Step:
        """Remove and return the first step that fits a request; without one, the last user message comes back."""
        if fitting := [step for step in self.steps if step.fits(body, self.turns_only)]:
            # A question without an answer stands before the next one in the same message: the last one is meant.
            text = last_user_text(body)
            step = fitting[0]
            if step.match:
                step = max((each for each in fitting if each.match), key=lambda each: text.rfind(each.match))
            self.steps.remove(step)
            return step
        if self.turns_only and not body.get("tools"):
            return Step(text="{}")  # no title, no summary: what needs no model stands in
        return Step(text=last_user_text(body))

    async def pause(self, step: Step, number: int, chunks: int) -> None:
        """Wait as a step says before one of its chunks."""
        if step.gate and number == step.gate_at:
            event = self._gates.setdefault(step.gate, asyncio.Event())
            # A process of another test opens a gate by a file.
            while not event.is_set() and not exists(step.gate):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), 0.02 if "/" in step.gate else None)
        seconds = step.duration / max(1, chunks) if step.duration else step.delay
        if seconds:
            await asyncio.sleep(seconds)


def last_user_text(body: dict[str, Any]) -> str:
    """The text of the last user message of a request."""
    for message in reversed(body.get("messages", [])):
        if message.get("role") == "user":
            content = message.get("content") or ""
            if isinstance(content, list):
                return "".join(str(part.get("text", "")) for part in content)
            return str(content)
    return ""


def _system_text(body: dict[str, Any]) -> str:
    """Return the first message of a request if it is the system's."""
    first = next(iter(body.get("messages", [])), {})
    return str(first.get("content") or "") if first.get("role") == "system" else ""


def request_tokens(body: dict[str, Any]) -> int:
    """Return the tokens of a request, tool schemas included, as tiktoken counts them."""
    texts = [json.dumps(body.get("tools", []))]
    for message in body["messages"]:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [part.get("text", "") for part in parts]
        texts += [call["function"]["name"] + call["function"]["arguments"] for call in message.get("tool_calls") or []]
    return sum(map(_tokens_in, texts)) + 4 * len(body["messages"])


@functools.cache
def _tokens_in(text: str) -> int:
    """Return the tokens of a text, counted once: each request of a turn repeats those of the one before."""
    return count_tokens(text)


def pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), max(1, size))]


def call_deltas(step: Step) -> list[dict[str, Any]]:
    """The calls' deltas: heads first, then pieces of the arguments in turn, as parallel calls arrive."""
    deltas: list[dict[str, Any]] = []
    queues: list[list[str]] = []
    for index, call in enumerate(step.tool_calls):
        written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        head: dict[str, Any] = {"index": index, "type": "function", "function": {"name": call.name, "arguments": ""}}
        call_id = f"call_{index}_{call.name}" if call.id is None else call.id
        if call_id:
            head["id"] = call_id
        deltas.append(head)
        queues.append(pieces(written, step.chunk))
    while any(queues):
        for index, queue in enumerate(queues):
            if queue:
                deltas.append({"index": index, "function": {"arguments": queue.pop(0)}})
    return deltas


def deltas(step: Step) -> list[dict[str, Any]]:
    return [
        *step.raw,
        *({"reasoning_content": piece} for piece in pieces(step.reasoning, step.chunk)),
        *({"content": piece} for piece in pieces(step.text, step.chunk)),
        *({"tool_calls": [delta]} for delta in call_deltas(step)),
    ]


def exists(path: str) -> bool:
    return Path(path).exists()


def usage_of(step: Step, body: dict[str, Any], prompt: int | None = None) -> dict[str, Any]:
    if step.usage is not None:
        return step.usage
    if prompt is None:
        prompt = len(json.dumps(body.get("messages", []))) // 4
    answer = (len(step.text) + len(step.reasoning)) // 4 + 1
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
