"""Messages of a turn's requests, kept within the model's window.

Providers reject a request above the window, and a turn may need hundreds. Before each request the running turn is
shortened to the tokens left. If a provider still rejects a request as too long, its window is smaller than
assumed or its tokens are: the context is built again for a smaller window, which is remembered for the model unless
the provider named one that is no smaller. If the provider limits requests or is down, it is built for a fallback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import msgspec

from ragforge_tui.conversation.turn.images import has_images, with_images
from ragforge_tui.conversation.turn.inputs import InputBuilder, TurnInputs
from ragforge_tui.memory.context import answer_tokens, system_tokens, to_stored
from ragforge_tui.memory.context.history_window import tokens_of
from ragforge_tui.memory.context.running_turn import RunningTurn
from ragforge_tui.memory.history import ChatMessage, user_messages
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.events import Event, Notice
from ragforge_tui.shared.records import Turn, Usage

SMALLEST_WINDOW = 1_000
"""Tokens below which no request can hold the instructions; the error is shown instead."""
SHRINK = 0.75
"""Factor from a rejected request to the next one if the provider does not state its limit."""
_MOST_SCALE = 2.0
"""Tokens that a provider may count for one of ours."""
OUTAGES = ("rate_limit", "no_network", "stall", "provider")
"""Kinds of errors for which another model is asked: the request was right, and nobody answered it."""


class TurnRequest:
    """The growing request of one turn.

    Args:
        emit: Receives a notice when the window turns out to be smaller.

    Attributes:
        inputs: Inputs of the next request.
        stored: Their context as it is stored with the reply.
    """

    def __init__(self, turn: Turn, inputs: TurnInputs, builder: InputBuilder, emit: Callable[[Event], None]) -> None:
        self._turn = turn
        self.inputs = inputs
        self.stored = to_stored(inputs.context)
        self._builder = builder
        self._emit = emit
        self._running = RunningTurn(turn.turn_index, turn.messages[0].content)
        self._sent: list[ChatMessage] = []
        for steering in turn.messages[1:]:  # of the answer that this one supersedes
            if steering.role == "user":
                self._running.add(user_messages(steering))
        self._estimated = 0
        self._scale = 1.0
        """Tokens the provider counts for one of ours, at least 1."""
        self._tried: list[str] = []
        """Models that failed in this turn."""
        self._told_shorter = False

    def add(self, messages: list[ChatMessage]) -> None:
        """Append a reply with the results of its calls, or a note."""
        self._running.add(messages)

    async def messages(self) -> list[ChatMessage]:
        """Return the messages of the next request. Counting and shortening run in a thread."""
        messages, unseen = await asyncio.to_thread(self._messages)
        if unseen:
            self._builder.tell_blind(self.inputs.model)
        return messages

    def _messages(self) -> tuple[list[ChatMessage], bool]:
        """Return the messages, and whether they name images that the model cannot see."""
        context = self.inputs.context
        window = int(self.inputs.window / self._scale)
        stable = self.inputs.overhead + system_tokens(context)
        own = self._running.messages(window - answer_tokens(window) - stable - context.tokens)
        self._estimated = stable + context.tokens + tokens_of(own)
        self._sent = [*context.render(), *own]
        if not has_images(self._sent):
            return self._sent, False
        seen = self.inputs.model.takes_images
        self._sent = with_images(self._sent, self._builder.stored, seen=seen)
        return self._sent, not seen

    def shown_in(self, result: str) -> str:
        """Return where the last request held exactly this result of a call, such as `t12`; empty if nowhere."""
        if any(m["role"] == "user" and f":\n{result}\n" in m["content"] for m in self._sent):
            return "the message that names it"
        calls = [m["tool_call_id"] for m in self._sent if m["role"] == "tool" and m["content"] == result]
        return self._builder.turn_of_call(calls[-1]) or "this turn" if calls else ""

    def note_usage(self, usage: Usage | None) -> None:
        """Compare the provider's count of the last request with the estimate, for the requests to come."""
        if usage is not None and usage.input_tokens and self._estimated:
            self._scale = max(self._scale, min(usage.input_tokens / self._estimated, _MOST_SCALE))

    async def shrink(self, error: ModelError) -> bool:
        """Prepare a shorter request after one was rejected as too long; return whether there is any.

        Args:
            error: The provider's refusal, with its limit if it states one.
        """
        if error.info.kind != "context_too_long":
            return False
        if error.counted:
            self._scale = max(self._scale, min(error.counted / self._estimated, _MOST_SCALE))
        model, window, scale, refused = self.inputs.model, self.inputs.window, self._scale, self._estimated
        named = error.window or self._builder.named_window(model)
        is_smaller = named is not None and named < window
        # If the window is right, the provider counts more tokens than we do.
        limit = named / scale if named is not None and is_smaller else min(window / scale, refused) * SHRINK
        while limit >= SMALLEST_WINDOW:
            self._scale = window / limit
            self.inputs = await self._builder.build(self._turn, scale=self._scale)
            await asyncio.to_thread(self._messages)
            if self._estimated < refused:
                break
            limit *= SHRINK
        else:
            self._explain(error, named, scale)
            return False
        if is_smaller or (named is None and not error.of_body):
            learned = named if named is not None else int(limit * scale)
            self._builder.learn_window(model, learned, named=named is not None)
            self.inputs, self._scale = replace(self.inputs, window=learned), learned / limit
        self.stored = to_stored(self.inputs.context)
        if not self._told_shorter:
            # A server may refuse several times until a request fits; /context tells what was sent in the end.
            self._told_shorter = True
            text = (
                "The server takes no request of this size: it is shortened and sent again."
                if error.of_body
                else f"{model.name} reads fewer tokens than assumed: the request is shortened and sent again. "
                f"Change it: /settings model.context_window, or /model {model.name}"
            )
            conversation_id = self._turn.messages[0].conversation_id
            self._emit(Notice(text=text, level="warning", conversation_id=conversation_id))
        return True

    def _explain(self, error: ModelError, named: int | None, scale: float) -> None:
        """Put into a refusal why no shorter request can be sent: the same one is never sent twice."""
        stable = int((self.inputs.overhead + system_tokens(self.inputs.context)) * scale)
        window = "" if named is None else f"; {self.inputs.model.name} reads {named:,} with its answer"
        error.info = msgspec.structs.replace(
            error.info,
            what=f"No shorter request is possible: instructions and tools take about {stable:,} tokens{window}.",
            todo="Start the server with a larger window and set model.context_window, or name fewer tools in "
            "tools.enabled; then /retry.",
        )

    async def fall_back(self, error: ModelError) -> bool:
        """Prepare the request for the next model of `model.fallbacks`; return whether there is one.

        A fallback that fails in any way is passed over. The chosen model is asked again in the next turn.
        """
        if not self._tried and error.info.kind not in OUTAGES:
            return False
        failed = self.inputs.model.name
        self._tried.append(failed)
        model = await self._builder.fallback(self._tried)
        if model is None:
            return False
        self._builder.substitute = model
        self._scale = 1.0
        self.inputs = await self._builder.build(self._turn)
        self.stored = to_stored(self.inputs.context)
        later = f" The next message goes to {self._tried[0]} again." if len(self._tried) == 1 else ""
        self._emit(
            Notice(
                text=f"{failed} does not answer: {error.info.what} {model.name} answers instead.{later}",
                level="warning",
                conversation_id=self._turn.messages[0].conversation_id,
            )
        )
        return True
