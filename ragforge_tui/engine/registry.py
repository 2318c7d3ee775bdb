"""Registry of the requests' handlers, and the state of an engine that they use.

A handler is an async function decorated with `handles`; importing its module registers it. `handlers` imports the
modules of this package.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.other_processes import ConversationWatcher
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.wire import R, Request, RequestLine, Shutdown


@dataclass(frozen=True)
class EngineContext:
    """State of an engine that handlers use.

    Attributes:
        watcher: Reports changes by other processes; None without a user interface.
    """

    agent: ConversationAgent
    loaded: Loaded
    watcher: ConversationWatcher | None = None

    @classmethod
    def of(cls, agent: ConversationAgent, loaded: Loaded) -> EngineContext:
        """Return the context of an agent, which gets a watcher if a user interface shows its events."""
        return cls(agent, loaded, ConversationWatcher(agent) if agent.interactive else None)

    def conversation(self, conversation_id: str) -> Conversation:
        """Return an open conversation.

        Raises:
            NotFoundError: This process does not have it open.
        """
        conversation = self.agent.opened(conversation_id)
        if conversation is None:
            raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
        return conversation

    def close(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()


AnyRequest = TypeVar("AnyRequest")
Handler = Callable[[EngineContext, AnyRequest], Awaitable[R]]

_HANDLERS: dict[type[Request[Any]], Handler[Any, Any]] = {}


def handles(kind: type[Request[R]]) -> Callable[[Handler[AnyRequest, R]], Handler[AnyRequest, R]]:
    """Register the decorated function as the handler of a request; its result is the request's answer."""

    def register(handler: Handler[AnyRequest, R]) -> Handler[AnyRequest, R]:
        _HANDLERS[kind] = handler
        return handler

    return register


def request_decoder() -> msgspec.json.Decoder[RequestLine[Request[Any]]]:
    """Return a decoder of lines with any request that has a handler, `Shutdown` included."""
    union = functools.reduce(operator.or_, _HANDLERS, Shutdown)
    return msgspec.json.Decoder(RequestLine[union])  # type: ignore[valid-type]  # the union is known at run time only


async def answer(engine: EngineContext, request: Request[Any]) -> Any:
    """Answer one request with its handler.

    Raises:
        RagforgeError: The request failed or has no handler; the message is meant for the user.
    """
    handler = _HANDLERS.get(type(request))
    if handler is None:
        raise RagforgeError(f"The engine does not support the request {type(request).__name__}.", kind="protocol")
    return await handler(engine, request)
