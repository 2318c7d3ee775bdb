"""Interface of every model, a provider's, a local one or the built-in assistant, and the parts of its answers.

The conversation depends on this interface alone: it turns the parts that `ChatModel.stream` yields into events, and no
code outside this package depends on LiteLLM.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import msgspec

from ragforge_tui.shared.records import Usage

Messages = list[dict[str, Any]]
"""Messages in OpenAI's chat format."""

PROVIDER_STATE = "provider_state"
"""Key of a reply's `Finished.state` in its chat message; never sent under this name."""

PAST_REASONING = "past_reasoning"
"""Key of the reasoning of a past turn's reply in its chat message; never sent under this name."""

IMAGES = "images"
"""Key of a user message's images, a list of data URLs; sent as parts of its content, never under this name."""

DEFAULT_CONTEXT_WINDOW = 32_768
"""Tokens assumed for a model that is not in any table."""

OFFLINE_NAME = "offline"
THIS_MACHINE = "this machine"
"""Destination shown for requests to a loopback address."""
KEYLESS = "no-key-needed"
"""Key sent to an address that was configured without one."""


class TextPart(msgspec.Struct, frozen=True):
    """Piece of the answer's text."""

    text: str


class ReasoningPart(msgspec.Struct, frozen=True):
    """Piece of the model's reasoning before its answer."""

    text: str


class Progress(msgspec.Struct, frozen=True):
    """Sign of life that cannot be shown yet: a piece of a tool call arrived."""


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Tool call requested by the model.

    Attributes:
        arguments: As the model wrote them; JSON if the model is well-behaved.
    """

    id: str
    name: str
    arguments: str


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    """Retry after a failure that may pass; the wait starts now, then the request is sent again.

    Attributes:
        attempt: Number of the retry that follows, from 1.
        attempts: Retries allowed in all.
        reason: The error, as a sentence.
        limited: Whether the provider limits the number of requests.
    """

    attempt: int
    attempts: int
    wait_seconds: float
    reason: str
    limited: bool = False


class LeftOut(msgspec.Struct, frozen=True):
    """Sentence on the refused part: this request and later ones are sent without it."""

    text: str


class ThoughtEnded(msgspec.Struct, frozen=True):
    """End of reasoning that had no beginning: all text of the answer so far was reasoning."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """Normal end of the answer; always the last part.

    Attributes:
        reason: ``stop`` or ``tool_calls``; for an incomplete answer ``length``, ``content_filter``, ``refusal`` or the
            provider's own word for it.
        state: What the provider expects back with this reply while the turn runs, such as signed reasoning; None if
            nothing. It belongs in the reply's message under `PROVIDER_STATE`.
    """

    reason: str
    usage: Usage = Usage()
    state: dict[str, Any] | None = None


ModelPart = TextPart | ReasoningPart | ThoughtEnded | Progress | ToolRequest | Retrying | LeftOut | Finished


class ChatModel(Protocol):
    """Model that can hold a conversation and call tools."""

    @property
    def name(self) -> str:
        """Model name as the user would configure it."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens the model can read; exact only after `preload`."""
        ...

    @property
    def offline(self) -> bool:
        """True for the built-in assistant, which is no language model."""
        ...

    @property
    def takes_reasoning(self) -> bool:
        """True if past replies may be sent with their reasoning."""
        ...

    @property
    def takes_images(self) -> bool:
        """True if user messages may hold images; may load LiteLLM, so call it in a thread."""
        ...

    @property
    def destination(self) -> str: ...

    @property
    def server(self) -> str:
        """Host and port of a server on this machine, such as ``127.0.0.1:8080``, else the destination."""
        ...

    def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Yield the parts of the answer as the model produces them; the last one is `Finished`.

        Args:
            messages: The conversation in OpenAI's format; at most one of role system, the first. Runs of user
                messages are fine: they are joined where a request leaves this program. Replies of the running turn
                may hold their `PROVIDER_STATE`.
            tools: Function tools in OpenAI's format; None asks for a plain answer.
            cache_marks: Offsets in the system message's text, ascending: the text before each of them stays the
                same in later requests, so that a provider may cache it.

        Raises:
            ModelError: The provider failed for good, possibly after some parts were yielded.
        """
        ...

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """Return a whole answer at once, without tools, for titles and summaries."""
        ...


class KnownServers(Protocol):
    """Knowledge about the servers of models."""

    def stated(self, model: ChatModel) -> int | None:
        """Return the window that a model's server states, None while it is not known."""
        ...

    def refused(self, model: ChatModel) -> set[str]:
        """Return the request forms that a model's server needs."""
        ...

    def refuse(self, model: ChatModel, forms: set[str]) -> None:
        """Keep them."""
        ...


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answers, and the reason it was chosen.

    Attributes:
        origin: Source of the choice, in words ("OPENAI_API_KEY in the environment").
        destination: Destination of requests, in words ("api.openai.com", "this machine").
        api_base: Address of the server; empty for the provider's own.
        api_key: Key to send; empty for the one in the provider's own variable.
    """

    name: str
    origin: str
    destination: str
    api_base: str = ""
    api_key: str = ""
    offline: bool = False

    def __repr__(self) -> str:
        return f"ModelChoice({self.name!r}, origin={self.origin!r}, destination={self.destination!r})"
