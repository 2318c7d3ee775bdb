"""The model as background work asks it: with a deadline for each request, and giving way to whoever talks.

A local server answers one request after another, so a summary that has begun would hold up the next message. It is
given up when a turn begins and asked for again when the turn is over. Models elsewhere answer both at once. The
deadline belongs here because only here it is known when a request is out: waiting for a turn to end is not slowness.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ragforge_tui.errors import ModelError
from ragforge_tui.llm import ChatModel
from ragforge_tui.llm.base import Messages
from ragforge_tui.llm.parts import ModelPart
from ragforge_tui.models import Usage

REQUEST_SECONDS = 120.0
"""The most one request of background work may take."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 1_800.0
"""Seconds until a model that failed is asked again: from one minute, doubled each time, to half an hour."""
GIVEN_UP = 3
"""Failures in a row after which summaries are extracted until the model answers again."""


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


class Patience:
    """How long to leave a model alone that failed or did not answer in time."""

    def __init__(self) -> None:
        self.failures = 0
        """In a row."""
        self._pause = 0.0
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """Until the model may be asked again; 0 when it may be asked now."""
        return max(0.0, self._until - time.monotonic())

    @property
    def given_up(self) -> bool:
        """Whether it failed so often that work should not wait for it."""
        return self.failures >= GIVEN_UP

    def succeeded(self) -> None:
        """Ask again at any time."""
        self.failures, self._until = 0, 0.0

    def failed(self) -> None:
        """Leave the model alone for twice as long as the last time."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if self.failures else FIRST_PAUSE
        self.failures += 1
        self._until = time.monotonic() + self._pause


class BackgroundModel:
    """A `ChatModel` whose whole answers have a deadline.

    Args:
        quiet: For a model that answers one request after another: its requests wait for quiet and are sent again when
            that is broken. None for others.
        seconds: The most a request may take, counted while it is out.
    """

    def __init__(
        self, model: ChatModel, patience: Patience, quiet: Quiet | None = None, *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self._model = model
        self._patience = patience
        self._quiet = quiet or Quiet()
        self._seconds = seconds
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
        """A whole answer, as soon as nobody else needs the model.

        Raises:
            TimeoutError: A request was out for too long.
            ModelError: The provider failed for good.
        """
        try:
            answer = await self._give_way(messages, max_tokens)
        except (ModelError, TimeoutError):
            self._patience.failed()
            raise
        self._patience.succeeded()
        return answer

    async def _ask(self, messages: Messages, max_tokens: int | None) -> tuple[str, Usage]:
        async with asyncio.timeout(self._seconds):
            return await self._model.complete(messages, max_tokens=max_tokens)

    async def _give_way(self, messages: Messages, max_tokens: int | None) -> tuple[str, Usage]:
        while True:
            await self._quiet.wait()
            asking = asyncio.create_task(self._ask(messages, max_tokens))
            breaking = asyncio.create_task(self._quiet.until_broken())
            try:
                await asyncio.wait({asking, breaking}, return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    return asking.result()
            finally:
                for task in (asking, breaking):
                    task.cancel()
                await asyncio.gather(asking, breaking, return_exceptions=True)
