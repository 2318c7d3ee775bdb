"""A door in front of a server: closed, nobody answers at its address; open, it leads to the server behind it.

Stands in for a Neo4j that is stopped and started again, or replaced by another one, at one address.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket


class Door:
    """One address on loopback."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()
        self._behind = 0

    @property
    def uri(self) -> str:
        """Its Bolt address."""
        return f"bolt://127.0.0.1:{self.port}"

    async def open(self, port: int) -> None:
        """Lead to the server at that port from now on."""
        self._behind = port
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", self.port)

    async def shut(self) -> None:
        """Answer nobody, and cut who is inside."""
        if self._server is not None:
            self._server.close()
            for task in self._passing:
                task.cancel()
            await asyncio.gather(*self._passing, return_exceptions=True)
            self._server = None

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        for source, target in ((reader, inner_writer), (inner_reader, writer)):
            task = asyncio.create_task(_carry(source, target))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()
        with contextlib.suppress(OSError):
            await target.wait_closed()
