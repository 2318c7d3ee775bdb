"""The loopback server of the evaluation, and what may answer through it: a script, a model, or files."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ragforge_tui.llm import ModelChoice, TextPart, ToolRequest, make_model
from ragforge_tui.settings.schema import ModelSettings
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer

POLL_SECONDS = 0.2

Body = dict[str, Any]
Answering = Callable[[Body], Awaitable[Step]]


class EvaluationServer(OpenAIServer):
    """Server whose turns are answered by the script while there is one, then by `turns`; the rest by `plain`."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: Answering | None = None
        self.plain: Callable[[str, str], str] = lambda system, material: "{}"

    async def answer(self, body: Body) -> Step:
        if not body.get("tools"):
            texts = [str(message.get("content") or "") for message in body["messages"]]
            return Step(text=self.plain(texts[0], texts[-1]))
        if not self.steps and self.turns is not None:
            return await self.turns(body)
        return await super().answer(body)


def model_answers(name: str, base_url: str) -> Answering:
    """Let a model answer, reached through LiteLLM as the product reaches it."""

    async def answer(body: Body) -> Step:
        choice = ModelChoice(
            name=name,
            origin="--model",
            destination=base_url or "the provider",
            api_base=base_url,
            api_key=os.environ.get("RAGFORGE_API_KEY", ""),
        )
        model = make_model(choice, ModelSettings(name=name, api_base=base_url))
        text, calls = "", []
        async for part in model.stream(body["messages"], tools=body.get("tools")):
            if isinstance(part, TextPart):
                text += part.text
            elif isinstance(part, ToolRequest):
                calls.append(Call(name=part.name, arguments=part.arguments, id=part.id))
        return Step(text=text, tool_calls=calls, chunk=2_000)

    return answer


def file_answers(folder: Path) -> Answering:
    """Let people or agents answer: each request is written as two files, and the answer is awaited as a third."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0

    async def answer(body: Body) -> Step:
        nonlocal count
        count += 1
        name = folder / f"{count:03d}"
        write_request(name, body)
        as_text, as_json = name.with_suffix(".answer.txt"), name.with_suffix(".answer.json")
        print(f"waiting for {as_text} or {as_json.name}", flush=True)
        while True:
            if as_json.exists():
                # Read only once it is whole.
                try:
                    given = json.loads(as_json.read_text(encoding="utf-8"))
                except ValueError:
                    given = None
                if given is not None:
                    calls = [Call(name=call["name"], arguments=call["arguments"]) for call in given.get("calls", [])]
                    return Step(text=given.get("text", ""), tool_calls=calls, chunk=2_000)
            elif as_text.exists() and (text := as_text.read_text(encoding="utf-8")):
                return Step(text=text, chunk=2_000)
            await asyncio.sleep(POLL_SECONDS)

    return answer


def write_request(name: Path, body: Body) -> None:
    """Write a request as ``NAME.request.json`` and, to be read, ``NAME.request.txt``."""
    name.with_suffix(".request.json").write_text(json.dumps(body, ensure_ascii=False, indent=1), encoding="utf-8")
    lines = []
    for message in body["messages"]:
        lines.append(f"======== {message['role']}\n{message.get('content') or ''}")
        for call in message.get("tool_calls") or []:
            lines.append(f"-> {call['function']['name']} {call['function']['arguments']}")
    lines.append("======== tools\n" + "\n".join(tool["function"]["name"] for tool in body.get("tools") or []))
    name.with_suffix(".request.txt").write_text("\n".join(lines), encoding="utf-8")
