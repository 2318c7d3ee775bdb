"""Server of the protocol on a pair of pipes: the body of the child process, separate so that tests can call it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
from typing import Any

import msgspec

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.event_queue import EventQueue
from ragforge_tui.engine.handlers import EngineContext, answer, request_decoder
from ragforge_tui.engine.process import log_to_file
from ragforge_tui.engine.start import EngineStart
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ErrorInfo, RagforgeError, storage_error
from ragforge_tui.shared.wire import MAX_LINE_BYTES, ReplyLine, Request, Shutdown

log = logging.getLogger(__name__)

QUIT_SECONDS = 1.0
"""Longest wait of a quitting user for the memory; opening the conversation again finishes the rest."""
ORPHAN_SECONDS = 30.0
"""The same wait after the user interface is gone."""
TURN_SECONDS, COMMAND_SECONDS = 600.0, 120.0
"""Time limits of an answer and of a running command after the user interface is gone."""


async def serve(read_fd: int, write_fd: int) -> int:
    """Serve requests until Shutdown or end of file; return the exit status."""
    kind = os.fstat(read_fd).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        log.error("the standard input is no pipe, so nothing would end this engine")
        return 2
    reader = await _reader(read_fd)
    try:
        line = await reader.readline()
    except ValueError:
        log.error("the first line is longer than %d bytes", MAX_LINE_BYTES)
        return 2
    if not line:
        return 0  # The user left before the engine had started.
    start = msgspec.json.decode(line, type=EngineStart)
    loaded, options = start.loaded, start.options
    log_to_file(loaded.paths)
    agent = ConversationAgent(loaded, approve_all=options.approve_all, interactive=options.interactive)
    server = PipeServer(agent, loaded, QUIT_SECONDS if options.settle_seconds is None else options.settle_seconds)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, server.stop)
    # The user interface handles a hang-up or ctrl+c of the terminal; its death shows as end of file.
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    return await server.run(reader, write_fd)


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb", buffering=0))
    return reader


class PipeServer:
    """Server of one agent on a pipe: answers requests, and sends events."""

    def __init__(self, agent: ConversationAgent, loaded: Loaded, settle_seconds: float = QUIT_SECONDS) -> None:
        self._agent = agent
        self._settle_seconds = settle_seconds
        self._context = EngineContext.of(agent, loaded)
        self._queue = EventQueue()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._orderly = False

    def stop(self) -> None:
        """Request an orderly shutdown; another SIGTERM ends the process at once."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        self._orderly = True
        self._stop.set()

    async def run(self, reader: asyncio.StreamReader, write_fd: int) -> int:
        background = [
            asyncio.create_task(self._forward_events()),
            asyncio.create_task(self._write(write_fd)),
            asyncio.create_task(self._read(reader)),
        ]
        self._agent.start()
        await self._stop.wait()
        self._context.close()
        if not self._orderly:
            log.info("the user interface is gone; finishing the running turn")
            await _finish_alone(self._agent)
        # A user who quits waits for no model: what it would still write is made at the next start.
        quits = self._orderly and self._settle_seconds <= QUIT_SECONDS
        await self._agent.close(
            settle_seconds=self._settle_seconds if self._orderly else ORPHAN_SECONDS, summaries=not quits
        )
        await asyncio.sleep(0)  # lets the writer send the last answers
        for task in (*background, *self._tasks):
            task.cancel()
        await asyncio.gather(*background, *self._tasks, return_exceptions=True)
        return 0

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            await self._read_requests(reader)
        except ValueError:
            log.error("a request is longer than %d bytes, so that no other can be read", MAX_LINE_BYTES)
        finally:
            self._stop.set()

    async def _read_requests(self, reader: asyncio.StreamReader) -> None:
        decoder = request_decoder()
        while line := await reader.readline():
            try:
                request = decoder.decode(line)
            except msgspec.MsgspecError as error:
                log.error("invalid request: %s", error)
                continue
            if isinstance(request.request, Shutdown):
                self._orderly = True
                return
            task = asyncio.create_task(self._answer(request.id, request.request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, id: int, request: Request[Any]) -> None:
        try:
            result = await answer(self._context, request)
            line = ReplyLine(id=id, result=msgspec.Raw(msgspec.json.encode(result)))
        except RagforgeError as error:
            line = ReplyLine(id=id, error=error.info, error_class=type(error).__name__)
        except Exception as error:
            log.exception("request %s failed", type(request).__name__)
            what = f"That failed unexpectedly ({type(error).__name__})."
            info = storage_error(error) or ErrorInfo(kind="internal", what=what, todo="See the log.")
            line = ReplyLine(id=id, error=info)
        self._queue.reply(line)

    async def _forward_events(self) -> None:
        with self._agent.subscribe() as events:
            while True:
                self._queue.event(await events.get())

    async def _write(self, fd: int) -> None:
        transport, protocol = await asyncio.get_running_loop().connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb", buffering=0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, asyncio.get_running_loop())
        try:
            while True:
                for line in await self._queue.lines():
                    writer.write(line)
                    await writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            log.info("the reader is gone")


async def _finish_alone(agent: ConversationAgent) -> None:
    """Finish the running turn within limits after the user interface is gone, and start no new one."""
    services = agent.services
    services.toolbox.writes_frozen = True
    services.approvals.close()
    services.trust.close()
    services.personas.close()
    services.project.close()

    async def end_commands() -> None:
        await asyncio.sleep(COMMAND_SECONDS)
        await services.toolbox.close()

    limit = asyncio.create_task(end_commands())
    try:
        async with asyncio.timeout(TURN_SECONDS):
            await agent.finish_turns()
    except TimeoutError:
        pass
    finally:
        limit.cancel()
