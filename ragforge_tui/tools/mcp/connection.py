"""One MCP server: its process or address, the tools it lists, and calls to them.

The connection lives in a task of its own, because the client must be left by the task that entered it. The package
`mcp` takes seconds to import and is imported only here, when a server starts.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge_tui.settings.schema import McpServer
from ragforge_tui.shared.errors import ConfigError, RagforgeError, ToolError
from ragforge_tui.shared.network import transport
from ragforge_tui.shared.redaction import mask_words
from ragforge_tui.shared.requests.extensions import McpState
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.tools.mcp.config import expanded, header_values
from ragforge_tui.tools.mcp.received import AcceptedAnswers, Lines

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, Tool

log = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Time a server has to start and list its tools; one that npx or uvx downloads first needs much of it."""
CLOSE_SECONDS = 5.0
STARTS = 3
"""Times in a row that a server which ended is started again without being asked."""
_CONNECT_SECONDS, _SILENCE_SECONDS = 30.0, 300.0
"""Limits of requests by HTTP; `mcp.timeout` limits each call."""
ANNOUNCED_SECONDS = 0.05
"""Time after a call in which its server may announce that its tools have changed."""
LISTED_SECONDS = 5.0
MOST_PAGES = 10
_CLOSED = -32000
"""The client's code for a connection that is closed."""
_TAIL = 400


