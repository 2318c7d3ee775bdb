"""One streaming reply of the model, displayed and stored as it arrives.

The message is stored while the model is asked, before its first word is shown, and updated at least once a second,
together with the lease that shows that its writer is alive. The turn loop creates one instance per reply.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any

import msgspec

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.turn.request import TurnRequest
from ragforge_tui.graph import writer_id
from ragforge_tui.llm import (
    ChatModel,
    Finished,
    LeftOut,
    ModelPart,
    Progress,
    ReasoningPart,
    Retrying,
    TextPart,
    ThoughtEnded,
    ToolRequest,
)
from ragforge_tui.memory.context import StoredContext
from ragforge_tui.personas import Persona
from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.events import (
    Event,
    MessageFinished,
    MessageStarted,
    ModelRetry,
    ModelWaiting,
    Notice,
    ReasoningDelta,
    TextDelta,
)
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import Message, MessageState, Turn, now
from ragforge_tui.shared.redaction import mask_secrets, mask_words
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import last_failed_tests

LEASE = timedelta(seconds=10)
_SILENCE_STEP = 60.0
_CUT_SHORT = {
    "length": "The answer reached its length limit (model.max_output_tokens or the context window).",
    "content_filter": "The provider's content filter stopped the answer.",
    "refusal": "The model refused to answer.",
}
_WHOLE = ("stop", "tool_calls", "")
_LONGEST_REASON = 80
_EMPTY = "The model returned an empty answer."


MESSAGE_KEPT = "Your message is kept."


class Reply:
    """One assistant message that streams into the store and the events.

    Args:
        turn: Its turn, to which the message is added.
        recalled: See `Message.recalled`.
        on_stop: Called if another process requests, through the graph, that this turn stop.

    Attributes:
        requests: Its tool calls.
        state: See `Finished.state`.
    """

    def __init__(
        self,
        *,
        turn: Turn,
        persona: Persona,
        model: ChatModel,
        recalled: str,
        recorder: Recorder,
        emit: Callable[[Event], None],
        on_stop: Callable[[], None],
    ) -> None:
        self._turn = turn
        self._turn_id = turn.messages[0].uuid
        self._model = model
        self._persona = persona
        self._recorder = recorder
        self._emit = emit
        self._on_stop = on_stop
        self.requests: list[ToolRequest] = []
        self.state: dict[str, Any] | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._stored_length = -1
        self._reason = ""
        self._last_activity = monotonic()
        self._answering = False
        self._retries = 0
        """How often the request was sent again, by the model's client or shorter or to a fallback."""
        self._silence_limit = CONVERSATION.silence
        self._begun: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        """Set when the model has answered or failed."""
        self._origins: asyncio.Task[None] | None = None
        self._checkpoints: asyncio.Task[None] | None = None
        self.message = Message(
            uuid=uuid.uuid4().hex,
            conversation_id=turn.messages[0].conversation_id,
            turn_index=turn.turn_index,
            role="assistant",
            state="streaming",
            writer=writer_id(),
            lease_until=now() + LEASE,
            timestamp=now(),
            persona=persona.name,
            persona_glyph=persona.fields.glyph,
            persona_color=persona.fields.color,
            model=model.name,
            recalled=recalled,
        )
        turn.messages.append(self.message)

    @property
    def _where(self) -> dict[str, Any]:
        """Return the place for an event; the index may change while the reply streams."""
        return {"conversation_id": self.message.conversation_id, "turn_index": self._turn.turn_index}

    async def stream(self, request: TurnRequest) -> None:
        """Ask the model and store its answer.

        Raises:
            ModelError: The provider failed; the partial answer is stored with the message.
            asyncio.CancelledError: The turn was stopped; the partial answer is stored as interrupted.
        """
        # The model is asked meanwhile: what has to be stored before that is the user's message.
        self._begun = asyncio.create_task(self._begin(request))
        try:
            await self._ask(request)
        finally:
            if self._origins is not None:
                await self._origins

    async def _begin(self, request: TurnRequest) -> None:
        """Store the message, and announce it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMITS.head_start):
                await self._heard.wait()
        self.message = self._turn.messages[-1] = await self._recorder.add_message(self.message, self._turn_id)
        # Stored while the model thinks, since nothing depends on them.
        self._origins = asyncio.create_task(self._store_origins(request.stored))
        self._emit(
            MessageStarted(
                message_id=self.message.uuid,
                persona=self.message.persona,
                persona_glyph=self.message.persona_glyph,
                persona_color=self.message.persona_color,
                model=self.message.model,
                recalled=self.message.recalled,
                **self._where,
            )
        )
        self._checkpoints = asyncio.create_task(self._keep_checkpointing())

    async def _begun_message(self) -> None:
        """Wait until the message is stored; a turn that is stopped meanwhile stores it nevertheless."""
        assert self._begun is not None
        self._heard.set()
        if self._begun.done():
            self._begun.result()
        else:
            await asyncio.shield(self._begun)

    async def _end_checkpoints(self) -> None:
        await self._begun_message()
        if self._checkpoints is not None:
            self._checkpoints.cancel()
            await asyncio.gather(self._checkpoints, return_exceptions=True)

    async def _store_origins(self, context: StoredContext) -> None:
        """Store the persona and the context of the request."""
        await self._recorder.spoken_as(self.message, digest=self._persona.digest, text=self._persona.text)
        await self._recorder.store_context(self.message, context)

    async def _ask(self, request: TurnRequest) -> None:
        try:
            while not await self._answered(request):
                self._retries += 1
                await self._recorder.store_context(self.message, request.stored)
        except asyncio.CancelledError:
            await self._end_checkpoints()
            await self._finish("interrupted")
            raise
        except Exception as error:
            await self._end_checkpoints()
            if isinstance(error, RagforgeError):
                words = len("".join(self._text).split())
                part = f"{counted(words, 'word')} of the answer {'are' if words != 1 else 'is'} stored."
                kept = part if words else MESSAGE_KEPT
                error.info = msgspec.structs.replace(error.info, kept=error.info.kept or kept)
            await self._finish("failed", str(error))
            raise
        await self._end_checkpoints()
        shortfall = self._shortfall()
        if shortfall and self.requests:
            # The turn continues: a truncated call is refused, and the model is informed.
            self._emit(Notice(text=shortfall, level="warning", conversation_id=self.message.conversation_id))
            shortfall = ""
        if shortfall:
            kept = " The partial answer is stored." if any(self._text) else ""
            await self._finish("interrupted", f"{shortfall}{kept} Use /retry to ask again.")
        else:
            await self._finish("complete")

    async def _answered(self, request: TurnRequest) -> bool:
        """Receive the answer; return False if another request is ready: a shorter one, or one for a fallback."""
        messages, tools = await request.messages(), request.inputs.tools.schemas()
        try:
            async for part in self._model.stream(messages, tools=tools, cache_marks=request.inputs.context.cache_marks):
                await self._begun_message()
                self._take(part)
        except ModelError as error:
            await self._begun_message()
            if self._answering:
                raise
            if not await request.shrink(error):
                if not await request.fall_back(error):
                    raise
                self._model = request.inputs.model
                self.message.model = self._model.name
            return False
        return True

    def _shortfall(self) -> str:
        """Return why an answer that ended normally is cut short or empty; an empty string if it is complete."""
        if self._reason not in _WHOLE:
            named = mask_words(self._reason)[:_LONGEST_REASON]
            return _CUT_SHORT.get(self._reason) or f"The provider ended the answer early: “{named}”."
        return "" if self.requests or "".join(self._text).strip() else _EMPTY

    def _report_silence(self) -> None:
        if monotonic() - self._last_activity < self._silence_limit:
            return
        self._emit(
            ModelWaiting(
                server=self._model.server,
                seconds=round(self._silence_limit),
                begun=self._answering,
                **self._where,
            )
        )
        self._silence_limit += min(self._silence_limit, _SILENCE_STEP)

    def _take(self, part: ModelPart) -> None:
        where = self._where
        self._last_activity = monotonic()
        self._answering = not isinstance(part, Retrying)
        self._silence_limit = CONVERSATION.silence
        match part:
            case TextPart(text=text):
                text = storable(text)
                self._text.append(text)
                self._emit(TextDelta(message_id=self.message.uuid, text=text, **where))
            case ReasoningPart(text=text):
                text = storable(text)
                self._reasoning.append(text)
                self._emit(ReasoningDelta(message_id=self.message.uuid, text=text, **where))
            case ToolRequest():
                self.requests.append(
                    msgspec.structs.replace(part, name=storable(part.name), arguments=storable(part.arguments))
                )
            case ThoughtEnded():
                moved, self._text = "".join(self._text).rstrip(), []
                self._reasoning.append(moved)
                self._emit(ReasoningDelta(message_id=self.message.uuid, text=moved, **where))
            case LeftOut(text=text):
                conversation = self.message.conversation_id
                self._emit(Notice(text=mask_words(text), level="warning", conversation_id=conversation))
            case Progress():
                pass
            case Retrying():
                self._retries += 1
                self._last_activity += part.wait_seconds
                self._emit(
                    ModelRetry(
                        attempt=part.attempt,
                        attempts=part.attempts,
                        wait_seconds=part.wait_seconds,
                        reason=part.reason,
                        limited=part.limited,
                        **where,
                    )
                )
            case Finished(usage=usage, reason=reason):
                self._reason, self.state = reason, part.state
                self.message.usage = msgspec.structs.replace(usage, retries=self._retries)

    async def _keep_checkpointing(self) -> None:
        while True:
            await asyncio.sleep(CONVERSATION.checkpoint)
            self._report_silence()
            length = len(self._text) + len(self._reasoning)
            if length != self._stored_length:
                # Joined once: joining all pieces every second would take time quadratic in the length of the answer.
                self._text = ["".join(self._text)]
                self._reasoning = ["".join(self._reasoning)]
                self._stored_length = len(self._text) + len(self._reasoning)
            self.message.lease_until = lease_until = now() + LEASE
            proceed = await self._recorder.checkpoint(
                self.message,
                self._turn_id,
                content=mask_secrets(self._text[0] if self._text else ""),
                reasoning=mask_secrets(self._reasoning[0] if self._reasoning else ""),
                lease_until=lease_until,
            )
            if not proceed:
                self._on_stop()

    async def _finish(self, state: MessageState, error: str = "") -> None:
        self.message.state = state
        self.message.content = mask_secrets("".join(self._text))
        self.message.reasoning = mask_secrets("".join(self._reasoning) or _given_reasons(self.requests))
        self.message.char_count = len(self.message.content)
        self.message.error = mask_secrets(storable(error))
        self.message.lease_until = None
        if state == "complete" and not self.requests:
            kept = (message for message in self._turn.messages if message.state != "superseded")
            calls = [call for message in kept for call in message.tool_calls]
            self.message.failed_tests = last_failed_tests(calls)
        await self._recorder.finish_message(self.message, self._turn_id)
        self._emit(MessageFinished(message=msgspec.structs.replace(self.message), **self._where))


def _given_reasons(requests: list[ToolRequest]) -> str:
    """Return the `reason` arguments of the calls, the substitute for a reasoning stream."""
    reasons = (given_reason(request.arguments) for request in requests)
    return "\n".join(reason for reason in reasons if reason)


def given_reason(arguments: str) -> str:
    """Return the optional `reason` of a call, empty if it is missing or the arguments are malformed."""
    value = json_object(arguments).get("reason")
    return value if isinstance(value, str) else ""
