"""The turn loop: ask the model, run its tool calls, and repeat until it makes no more calls.

Every step is stored before the next one starts. A turn ends in exactly one of TurnCompleted, TurnCancelled and
TurnFailed. `Conversation` uses it; it does not depend on any user interface.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ragforge_tui.conversation.budget import CostDeclined, CostStopped, TurnBudget
from ragforge_tui.conversation.prompt import PLANNING
from ragforge_tui.conversation.recorder import Recorder
from ragforge_tui.conversation.reply import Reply
from ragforge_tui.conversation.tool_runner import ToolRunner
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.context import BuiltContext, to_stored
from ragforge_tui.personas import Persona
from ragforge_tui.shared.errors import ErrorInfo, RagforgeError, storage_error
from ragforge_tui.shared.events import Event, TurnCancelled, TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.records import Message, MessageState, Turn, Usage, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import Mode

log = logging.getLogger(__name__)

T = TypeVar("T")

STOP_POLL_SECONDS = 1.0
"""Interval at which the graph is polled for a stop requested by another process."""

_LAST_CALL = (
    "You have used all the steps of this turn; no further tool call will run. "
    "Answer now with what you have, and state what remains to be done."
)

_PLANNING_ENDED = "[The user ended planning mode: you may now use the tools that write files and run commands.]"


class TurnRunner:
    """Runner of one turn whose user message is already stored.

    Args:
        turn: The turn so far; replies are added to it as they arrive.
        context: The part of the request before the turn's own messages.
        schemas: Returns the schemas of the tools currently offered.
        mode: Returns the current mode; the next request informs the model of a change.
        planning: Whether the context already forbids changes.
        budget: Asks the user before a request that would exceed the cost limit.
        max_iterations: Replies with tools before a final answer without them is requested.
        stop: Event that ends the turn when it is set; the partial answer is stored.
    """

    def __init__(
        self,
        *,
        turn: Turn,
        context: BuiltContext,
        persona: Persona,
        model: ChatModel,
        tools: ToolRunner,
        schemas: Callable[[], list[dict[str, Any]]],
        mode: Callable[[], Mode],
        planning: bool,
        recorder: Recorder,
        emit: Callable[[Event], None],
        max_iterations: int,
        stop: asyncio.Event,
        budget: TurnBudget,
    ) -> None:
        self._budget = budget
        self.turn = turn
        self._messages = context.render()
        self._cache_marks = context.cache_marks
        self._context = to_stored(context)
        self._persona = persona
        self._model = model
        self._tools = tools
        self._schemas = schemas
        self._mode = mode
        self._planning = planning
        self._recorder = recorder
        self._emit = emit
        self._max_iterations = max_iterations
        self._stop = stop
        self._usages: list[Usage] = []
        self._text = ""

    @property
    def _conversation_id(self) -> str:
        return self.turn.messages[0].conversation_id

    async def run(self) -> TurnEnd:
        """Run the turn and return its final event, which the caller emits once the conversation is free again."""
        watcher = asyncio.create_task(self._watch_for_stop())
        try:
            return await self._run()
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch_for_stop(self) -> None:
        """Poll the graph for a stop requested by another process, also while tools run.

        A streaming reply is skipped: its checkpoints already report the request.
        """
        while not self._stop.is_set():
            await asyncio.sleep(STOP_POLL_SECONDS)
            if self.turn.messages[-1].state == "streaming":
                continue
            if await self._recorder.stop_requested(self._conversation_id, self.turn.turn_index):
                self._stop.set()

    async def _run(self) -> TurnEnd:
        conversation_id, turn_index = self._conversation_id, self.turn.turn_index
        try:
            await until_stopped(self._converse(), self._stop)
        except Stopped:
            await self._mark_interrupted()
            return TurnCancelled(text=self._text, conversation_id=conversation_id, turn_index=turn_index)
        except CostDeclined:
            await self._mark_ended("interrupted", "")
            return TurnCancelled(text=self._text, conversation_id=conversation_id, turn_index=turn_index)
        except Exception as error:
            info = error_info(error)
            if isinstance(error, CostStopped):
                await self._mark_ended("failed", info.sentence())
            return TurnFailed(error=info, text=self._text, conversation_id=conversation_id, turn_index=turn_index)
        usage = total_usage(self._usages)
        return TurnCompleted(text=self._text, usage=usage, conversation_id=conversation_id, turn_index=turn_index)

    async def _mark_interrupted(self) -> None:
        """Mark a complete reply as interrupted if its tool calls were stopped, so that resuming detects it."""
        last = self.turn.messages[-1]
        if last.role == "assistant" and last.state == "complete" and last.tool_calls:
            last.state = "interrupted"
            await self._recorder.finish_message(last)

    async def _mark_ended(self, state: MessageState, sentence: str) -> None:
        """Store the state of a turn that ended between two replies, in the last reply or in a new empty one."""
        last = self.turn.messages[-1]
        if last.role == "assistant":
            last.state, last.error = state, sentence
            await self._recorder.finish_message(last)
            return
        message = placeholder_reply(self.turn, self._conversation_id, self._persona.name, state, sentence)
        self.turn.messages.append(await self._recorder.add_message(message))

    async def _converse(self) -> None:
        self._messages.append({"role": "user", "content": self.turn.messages[0].content})
        for iteration in range(1, self._max_iterations + 1):
            if not await self._step(iteration):
                return
        # Tools stay in the request, since providers refuse calls in the history of a request without them.
        self._messages.append({"role": "user", "content": _LAST_CALL})
        await self._step(self._max_iterations + 1, run_tools=False)

    async def _step(self, iteration: int, *, run_tools: bool = True) -> bool:
        """Stream one reply and run its calls; return whether the model has to be asked again."""
        await self._budget.before_request()
        reply = Reply(
            conversation_id=self._conversation_id,
            turn_index=self.turn.turn_index,
            persona=self._persona,
            context=self._context,
            model=self._model,
            recorder=self._recorder,
            emit=self._emit,
            on_stop=self._stop.set,
        )
        self.turn.messages.append(reply.message)
        self._announce_mode()
        try:
            requests = await reply.stream(self._messages, self._schemas(), self._cache_marks)
        finally:
            self._record_reply(reply.message)
        if not requests or not run_tools:
            return False
        self._messages += await self._tools.run(reply.message, requests, iteration)
        return True

    def _announce_mode(self) -> None:
        """Inform the model of a mode change since the start of the turn."""
        planning = self._mode() == "plan"
        if planning != self._planning:
            self._planning = planning
            note = f"[The user switched to planning mode.] {PLANNING}" if planning else _PLANNING_ENDED
            self._messages.append({"role": "user", "content": note})

    def _record_reply(self, message: Message) -> None:
        self.turn.messages[-1] = message
        if message.content:
            self._text = message.content
        self._budget.note(message.usage, message.model)
        if message.usage is not None:
            self._usages.append(message.usage)


def placeholder_reply(turn: Turn, conversation_id: str, persona: str, state: MessageState, error: str) -> Message:
    """Return a message in place of the reply of a turn that ended before it, so that resuming shows the reason."""
    return Message(
        uuid=uuid.uuid4().hex,
        conversation_id=conversation_id,
        turn_index=turn.turn_index,
        role="assistant",
        state=state,
        error=mask_secrets(error),
        timestamp=now(),
        persona=persona,
    )


def total_usage(usages: list[Usage]) -> Usage:
    """Return the sum; its cost is None if the price of any request is unknown."""
    costs = [usage.cost_usd for usage in usages]
    priced = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        cost_usd=sum(priced) if priced and len(priced) == len(costs) else None,
    )


class Stopped(Exception):
    """A stop request ended the work."""


async def until_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T:
    """Return the result of `work`, or cancel it and wait for its end if `stop` is set first.

    Raises:
        Stopped: `stop` was set first.
    """
    task = asyncio.create_task(work)
    stopper = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopper}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopper.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    if task.cancelled():
        raise Stopped
    return task.result()


def error_info(error: BaseException) -> ErrorInfo:
    """Return an error as shown to the user; unexpected errors are logged in full and shown as one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RagforgeError):
        return error.info
    log.error("turn failed", exc_info=error)
    return storage_error(error) or ErrorInfo(
        kind="internal",
        what=f"The turn failed unexpectedly ({type(error).__name__}).",
        kept="The partial answer is stored.",
        todo="The log has the details: run ragforge-chat doctor to see where it is.",
    )