class Connection:
    """An MCP server and its state.

    Args:
        changed: Called when its state or its tools have changed.

    Attributes:
        origin: "own" or "project".
        tools: The tools it listed last, kept while it does not run.
        left_out: Names of those it listed that cannot be used.
    """

    def __init__(
        self,
        name: str,
        settings: McpServer,
        origin: str,
        workspace: Path,
        *,
        timeout: float,
        changed: Callable[[], None],
    ) -> None:
        self.name = name
        self.origin = origin
        self.state: McpState = "off"
        self.error = ""
        self.tools: list[Tool] = []
        self.left_out: list[str] = []
        self._odd: list[str] = []
        self._announced = asyncio.Event()
        """Set while the server's word that its tools have changed waits to be followed."""
        self._current = asyncio.Event()
        """Cleared from such a word until the tools are listed again."""
        self._settings = settings
        self._workspace = workspace
        self._timeout = timeout
        self._changed = changed
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._leave = asyncio.Event()
        self._ended = 0
        self._said: deque[str] = deque(maxlen=8)
        """Pieces of what the process wrote to its standard error last."""

    @property
    def where(self) -> str:
        """The command or the address, as configured: references stand for secrets."""
        return self._settings.url or " ".join([self._settings.command, *self._settings.args])

    def start(self) -> None:
        """Start the server unless it runs."""
        if self._task is None or self._task.done():
            self._settled.clear()
            self._leave.clear()
            self._set("starting")
            self._task = asyncio.create_task(self._live(), name=f"mcp {self.name}")

    async def restart(self) -> None:
        """Start the server again on behalf of the user, who may have mended it."""
        await self.stop()
        self._ended = 0
        self.start()
        await self.settled()

    async def stop(self) -> None:
        """End the server."""
        self._leave.set()
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._set("off")

    async def settled(self) -> None:
        """Wait until the server runs or has failed."""
        if self._task is not None:
            await self._settled.wait()

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; a server that has ended is started again, a few times in a row.

        Raises:
            ToolError: The call failed; the message tells the model what to do.
        """
        if self.state == "failed" and self._ended < STARTS:
            self.start()
        await self.settled()
        if self._client is None:
            raise ToolError(
                f"The MCP server {self.name} does not run: {self.error or 'it is switched off'}.",
                todo="Do it without, or ask the user to start it with /mcp.",
            )
        from mcp.shared.exceptions import MCPError

        try:
            result = await self._client.call_tool(tool, arguments, read_timeout_seconds=self._timeout)
        except MCPError as error:
            if error.code != _CLOSED:
                raise ToolError(f"{self.name}: {storable(mask_words(error.message))}.") from error
            await self._end_of_server()
            raise ToolError(
                f"The MCP server {self.name} ended during the call; whether the call took effect is unknown.",
                todo="Check that before you repeat it: the next call starts the server again."
                if self._ended < STARTS
                else "It ended several times in a row: do it without, or ask the user to look at /mcp.",
            ) from error
        except (ValueError, RuntimeError) as error:
            # What the package refuses quotes the answer at length.
            log.info("%s: an answer of %s is not used", self.name, tool, exc_info=error)
            raise ToolError(f"{self.name} gave an answer that is none of the protocol.") from error
        self._ended = 0
        await self._up_to_date(self._client)
        return result

    async def _up_to_date(self, client: Client) -> None:
        """Wait for changes of the tools by a call, if the server announces such changes."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ANNOUNCED_SECONDS):
                await self._announced.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_SECONDS):
                await self._current.wait()

    async def _end_of_server(self) -> None:
        self._ended += 1
        await self.stop()
        self.error = self._last_words() or "it ended during a call"
        self._set("failed")

    async def _live(self) -> None:
        try:
            await asyncio.to_thread(importlib.import_module, "mcp")
            async with asyncio.timeout(START_SECONDS) as limit, self._connected() as client:
                await self._list(client)
                limit.reschedule(None)
                self._client = client
                self.error = ""
                self._set("ready")
                self._settled.set()
                await self._follow(client)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if not self._leave.is_set():
                self._ended += 1
                self.error = self._reason(error)
                self._set("failed")
        finally:
            self._client = None
            self._settled.set()

    async def _follow(self, client: Client) -> None:
        """List the tools again each time the server announces others, until the connection is left."""
        leaving = asyncio.create_task(self._leave.wait())
        self._current.set()
        try:
            while not leaving.done():
                announced = asyncio.create_task(self._announced.wait())
                await asyncio.wait([leaving, announced], return_when=asyncio.FIRST_COMPLETED)
                announced.cancel()
                if self._announced.is_set() and not leaving.done():
                    self._announced.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(START_SECONDS):
                            await self._list(client)
                    self._set("ready")
                self._current.set()
        finally:
            self._current.set()
            leaving.cancel()

    async def _list(self, client: Client) -> None:
        """List the tools, from the first page on."""
        self._odd = []
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        self.tools, self.left_out = tools, self._odd

    async def _hear(self, message: object) -> None:
        """Take note of a message that answers no request."""
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._current.clear()
            self._announced.set()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        import httpx2  # brought by mcp
        from mcp import Client, StdioServerParameters
        from mcp.client import stdio
        from mcp.client.streamable_http import streamable_http_client

        # The class there joins the pieces of a line anew for each, in time that grows with the square of its length.
        vars(stdio)["TextReceiveStream"] = Lines
        settings = self._settings
        async with AsyncExitStack() as stack:
            if settings.url:
                # The package itself follows redirects, within the origin alone.
                client = httpx2.AsyncClient(
                    headers=header_values(settings.headers, os.environ),
                    timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
                    transport=transport(httpx2),
                )
                http = await stack.enter_async_context(client)
                streams = streamable_http_client(expanded(settings.url, os.environ), http_client=http)
            elif settings.command:
                errors = await stack.enter_async_context(self._listening())
                # The package passes on only variables such as HOME and PATH, so the server sees no key of ours.
                process = StdioServerParameters(
                    command=expanded(settings.command, os.environ),
                    args=[expanded(value, os.environ) for value in settings.args],
                    env={key: expanded(value, os.environ) for key, value in settings.env.items()},
                    cwd=self._workspace,
                )
                streams = stdio.stdio_client(process, errlog=errors)
            else:
                raise ConfigError("It has neither a command nor a url.")
            accepted = _accepted(streams, lambda names: self._odd.extend(names))
            yield await stack.enter_async_context(Client(accepted, message_handler=self._hear))

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[Any]:
        """Yield a file for the process's standard error, whose end is kept to explain a failure."""
        self._said.clear()
        reading, writing = os.pipe()
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
        )

        async def listen() -> None:
            while piece := await reader.read(_TAIL):
                self._said.append(piece.decode("utf-8", "replace"))

        listening = asyncio.create_task(listen())
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            listening.cancel()
            transport.close()

    def _last_words(self) -> str:
        said = mask_words("".join(self._said)).strip()
        return " ".join(said[-_TAIL:].split("\n")[-1].split())

    def _reason(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        log.info("MCP server %s failed", self.name, exc_info=error)
        if isinstance(error, RagforgeError):
            return error.info.sentence().rstrip(".")
        if isinstance(error, FileNotFoundError):
            return f"there is no program {self._settings.command}"
        if isinstance(error, TimeoutError):
            return f"it did not answer within {START_SECONDS:.0f} s"
        return self._last_words() or mask_words(str(error) or type(error).__name__)[:_TAIL].rstrip(".")

    def _set(self, state: McpState) -> None:
        self.state = state
        self._changed()


@asynccontextmanager
async def _accepted(
    streams: AbstractAsyncContextManager[Any], left_out: Callable[[list[str]], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Open the streams of a server with its answers brought into form."""
    async with streams as (read, write):
        yield AcceptedAnswers(read, left_out), write
