"""Errors with messages that users can act on.

Every error that may reach a user is a `RagforgeError`: it states what happened, what was kept and what to do. The
packages raise these errors; the screen and the command line only print them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from ragforge_tui.shared.sanitize import plain_text

STORED_ALREADY = "stored_already"
"""Kind of the error that refuses a message because an earlier process has stored it and begun its turn."""


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Error as data, for the pipe between engine and screen and for storage with a failed turn.

    Attributes:
        kind: Stable identifier for programs, such as ``bad_key`` or ``graph_unreachable``.
        what: One sentence on what happened.
        kept: One sentence on the data that is safe; empty if none was at risk.
        todo: One sentence on what to do about it.
    """

    kind: str
    what: str
    kept: str = ""
    todo: str = ""

    def sentence(self) -> str:
        """Return the whole message on one line, safe for a terminal even if it quotes a provider or a file."""
        return plain_text(" ".join(part for part in (self.what, self.kept, self.todo) if part))


def quoted(words: str) -> str:
    """Return another program's own words as the end of a sentence on what happened; `told` finds them again."""
    return f" It said: “{words}”{'' if words[-1:] in '.!?…' else '.'}"


_QUOTED = re.compile(r"(.*?) It said: “(.*)”\.?(?: |$)(.*)", re.DOTALL)
_FIRST_SENTENCE = re.compile(r"(.*?[.!?…])(?: |$)(?=[A-Z/]|$)(.*)", re.DOTALL)


class Told(msgspec.Struct, frozen=True):
    """The parts of an error's sentence.

    Attributes:
        cause: What happened.
        words: The other program's own words; empty if it is not quoted.
        rest: What was kept, and what to do.
    """

    cause: str
    words: str = ""
    rest: str = ""


def told(sentence: str) -> Told:
    """Return the parts of an error as it is stored, see `ErrorInfo.sentence`."""
    if match := _QUOTED.fullmatch(sentence):
        return Told(*match.groups())
    match = _FIRST_SENTENCE.fullmatch(sentence)
    return Told(match[1], "", match[2]) if match else Told(sentence)


class RagforgeError(Exception):
    """Base class of all errors that are shown to users."""

    kind = "error"

    def __init__(self, what: str, *, todo: str = "", kept: str = "", kind: str | None = None) -> None:
        super().__init__(what)
        self.info = ErrorInfo(kind=kind or self.kind, what=what, kept=kept, todo=todo)

    def __str__(self) -> str:
        return self.info.sentence()

    @staticmethod
    def received(class_name: str, info: ErrorInfo) -> RagforgeError:
        """Return the error that another process raised, of the same class, so that callers can catch it by class.

        A name that no class of ours has gives a plain `RagforgeError`.
        """
        kind = next((kind for kind in _with_subclasses(RagforgeError) if kind.__name__ == class_name), RagforgeError)
        error = kind.__new__(kind, info.what)
        error.info = info
        return error


def _with_subclasses(kind: type[RagforgeError]) -> Iterator[type[RagforgeError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _with_subclasses(subclass)


_STORAGE_ERRORS = {
    errno.ENOSPC: ("The disk is full", "Free some space"),
    errno.EDQUOT: ("The disk quota is used up", "Free some space"),
    errno.ENOLCK: (
        "This folder has no file locks, as on some network drives",
        "Set RAGFORGE_HOME to a local folder",
    ),
    errno.EROFS: ("The disk is read-only", "Make it writable, or set RAGFORGE_HOME to a writable folder"),
    errno.EACCES: ("No permission to write", "Change the permissions, or set RAGFORGE_HOME to another folder"),
}


def storage_error(error: BaseException, at: object = "") -> ErrorInfo | None:
    """Return the message for a file that could not be written because of the disk; None for any other error.

    Args:
        at: The file or folder, for errors that do not name it.
    """
    if not isinstance(error, OSError) or error.errno not in _STORAGE_ERRORS:
        return None
    what, todo = _STORAGE_ERRORS[error.errno]
    where = f": {error.filename or at}." if error.filename or at else "."
    return ErrorInfo(
        kind="storage", what=what + where, kept="Everything stored before is kept.", todo=f"{todo}; then try again."
    )


class ConfigError(RagforgeError):
    """A settings file or flag is invalid; the message names the file and the key path."""

    kind = "config"


class NotFoundError(RagforgeError):
    """No conversation, turn or persona matches the reference, or more than one does."""

    kind = "not_found"


class GraphError(RagforgeError):
    """The graph rejected a statement or failed to execute it."""

    kind = "graph"


class GraphUnavailableError(GraphError):
    """The graph cannot be reached: no server, no route, wrong password, too old, or starting."""

    kind = "graph_unreachable"


class ForeignGraphError(GraphError):
    """The graph holds another program's data and was not adopted."""

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
    "environment",
    "unreachable",
]


class ModelError(RagforgeError):
    """A provider failed to reply.

    Attributes:
        retry_after: Seconds that the provider asks to wait, None if it does not state any.
        transient: Whether the same request may succeed later.
        window: Tokens the model reads, if the provider states them in the error.
        counted: Tokens that the request has by the provider's count, if it states them too.
        words: All that the server wrote with its refusal, with codes and names of fields.
        of_body: Whether it was the size in bytes that was refused, or another limit that is not the model's.
    """

    retry_after: float | None = None
    transient: bool = False
    window: int | None = None
    counted: int | None = None
    words: str = ""
    of_body: bool = False

    def __init__(
        self,
        what: str,
        *,
        kind: ModelErrorKind,
        todo: str = "",
        retry_after: float | None = None,
        transient: bool = False,
        window: int | None = None,
    ) -> None:
        super().__init__(what, todo=todo, kind=kind)
        self.retry_after = retry_after
        self.transient = transient
        self.window = window


class NetworkError(RagforgeError):
    """A variable of the environment, such as one that names a proxy, prevents a request."""

    kind = "environment"


class ToolError(RagforgeError):
    """A tool call failed; the message is returned to the model."""

    kind = "tool"


class EngineGoneError(RagforgeError):
    """The engine's process ended while a request was pending."""

    kind = "engine_gone"
