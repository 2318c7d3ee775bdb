"""A model on this machine, asked in the background: it gives way to whoever talks.

A local server answers one request after another, so a summary that has begun would hold up the next message. It is
given up when a turn begins and asked for again when the turn is over. Models elsewhere answer both at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ragforge_tui.llm import ChatModel
from ragforge_tui.llm.base import Messages
from ragforge_tui.llm.parts import ModelPart
from ragforge_tui.models import Usage


class Quiet:
    """Whether nobody is being answered, in any conversation of an agent."""

    def __init__(self) -> None:
        self._turns = 0
        self._silent = asyncio.Event()
        self._silent.set()
        self._broken = asyncio.Event()

    @contextmanager
    def broken(self) -> Iterator[None]:
        """While a turn is being answered."""
        self._turns += 1
        self._silent.clear()
        self._broken.set()
        try:
            yield
        finally:
            self._turns -= 1
            if not self._turns:
                self._broken.clear()
                self._silent.set()

    async def wait(self) -> None:
        """Until nobody is being answered."""
        await self._silent.wait()

    async def until_broken(self) -> None:
        """Until a turn begins."""
        await self._broken.wait()


class BackgroundModel:
    """A `ChatModel` whose whole answers wait for quiet, and are asked for again when that is broken."""

    def __init__(self, model: ChatModel, quiet: Quiet) -> None:
        self._model = model
        self._quiet = quiet
        self.name = model.name
        self.offline = model.offline
        self.destination = model.destination
        self.server = model.server

    @property
    def context_window(self) -> int:
        """Tokens the model can read."""
        return self._model.context_window

    def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Answer at once: only who talks streams."""
        return self._model.stream(messages, tools=tools, cache_marks=cache_marks)

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """A whole answer, as soon as nobody else needs the model."""
        while True:
            await self._quiet.wait()
            asking = asyncio.create_task(self._model.complete(messages, max_tokens=max_tokens))
            breaking = asyncio.create_task(self._quiet.until_broken())
            try:
                await asyncio.wait({asking, breaking}, return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    return asking.result()
            finally:
                for task in (asking, breaking):
                    task.cancel()
                await asyncio.gather(asking, breaking, return_exceptions=True)
