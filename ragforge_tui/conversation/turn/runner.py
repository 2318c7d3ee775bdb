"""The turn loop: ask the model, run its tool calls, and repeat until it makes no more calls.

Every step is stored before the next one starts. A turn ends in exactly one of TurnCompleted, TurnCancelled and
TurnFailed. `Conversation` uses it; it does not depend on any user interface.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from ragforge_tui.conversation.budget import CostDeclined, CostStopped, TurnBudget
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.turn.attached import attached_files
from ragforge_tui.conversation.turn.environment import MODE_NOTES, PLANNING_ENDED
from ragforge_tui.conversation.turn.inputs import InputBuilder
from ragforge_tui.conversation.turn.reminders import Reminders
from ragforge_tui.conversation.turn.reply import MESSAGE_KEPT, Reply
from ragforge_tui.conversation.turn.request import TurnRequest
from ragforge_tui.conversation.turn.steering import STEERED, InputQueue, QueuedTurn
from ragforge_tui.conversation.turn.tool_runner import ToolRunner
from ragforge_tui.llm import PROVIDER_STATE
from ragforge_tui.memory.context import all_turns_fit, recalled_amounts
from ragforge_tui.memory.history import ChatMessage, user_messages
from ragforge_tui.memory.retrieval.reach import called_from
from ragforge_tui.shared.errors import ErrorInfo, RagforgeError, storage_error
from ragforge_tui.shared.events import Notice, Steered, TurnCancelled, TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.output_schema import OutputSchema
from ragforge_tui.shared.records import ContextRecord, Message, MessageState, Turn, Usage, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.turns import TurnLimits
from ragforge_tui.shared.requests.work import Mode

log = logging.getLogger(__name__)

T = TypeVar("T")

_RESULT_SHARE = 10
"""Part of the window that one result may take: a tenth."""
_TOKEN_CHARS = 4
TELLS_IN_TURN = 3
"""The turn that tells, once in a conversation, that all earlier turns were sent and nothing had to be recalled."""
STOP_POLL_SECONDS = 1.0
"""Interval at which the graph is polled for a stop requested by another process."""

_LAST_CALL = (
    "You have used all the steps of this turn; no further tool call will run. "
    "Answer now with what you have, and state what remains to be done."
)


class TurnRunner:
    """Runner of one turn whose user message is already stored.

    Args:
        turn: The turn so far; replies are added to it as they arrive.
        persona: Name of the conversation's persona.
        builder: Builds the inputs of the requests.
        mode: Returns the current mode; the next request informs the model of a change.
        queue: Inputs that wait; the messages among them that steer join the turn before its next request.
        stop: Event that ends the turn when it is set; the partial answer is stored.
        limits: Limits of this turn alone.
    """

    def __init__(
        self,
        services: Services,
        turn: Turn,
        *,
        persona: str,
        builder: InputBuilder,
        mode: Callable[[], Mode],
        queue: InputQueue,
        stop: asyncio.Event,
        limits: TurnLimits,
    ) -> None:
        self._services = services
        self._limits = limits
        self._requests = 0
        self._recorder = services.recorder
        self._turn = turn
        self._conversation_id = turn.messages[0].conversation_id
        self._persona = persona
        self._builder = builder
        self._mode = mode
        self._queue = queue
        self._stop = stop
        self._planning = False
        self._usages: list[Usage] = []
        self._text = ""
        self._request: TurnRequest | None = None
        self._budget = TurnBudget(services.budget, services.approvals, services.emit, turn)

    async def run(self) -> TurnEnd:
        """Run the turn and return its final event, which the caller emits once the conversation is free again."""
        try:
            async with stop_on_request(self._recorder, self._turn, self._stop):
                await until_stopped(self._converse(), self._stop)
        except Stopped:
            await self._mark_interrupted()
            return TurnCancelled(text=self._text, **self._where)
        except CostDeclined:
            await self._mark_ended("interrupted", "")
            return TurnCancelled(text=self._text, **self._where)
        except Exception as error:
            info = error_info(error)
            unanswered = self._turn.messages[-1].role == "user"
            if unanswered:
                info = msgspec.structs.replace(info, kept=info.kept or MESSAGE_KEPT)
            if isinstance(error, CostStopped) or unanswered:
                await self._mark_ended("failed", info.sentence())
            return TurnFailed(error=info, text=self._text, **self._where)
        return TurnCompleted(text=self._text, usage=total_usage(self._usages), **self._where)

    @property
    def _where(self) -> dict[str, Any]:
        return {"conversation_id": self._conversation_id, "turn_index": self._turn.turn_index}

    @property
    def context(self) -> ContextRecord | None:
        """Context of the turn's requests; None before the first one."""
        return self._request.inputs.context.record if self._request is not None else None

    @property
    def _answered(self) -> bool:
        """Return whether a reply of the turn exists, not counting superseded ones."""
        return any(message.role == "assistant" and message.state != "superseded" for message in self._turn.messages)

    async def _mark_interrupted(self) -> None:
        """Store that the turn was stopped before its first reply or during tool calls, so that resuming detects it."""
        last = self._turn.messages[-1]
        stopped_calls = last.state == "complete" and bool(last.tool_calls)
        if last.role != "assistant" or stopped_calls:
            await self._mark_ended("interrupted", "")

    async def _mark_ended(self, state: MessageState, sentence: str) -> None:
        """Store the state of a turn that ended between two replies, in the last reply or in a new empty one."""
        last = self._turn.messages[-1]
        if last.role == "assistant":
            last.state, last.error = state, sentence
            await self._recorder.finish_message(last, self._turn.messages[0].uuid)
            return
        placeholder = Message(
            uuid=uuid.uuid4().hex,
            conversation_id=self._conversation_id,
            turn_index=self._turn.turn_index,
            role="assistant",
            state=state,
            error=mask_secrets(sentence),
            timestamp=now(),
            persona=self._persona,
        )
        self._turn.messages.append(await self._recorder.add_message(placeholder, self._turn.messages[0].uuid))

    async def _converse(self) -> None:
        services = self._services
        self._builder.substitute = None
        with services.memory.pace.urgent():
            inputs = await self._builder.build(self._turn)
        self._builder.sent(inputs)
        self._persona, self._planning = inputs.persona.name, inputs.planning
        request = self._request = TurnRequest(self._turn, inputs, self._builder, services.emit)
        tools = ToolRunner(
            toolbox=inputs.tools,
            recorder=services.recorder,
            approvals=services.approvals,
            workspace=services.workspace,
            emit=services.emit,
            mode=self._mode,
            shown_in=request.shown_in,
            after_edit=services.toolbox.after_edit,
            hooks=services.hooks,
            remind=Reminders(services, self._conversation_id, self._turn.turn_index).before,
            room=lambda: request.inputs.window * _TOKEN_CHARS // _RESULT_SHARE,
        )
        schema = await self._wanted_output(request)
        limit = self._limits.max_requests
        most = limit - 1 if limit else services.settings.model.max_iterations
        stopped = 0
        for iteration in range(1, most + 1):
            await self._steer(request)
            reply = await self._ask(request)
            if not reply.requests:
                order = await services.hooks.stopping(
                    self._conversation_id, reply.message.content, self._mode(), times=stopped
                )
                if not order:
                    await self._check_output(request, schema)
                    return
                stopped += 1
                said = reply.message.content or "(no text)"
                request.add([{"role": "assistant", "content": said}, {"role": "user", "content": order}])
                continue
            with called_from(self._conversation_id, self._turn.turn_index, held=request.inputs.context.held):
                sent, *results = await tools.run(reply.message, reply.requests, iteration)
            request.add([{**sent, PROVIDER_STATE: reply.state} if reply.state else sent, *results])
        # Tools stay in the request, since providers refuse calls in the history of a request without them.
        await self._steer(request)
        request.add([{"role": "user", "content": _LAST_CALL}])
        reply = await self._ask(request)
        if limit and reply.requests:
            raise RagforgeError(
                f"The turn needs more than {limit} model requests.",
                kept="What was done so far is stored.",
                todo="Continue the conversation with a higher limit.",
                kind="max_turns",
            )
        await self._check_output(request, schema)

    async def _wanted_output(self, request: TurnRequest) -> OutputSchema | None:
        """Ask for the form of the answer that the caller wants, and return it; None for any form."""
        wanted = self._limits.output_schema
        if wanted is None:
            return None
        schema = await asyncio.to_thread(OutputSchema, wanted)
        request.add([{"role": "user", "content": schema.request}])
        return schema

    async def _check_output(self, request: TurnRequest, schema: OutputSchema | None) -> None:
        """Check the form of the answer; one that does not have it is asked for once more.

        Raises:
            RagforgeError: The answer does not match.
        """
        if schema is None:
            return
        answer = self._text
        document, problem = await asyncio.to_thread(schema.checked, answer)
        if problem and (not self._limits.max_requests or self._requests < self._limits.max_requests):
            said: list[ChatMessage] = [{"role": "assistant", "content": answer}] if answer else []
            request.add([*said, {"role": "user", "content": schema.repair(problem)}])
            await self._ask(request)
            document, problem = await asyncio.to_thread(schema.checked, self._text)
        if problem:
            raise RagforgeError(problem, kept="The answer is stored.", kind="output_schema")
        self._text = document

    async def _steer(self, request: TurnRequest) -> None:
        """Let the messages that wait for this turn join it."""
        while (item := self._queue.steering()) is not None:
            storing = asyncio.create_task(self._store_steering(item, request.inputs.window))
            try:
                message = await asyncio.shield(storing)
            except asyncio.CancelledError:
                (stored,) = await asyncio.gather(storing, return_exceptions=True)
                if isinstance(stored, BaseException):
                    self._queue.add(item)
                raise
            except Exception:
                self._queue.add(item)  # It starts the next turn, or is taken back.
                raise
            if message is not None:
                request.add(user_messages(message))

    async def _store_steering(self, item: QueuedTurn, window: int) -> Message | None:
        """Store a message of the running turn; None if a hook of the user refused it."""
        message = item.message(self._conversation_id)
        try:
            added = await self._services.hooks.message(
                self._conversation_id, message.content, self._mode(), resumed=True
            )
        except RagforgeError as error:
            self._services.emit(Notice(text=str(error), level="warning", conversation_id=self._conversation_id))
            return None
        attached = await attached_files(self._services.toolbox, message.content, window, anywhere=True)
        message.turn_index = self._turn.turn_index
        message.note = "\n".join(filter(None, [STEERED, attached.text, added]))
        message = await self._recorder.add_message(message, self._turn.messages[0].uuid)
        for left_out in attached.left_out:
            text = f"Not sent with the message: {left_out}."
            self._services.emit(Notice(text=text, conversation_id=self._conversation_id))
        self._turn.messages.append(message)
        self._builder.said(message)
        self._services.emit(Steered(message=msgspec.structs.replace(message), **self._where))
        return message

    async def _ask(self, request: TurnRequest) -> Reply:
        """Stream and store one reply."""
        await self._budget.before_request()
        self._requests += 1
        self._tell_of_memory(request)
        reply = Reply(
            turn=self._turn,
            persona=request.inputs.persona,
            model=request.inputs.model,
            recalled="" if self._answered else recalled_amounts(request.inputs.context.record),
            recorder=self._recorder,
            emit=self._services.emit,
            on_stop=self._stop.set,
        )
        self._announce_mode(request)
        if ended := self._services.toolbox.processes.take_ended(self._conversation_id):
            request.add([{"role": "user", "content": "\n".join(ended)}])
        try:
            await reply.stream(request)
        finally:
            self._record_reply(reply.message)
            request.note_usage(reply.message.usage)
        return reply

    def _tell_of_memory(self, request: TurnRequest) -> None:
        """Tell when memory came too late, and once in a conversation that its turns are sent whole."""
        record = request.inputs.context.record
        if self._answered:
            return
        if record.unsearched:
            text = f"{' '.join(record.unsearched)} Ask again to search them."
        elif self._turn.turn_index == TELLS_IN_TURN and all_turns_fit(record):
            whole = f"All {TELLS_IN_TURN - 1} earlier turns were sent whole"
            text = f"{whole}; once they no longer fit, what matters is recalled."
        else:
            return
        self._services.emit(Notice(text=text, conversation_id=self._conversation_id))

    def _announce_mode(self, request: TurnRequest) -> None:
        """Inform the model of a mode change since the start of the turn."""
        planning = self._mode() == "plan"
        if planning != self._planning:
            self._planning = planning
            note = MODE_NOTES["plan"] if planning else PLANNING_ENDED
            request.add([{"role": "user", "content": note}])

    def note_helper(self, usage: Usage) -> bool:
        """Count a request of a helper as one of this turn; return whether the turn may cost no more."""
        self._usages.append(usage)
        return self._budget.note_helper(usage)

    def _record_reply(self, message: Message) -> None:
        if message.content or self._limits.output_schema is not None:
            self._text = message.content
        self._budget.note(message.usage, message.model)
        if message.usage is not None:
            self._usages.append(message.usage)


def total_usage(usages: list[Usage]) -> Usage:
    """Return the sum; its cost is None if the price of any request is unknown."""
    costs = [usage.cost_usd for usage in usages]
    priced = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        cost_usd=sum(priced) if priced and len(priced) == len(costs) else None,
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        retries=sum(usage.retries for usage in usages),
    )


class Stopped(Exception):
    """A stop request ended the work."""


@asynccontextmanager
async def stop_on_request(recorder: Recorder, turn: Turn, stop: asyncio.Event) -> AsyncIterator[None]:
    """Set `stop` if another process requests it through the graph, polled inside the context, also while tools run.

    A streaming reply is skipped: its checkpoints already report the request.
    """

    async def poll() -> None:
        while not stop.is_set():
            await asyncio.sleep(STOP_POLL_SECONDS)
            streaming = turn.messages[-1].state == "streaming"
            if not streaming and await recorder.stop_requested(turn.messages[0].uuid):
                stop.set()

    polling = asyncio.create_task(poll())
    try:
        yield
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


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
