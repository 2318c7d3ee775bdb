"""What every model can do, whether a provider's, a local one or the built-in assistant.

The conversation room knows only this interface. Leans on the shared words.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import msgspec

from ragforge_tui.llm.parts import ModelPart
from ragforge_tui.models import Usage

Messages = list[dict[str, Any]]
"""Messages in OpenAI's chat format."""

DEFAULT_CONTEXT_WINDOW = 32_768
"""Tokens assumed for a model nobody knows anything about."""

OFFLINE_NAME = "offline"
THIS_MACHINE = "this machine"
"""The destination of what is asked at a loopback address."""
KEYLESS = "no-key-needed"
"""Sent to an address that was given without a key."""


class ChatModel(Protocol):
    """A model that can hold a conversation and call tools."""

    @property
    def name(self) -> str:
        """The name it goes by, as a person would configure it."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens it can read; exact only after `preload`."""
        ...

    @property
    def offline(self) -> bool:
        """Whether it is the built-in assistant, not a language model."""
        ...

    @property
    def destination(self) -> str:
        """Where what is said goes, in words."""
        ...

    @property
    def server(self) -> str:
        """Host and port of a server on this machine, such as ``127.0.0.1:8080``, else the destination."""
        ...

    def stream(
        self, messages: Messages, *, tools: list[dict[str, Any]] | None, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        """Answer; the parts come as the model makes them and end with `Finished`.

        Args:
            messages: The conversation in OpenAI's format; at most one of role system, the first. Runs of user
                messages are fine: they are joined where a request leaves this program.
            tools: Function tools in OpenAI's format; None asks for a plain answer.
            cache_marks: Offsets in the system message's text, ascending: what comes before each of them stays the
                same in later requests, so that a provider may cache it.

        Raises:
            ModelError: When the provider fails for good, also after some parts were yielded.
        """
        ...

    async def complete(self, messages: Messages, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        """A whole answer at once, without tools: titles, summaries."""
        ...


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which model answers, and why.

    Attributes:
        origin: Where the choice came from, in words ("OPENAI_API_KEY in the environment").
        destination: Where what is said goes, in words ("api.openai.com", "this machine").
        api_base: Empty: the provider's own address.
        api_key: Empty: the provider's own variable.
    """

    name: str
    origin: str
    destination: str
    api_base: str = ""
    api_key: str = ""
    offline: bool = False

    def __repr__(self) -> str:
        return f"ModelChoice({self.name!r}, origin={self.origin!r}, destination={self.destination!r})"
