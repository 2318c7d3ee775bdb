"""Parts of a model's answer while it streams.

`ChatModel.stream` yields these; the turn loop turns them into events. They are separate from the clients so that
the consumer of an answer needs no client.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import Usage


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
    """

    attempt: int
    attempts: int
    wait_seconds: float
    reason: str


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """Normal end of the answer; always the last part.

    Attributes:
        reason: ``stop``, ``tool_calls``, ``length`` or ``content_filter``. With the last two the answer is incomplete.
    """

    reason: str
    usage: Usage = Usage()


ModelPart = TextPart | ReasoningPart | Progress | ToolRequest | Retrying | Finished
