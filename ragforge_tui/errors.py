"""What can go wrong, in words a person can act on.

Every error that may reach a person is a `RagforgeError`: it says what happened, what was kept and what to do.
Rooms raise these; the screen and the command line only print them. Leans on nothing.
"""

from __future__ import annotations

import errno
from typing import Literal

import msgspec

from ragforge_tui.text import plain_text


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error as data: what crosses the pipe between engine and screen, and what is stored with a failed turn.

    Attributes:
        kind: A stable word for programs, such as ``bad_key`` or ``graph_unreachable``.
        what: One sentence: what happened.
        kept: One sentence: what was kept, empty when nothing was at stake.
        todo: One sentence: what to do about it.
    """

    kind: str
    what: str
    kept: str = ""
    todo: str = ""

    def sentence(self) -> str:
        """The whole message on one line, fit for a terminal whatever a provider or a file said in it."""
        return plain_text(" ".join(part for part in (self.what, self.kept, self.todo) if part))


class RagforgeError(Exception):
    """Base of every error that is shown to a person."""

    kind = "error"

    def __init__(self, what: str, *, todo: str = "", kept: str = "", kind: str | None = None) -> None:
        super().__init__(what)
        self.info = ErrorInfo(kind=kind or self.kind, what=what, kept=kept, todo=todo)

    def __str__(self) -> str:
        return self.info.sentence()


_STORAGE_ERRORS = {
    errno.ENOSPC: ("The disk is full", "Make room there"),
    errno.EDQUOT: ("The disk quota is used up", "Make room there"),
    errno.EROFS: ("The disk is read-only", "Make it writable, or set RAGFORGE_HOME to a folder that is"),
    errno.EACCES: ("A file may not be written", "Give this user the right to, or set RAGFORGE_HOME to another folder"),
}


def storage_error(error: BaseException) -> ErrorInfo | None:
    """What to say when a file could not be written because of the disk; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _STORAGE_ERRORS:
        return None
    what, todo = _STORAGE_ERRORS[error.errno]
    where = f": {error.filename}." if error.filename else "."
    return ErrorInfo(
        kind="storage", what=what + where, kept="What was stored before is kept.", todo=f"{todo}; then try again."
    )


class ConfigError(RagforgeError):
    """A settings file or flag is wrong; names the file and the key path."""

    kind = "config"


class NotFoundError(RagforgeError):
    """No conversation, turn or persona answers to what was asked for, or more than one does."""

    kind = "not_found"


class GraphError(RagforgeError):
    """The graph refused or failed a statement."""

    kind = "graph"


class GraphUnavailableError(GraphError):
    """The graph cannot be reached: no server, no route, wrong password, too old, or starting."""

    kind = "graph_unreachable"


class ForeignGraphError(GraphError):
    """The graph holds data that is not ours and was not adopted."""

    kind = "graph_foreign"


ModelErrorKind = Literal[
    "bad_key",
    "unknown_model",
    "rate_limit",
    "context_too_long",
    "no_network",
    "stall",
    "unfinished",
    "provider",
    "bad_request",
    "not_configured",
]


class ModelError(RagforgeError):
    """A provider failed to answer.

    Attributes:
        retry_after: Seconds the provider asked to wait, None when it said nothing.
        transient: Whether the same request may succeed later.
    """

    def __init__(
        self,
        what: str,
        *,
        kind: ModelErrorKind,
        todo: str = "",
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(what, todo=todo, kind=kind)
        self.retry_after = retry_after
        self.transient = transient


class ToolError(RagforgeError):
    """A tool could not do what it was asked; the text goes back to the model."""

    kind = "tool"


class EngineGoneError(RagforgeError):
    """The engine's process ended while a request was waiting."""

    kind = "engine_gone"
