"""A scripted OpenAI-compatible server on loopback, for tests.

In a test::

    async with OpenAIServer() as server:
        server.script([Step(tool_calls=[Call(name="read_file", arguments={"path": "a.py"})]), Step(text="Done.")])
        ...   # RAGFORGE_API_BASE=server.base_url, model openai/anything
        server.requests[0].body["messages"]

As a process: ``python -m tests.support.openai_server --port 0 --port-file F --script FILE.json --log FILE.jsonl``.
The script is a JSON list of steps, with the fields of `Step`. Each request takes the first step left that fits it;
without one, the last user message comes back as it is. The log has a line for each request, with the time it had
arrived (`time.monotonic()`, which other processes share).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

import msgspec

from tests.support.chat_templates import refusal
from tests.support.model_script import Recorded, Script, Step, deltas, request_tokens, usage_of

MAX_BODY = 256 * 1024 * 1024


class OpenAIServer(Script):
    """The server; see the module's docstring.

    Attributes:
        window: Tokens a request may have; a longer one gets the 400 that OpenAI answers. None for no limit.
        token_scale: Tokens this server counts for one of tiktoken's.
        key: The key it wants; empty: any or none.
        silent: Whether it never answers a request for its models.
        too_long: Tokens of the requests that were longer.
        refused: See `Script`; each got it as an HTTP 400.
    """

    def __init__(
        self,
        steps: list[Step] | None = None,
        *,
        port: int = 0,
        models: list[str] | None = None,
        ollama_models: list[str] | None = None,
        log: Path | None = None,
        turns_only: bool = True,
    ) -> None:
        super().__init__(steps, turns_only=turns_only)
        self.models = models if models is not None else ["scripted"]
        self.ollama_models = ollama_models
        self.questions: list[Recorded] = []
        """What it was asked about its models."""
        self.about: dict[str, Any] = {}
        """Answers to these questions, by path."""
        self.window: int | None = None
        self.key = ""
        self.silent = False
        self.token_scale = 1.0
        self.too_long: list[int] = []
        self.port = port
        self.client_left = asyncio.Event()
        """Set once a client went away before its reply was whole."""
        self._log = log
        self._bare: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """What RAGFORGE_API_BASE has to be."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        """Listen; `port` is known afterwards."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End at once, replies under way included."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> OpenAIServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in head[1:] if ":" in line)}
        length = int(headers.get("content-length", "0"))
        if length > MAX_BODY:
            raise ConnectionError("body too large")
        raw = await reader.readexactly(length)
        at = time.monotonic()
        body = json.loads(raw) if raw else {}
        request = Recorded(method=method, path=path, headers=headers, raw=raw, body=body)
        asks = method == "GET" or path == "/api/show"
        (self.questions if asks else self.requests).append(request)
        if self._log is not None and not asks:
            with self._log.open("a") as out:
                out.write(json.dumps({"path": path, "at": at, "body": body}) + "\n")
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            await self._json(writer, 401, {"error": {"message": "the key is not valid", "type": "invalid_key"}})
            return True
        if asks:
            await self._lists(path, writer)
            return True
        if method == "POST" and path.endswith("/chat/completions"):
            return await self._chat(request, reader, writer)
        if method == "POST" and (path.endswith(("/v1/messages", "/v1/responses")) or ":streamGenerateContent" in path):
            await self._native(writer)
            return False
        await self._json(writer, 404, {"error": {"message": f"no such path {path}"}})
        return True

    async def _native(self, writer: asyncio.StreamWriter) -> None:
        """Answer as Anthropic, Gemini and OpenAI's responses do, with the events of the next step."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in self.steps.pop(0).raw:
            name = f"event: {event['type']}\n" if "type" in event else ""
            writer.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        await writer.drain()

    async def _lists(self, path: str, writer: asyncio.StreamWriter) -> None:
        if self.silent:
            await asyncio.Event().wait()
        if path in self.about:
            await self._json(writer, 200, self.about[path])
        elif path.endswith("/v1/models"):
            await self._json(writer, 200, {"object": "list", "data": [{"id": name} for name in self.models]})
        elif path == "/api/tags" and self.ollama_models is not None:
            await self._json(writer, 200, {"models": [{"name": name} for name in self.ollama_models]})
        else:
            await self._json(writer, 404, {"error": {"message": f"no such path {path}"}})

    def _tokens(self, body: dict[str, Any]) -> int:
        return int(request_tokens(body) * self.token_scale)

    async def answer(self, body: dict[str, Any]) -> Step:
        """Return the reply to a request."""
        return self.take(body)

    async def _chat(self, request: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if error := refusal(request.body):
            self.refused.append(error)
            await self._json(writer, 400, {"error": {"message": error, "type": "BadRequestError", "code": 400}})
            return True
        if self.window is not None and (tokens := self._tokens(request.body)) > self.window:
            self.too_long.append(tokens)
            text = f"This model's maximum context length is {self.window} tokens, your messages have {tokens} tokens."
            error = {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}
            await self._json(writer, 400, {"error": error})
            return True
        step = await self.answer(request.body)
        if step.drop:
            writer.transport.abort()
            return False
        if step.status != 200:
            error = {"message": step.message, "type": "error", "code": step.code or None, "param": None}
            await self._json(writer, step.status, {"error": error}, step.headers)
            return True
        # The client sends nothing while a reply is under way: reading ends only when it goes away.
        reply = asyncio.ensure_future(self._reply(step, request.body, writer))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({reply, gone}, return_when=asyncio.FIRST_COMPLETED)
            request.closed = not reply.done()
            if request.closed:
                self.client_left.set()
            if reply.done() and not step.cut:
                reply.result()
        finally:
            for task in (reply, gone):
                task.cancel()
            await asyncio.gather(reply, gone, return_exceptions=True)
        return False

    async def _reply(self, step: Step, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if body.get("stream"):
            await self._stream(step, body, writer)
        else:
            await self.pause(step, 0, 1)
            if step.stall:
                await asyncio.Event().wait()
            await self._json(writer, 200, self._whole(step, body), {"Connection": "close"})

    async def _stream(self, step: Step, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        transfer = b"" if step.bare else b"Transfer-Encoding: chunked\r\n"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + transfer + b"Connection: close\r\n\r\n"
        )
        if step.bare:
            self._bare.add(writer)
        chunks = deltas(step)
        self._event(writer, body, {"role": "assistant", "content": ""})
        for number, delta in enumerate(chunks):
            await self.pause(step, number, len(chunks))
            self._event(writer, body, delta)
            await writer.drain()
        await writer.drain()
        if step.stall:
            await asyncio.Event().wait()
        if step.cut:
            # Let the written bytes reach the client, then end without the last chunk.
            await asyncio.sleep(0.05)
            writer.transport.close()
            return
        if not step.unfinished:
            self._event(writer, body, {}, finish=step.finish or ("tool_calls" if step.tool_calls else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            prompt = self._tokens(body) if self.window is not None else None
            self._frame(writer, self._chunk(body, []) | {"usage": usage_of(step, body, prompt)})
        self._raw(writer, b"data: [DONE]\n\n")
        if writer not in self._bare:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _event(
        self, writer: asyncio.StreamWriter, body: dict[str, Any], delta: dict[str, Any], *, finish: str | None = None
    ) -> None:
        self._frame(writer, self._chunk(body, [{"index": 0, "delta": delta, "finish_reason": finish}]))

    def _chunk(self, body: dict[str, Any], choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": body.get("model", ""),
            "choices": choices,
        }

    def _frame(self, writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
        self._raw(writer, b"data: " + json.dumps(event).encode() + b"\n\n")

    def _raw(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data if writer in self._bare else f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _whole(self, step: Step, body: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": step.text}
        if step.reasoning:
            message["reasoning_content"] = step.reasoning
        if step.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"call_{index}_{call.name}",
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                    },
                }
                for index, call in enumerate(step.tool_calls)
            ]
        finish = step.finish or ("tool_calls" if step.tool_calls else "stop")
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage_of(step, body),
        }

    async def _json(
        self, writer: asyncio.StreamWriter, status: int, value: Any, headers: dict[str, str] | None = None
    ) -> None:
        data = json.dumps(value).encode()
        extra = "".join(f"{name}: {text}\r\n" for name, text in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()


def _read_script(path: str) -> list[Step]:
    return msgspec.json.decode(Path(path).read_bytes(), type=list[Step]) if path else []


def _write_port(path: str, port: int) -> None:
    # Written aside and moved, so that a reader never sees half a number.
    partial = Path(path + ".part")
    partial.write_text(str(port))
    partial.replace(path)


async def _serve(args: argparse.Namespace) -> None:
    log = Path(args.log) if args.log else None
    server = OpenAIServer(_read_script(args.script), port=args.port, models=args.model or None, log=log)
    await server.start()
    if args.port_file:
        _write_port(args.port_file, server.port)
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    await done.wait()
    await server.stop()


def main() -> None:
    """Run as a process until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", default="")
    parser.add_argument("--script", default="")
    parser.add_argument("--log", default="")
    parser.add_argument("--model", action="append", help="name listed by /v1/models, repeatable")
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
