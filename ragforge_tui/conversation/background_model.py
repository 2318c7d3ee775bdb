"""Access to the model for background work, with a deadline per request and priority for turns.

A local server answers one request after another, so a running summary would delay the next message. The request is
cancelled when a turn starts and repeated when the turn is over. A user who writes faster than the model summarises
would have the same request cut off by each message, so each cut lets the next request wait for a longer rest between
turns. Remote models answer both at once. The deadline lives here because only this module knows when a request is in
flight: waiting for a turn to end does not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.llm import ChatModel
from ragforge_tui.llm.base import Messages, ModelPart
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import Usage

REQUEST_SECONDS = 120.0
"""Deadline of one request of background work."""
GIVEN_UP = 3
"""Failures in a row after which summaries are extracted until the model answers again."""


class ActiveTurns:
    """Running turns of an agent, in all of its conversations, and the rest between them that background work needs."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = asyncio.Event()
        self._ended = asyncio.Event()
        self._idle_since = 0.0
        self._patience = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark a turn as running inside the context."""
        self._count += 1
        self._idle.clear()
        self._busy.set()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._busy.clear()
                self._idle.set()
                self._idle_since = time.monotonic()

    @property
    def any(self) -> bool:
        return self._count > 0

    def cut(self) -> None:
        """Note that a turn cut a request off, so that the next one waits for a longer rest."""
        self._patience = min(max(2 * self._patience, CONVERSATION.first_patience), CONVERSATION.longest_patience)

    def answered(self) -> None:
        """Note that a request was answered, so that the next one may start earlier."""
        self._patience = self._patience / 2 if self._patience > CONVERSATION.first_patience else 0.0

    def end(self) -> None:
        """Let requests start without a rest: no turn follows."""
        self._ended.set()

    async def wait_idle(self) -> None:
        """Wait until no turn runs, and has not for as long as the last cuts demand."""
        while True:
            await self._idle.wait()
            left = self._idle_since + self._patience - time.monotonic()
            if not self._patience or left <= 0 or self._ended.is_set():
                return
            waits = [asyncio.create_task(event.wait()) for event in (self._busy, self._ended)]
            try:
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waits:
                    task.cancel()

    async def wait_busy(self) -> None:
        await self._busy.wait()


class Backoff:
    """Backoff after a model failed or did not answer in time."""

    def __init__(self) -> None:
        self.failures = 0
        """Number of consecutive failures."""
        self._pause = 0.0
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the model may be asked again; 0 if it may be asked now."""
        return max(0.0, self._until - time.monotonic())

    @property
    def given_up(self) -> bool:
        """Return whether it failed so often that work should not wait for it."""
        return self.failures >= GIVEN_UP

    def succeeded(self) -> None:
        self.failures, self._until = 0, 0.0

    def failed(self) -> None:
        """Start a backoff, twice as long as the last one."""
        self._pause = min(2 * self._pause, CONVERSATION.longest_pause) if self.failures else CONVERSATION.first_pause
        self.failures += 1
        self._until = time.monotonic() + self._pause


class BackgroundModel:
    """A `ChatModel` whose complete answers have a deadline.

    Args:
        active_turns: For a model that answers one request after another: requests wait until no turn runs and are
            repeated if a turn interrupts them. None for other models.
        seconds: Deadline of a request, counted while it is in flight.
        on_usage: Receives the name of the model and what each answered request took.
    """

    def __init__(
        self,
        model: ChatModel,
        backoff: Backoff,
        active_turns: ActiveTurns | None = None,
        *,
        seconds: float = REQUEST_SECONDS,
        on_usage: Callable[[str, Usage], Awaitable[None]] | None = None,
    ) -> None:
        self._model = model
        self._backoff = backoff
        self._active_turns = active_turns or ActiveTurns()
        self._seconds = seconds
        self._on_usage = on_usage
        self.name = model.name
        self.offline = model.offline
        self.takes_reasoning = model.takes_reasoning
        self.takes_images = False
        self.destination = model.destination
        self.server = model.server

    @property
    def context_window(self) -> int:
        """Return the size of the model's context window in tokens."""
        return self._model.context_window

    def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Stream without waiting for a pause, because only turns stream, never background work."""
        return self._model.stream(messages, tools=tools, cache_marks=cache_marks)

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """Return a complete answer, requested as soon as no turn needs the model.

        Raises:
            TimeoutError: A request exceeded its deadline.
            ModelError: The provider failed permanently.
        """
        try:
            answer = await self._complete_when_idle(messages, max_tokens)
        except (ModelError, TimeoutError):
            self._backoff.failed()
            raise
        self._backoff.succeeded()
        if self._on_usage is not None:
            await self._on_usage(self.name, answer[1])
        return answer

    async def _ask(self, messages: Messages, max_tokens: int | None) -> tuple[str, Usage]:
        async with asyncio.timeout(self._seconds):
            return await self._model.complete(messages, max_tokens=max_tokens)

    async def _complete_when_idle(self, messages: Messages, max_tokens: int | None) -> tuple[str, Usage]:
        while True:
            await self._active_turns.wait_idle()
            request = asyncio.create_task(self._ask(messages, max_tokens))
            interruption = asyncio.create_task(self._active_turns.wait_busy())
            try:
                await asyncio.wait({request, interruption}, return_when=asyncio.FIRST_COMPLETED)
                if request.done():
                    self._active_turns.answered()
                    return request.result()
                self._active_turns.cut()
            finally:
                for task in (request, interruption):
                    task.cancel()
                await asyncio.gather(request, interruption, return_exceptions=True)
