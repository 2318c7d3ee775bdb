"""What a model's answer is made of while it streams.

`ChatModel.stream` yields these; the turn loop turns them into events. They are apart from the clients so that
whoever consumes an answer needs no client. Leans on the shared words.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.models import Usage


class TextPart(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class ReasoningPart(msgspec.Struct, frozen=True):
    """A piece of what the model thinks before it answers."""

    text: str


class Progress(msgspec.Struct, frozen=True):
    """Something came that cannot be shown yet: a piece of a tool call."""


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The model wants a tool called.

    Attributes:
        arguments: As the model wrote them; JSON when the model is well-behaved.
    """

    id: str
    name: str
    arguments: str


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    """The provider failed in a way that may pass; the wait starts now, then the request is sent again.

    Attributes:
        attempt: The retry that follows, from 1.
        attempts: How many retries there are in all.
        reason: What went wrong, in a sentence.
    """

    attempt: int
    attempts: int
    wait_seconds: float
    reason: str


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The answer ended in order; always the last part.

    Attributes:
        reason: ``stop``, ``tool_calls``, ``length`` or ``content_filter``. With the last two the answer is not whole.
    """

    reason: str
    usage: Usage = Usage()


ModelPart = TextPart | ReasoningPart | Progress | ToolRequest | Retrying | Finished
