"""One reply of the model while it streams: shown as it comes, stored as it comes.

The message is in the graph before its first word and is brought up to date at least once a second, with the lease
that says its writer lives. Used by the turn loop, one instance a reply.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

import msgspec

from ragforge_tui.conversation.recorder import Recorder
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import (
    Event,
    MessageFinished,
    MessageStarted,
    ModelRetry,
    ModelWaiting,
    Notice,
    ReasoningDelta,
    TextDelta,
)
from ragforge_tui.graph import writer_id
from ragforge_tui.llm import ChatModel, Finished, ModelPart, Progress, ReasoningPart, Retrying, TextPart, ToolRequest
from ragforge_tui.memory.context import StoredContext
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.models import Message, MessageState, now
from ragforge_tui.personas import Persona
from ragforge_tui.redaction import mask_secrets
from ragforge_tui.text import storable

CHECKPOINT_SECONDS = 0.8
"""Pause between checkpoints; with the write itself below the second that a crash may cost."""
LEASE = timedelta(seconds=10)
SILENCE_SECONDS = 15.0
"""A silence of the model is reported after this time, then after twice that, and from a minute on every minute."""
_SILENCE_STEP = 60.0
_CUT_SHORT = {
    "length": "The answer was cut off at the limit on its length (model.max_output_tokens, or the context window).",
    "content_filter": "The provider's content filter cut the answer off.",
}
_EMPTY = "The model ended its answer without a word."


class Reply:
    """Streams one assistant message into the record and the events.

    Args:
        on_stop: Called when somebody asked, through the graph, that this turn stop.
    """

    def __init__(
        self,
        *,
        conversation_id: str,
        turn_index: int,
        persona: Persona,
        context: StoredContext,
        model: ChatModel,
        recorder: Recorder,
        emit: Callable[[Event], None],
        on_stop: Callable[[], None],
    ) -> None:
        self._model = model
        self._persona = persona
        self._context = context
        self._recorder = recorder
        self._emit = emit
        self._on_stop = on_stop
        self.requests: list[ToolRequest] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._stored_length = -1
        self._reason = ""
        self._heard = monotonic()
        self._begun = False
        self._next_word = SILENCE_SECONDS
        self.message = Message(
            uuid=uuid.uuid4().hex,
            conversation_id=conversation_id,
            turn_index=turn_index,
            role="assistant",
            state="streaming",
            writer=writer_id(),
            lease_until=now() + LEASE,
            timestamp=now(),
            persona=persona.name,
            persona_glyph=persona.fields.glyph,
            persona_color=persona.fields.color,
            model=model.name,
        )

    async def stream(
        self, messages: list[ChatMessage], tools: list[dict[str, Any]] | None, cache_marks: Sequence[int]
    ) -> list[ToolRequest]:
        """Ask the model and record its answer; returns the calls it wants.

        Raises:
            ModelError: When the provider failed; what had come is stored with the message.
            asyncio.CancelledError: When stopped; what had come is stored as interrupted.
        """
        self.message = await self._recorder.add_message(self.message)
        # Nobody waits for these; they are stored while the model thinks.
        origins = asyncio.create_task(self._store_origins())
        self._emit(
            MessageStarted(
                conversation_id=self.message.conversation_id,
                turn_index=self.message.turn_index,
                message_id=self.message.uuid,
                persona=self.message.persona,
                persona_glyph=self.message.persona_glyph,
                persona_color=self.message.persona_color,
                model=self.message.model,
            )
        )
        keeper = asyncio.create_task(self._keep_checkpointing())
        try:
            await self._ask(messages, tools, cache_marks, keeper)
        finally:
            await origins
        return self.requests

    async def _store_origins(self) -> None:
        """Store who speaks here and what the request held."""
        await self._recorder.spoken_as(self.message, digest=self._persona.digest, text=self._persona.text)
        await self._recorder.store_context(self.message, self._context)

    async def _ask(
        self,
        messages: list[ChatMessage],
        tools: list[dict[str, Any]] | None,
        cache_marks: Sequence[int],
        keeper: asyncio.Task[None],
    ) -> None:
        try:
            async for part in self._model.stream(messages, tools=tools, cache_marks=cache_marks):
                self._take(part)
        except asyncio.CancelledError:
            await _ended(keeper)
            await self._finish("interrupted")
            raise
        except Exception as error:
            await _ended(keeper)
            if isinstance(error, RagforgeError) and (words := len("".join(self._text).split())):
                kept = f"{words} word{'s' if words != 1 else ''} of the answer {'are' if words != 1 else 'is'} kept."
                error.info = msgspec.structs.replace(error.info, kept=error.info.kept or kept)
            await self._finish("failed", str(error))
            raise
        await _ended(keeper)
        shortfall = self._shortfall()
        if shortfall and self.requests:
            # The turn goes on: a call that lost its end is refused, and the model told.
            self._emit(Notice(text=shortfall, level="warning", conversation_id=self.message.conversation_id))
            shortfall = ""
        if shortfall:
            kept = " What came is kept." if any(self._text) else ""
            await self._finish("interrupted", f"{shortfall}{kept} /retry asks again.")
        else:
            await self._finish("complete")

    def _shortfall(self) -> str:
        """Return why the answer is not what was asked for although it ended in order, empty when it is."""
        if self._reason in _CUT_SHORT:
            return _CUT_SHORT[self._reason]
        return "" if self.requests or "".join(self._text).strip() else _EMPTY

    def _report_silence(self) -> None:
        if monotonic() - self._heard < self._next_word:
            return
        self._emit(
            ModelWaiting(
                conversation_id=self.message.conversation_id,
                turn_index=self.message.turn_index,
                server=self._model.server,
                seconds=round(self._next_word),
                begun=self._begun,
            )
        )
        self._next_word += min(self._next_word, _SILENCE_STEP)

    def _take(self, part: ModelPart) -> None:
        where: dict[str, Any] = {
            "conversation_id": self.message.conversation_id,
            "turn_index": self.message.turn_index,
        }
        self._heard = monotonic()
        self._begun = not isinstance(part, Retrying)
        self._next_word = SILENCE_SECONDS
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
            case Progress():
                pass
            case Retrying():
                self._heard += part.wait_seconds
                self._emit(
                    ModelRetry(
                        attempt=part.attempt,
                        attempts=part.attempts,
                        wait_seconds=part.wait_seconds,
                        reason=part.reason,
                        **where,
                    )
                )
            case Finished(usage=usage, reason=reason):
                self._reason = reason
                self.message.usage = usage
                self.message.token_count = usage.output_tokens

    async def _keep_checkpointing(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            self._report_silence()
            length = len(self._text) + len(self._reasoning)
            if length != self._stored_length:
                # One string from here on: joining the same pieces every second would grow with the answer's square.
                self._text = ["".join(self._text)]
                self._reasoning = ["".join(self._reasoning)]
                self._stored_length = len(self._text) + len(self._reasoning)
            self.message.lease_until = lease_until = now() + LEASE
            go_on = await self._recorder.checkpoint(
                self.message,
                content=mask_secrets(self._text[0] if self._text else ""),
                reasoning=mask_secrets(self._reasoning[0] if self._reasoning else ""),
                lease_until=lease_until,
            )
            if not go_on:
                self._on_stop()

    async def _finish(self, state: MessageState, error: str = "") -> None:
        self.message.state = state
        self.message.content = mask_secrets("".join(self._text))
        self.message.reasoning = mask_secrets("".join(self._reasoning) or _given_reasons(self.requests))
        self.message.char_count = len(self.message.content)
        self.message.error = mask_secrets(storable(error))
        self.message.lease_until = None
        await self._recorder.finish_message(self.message)
        self._emit(
            MessageFinished(
                conversation_id=self.message.conversation_id,
                turn_index=self.message.turn_index,
                message=msgspec.structs.replace(self.message),
            )
        )


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _given_reasons(requests: list[ToolRequest]) -> str:
    """The `reason` arguments of the calls, which stand in for a reasoning stream."""
    reasons = (given_reason(request.arguments) for request in requests)
    return "\n".join(reason for reason in reasons if reason)


def given_reason(arguments: str) -> str:
    """The optional `reason` of a call, empty when there is none or the arguments are malformed."""
    try:
        value = json.loads(arguments).get("reason", "")
    except (ValueError, AttributeError):
        return ""
    return value if isinstance(value, str) else ""
