"""What the chat and every command begin with: options, settings, and one way to fail. Free of Typer.

Reading argv with Typer costs a third of the chat's start, so `chat_flags` reads the chat's own few options by itself;
whatever it does not know is Typer's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ragforge_tui.config import Loaded
from ragforge_tui.errors import RagforgeError, storage_error

log = logging.getLogger(__name__)

FAILED = 1
USAGE = 2
CANCELLED = 130

_VALUES = ("--config", "--workspace", "--graph", "--model", "--persona")


class Shared(msgspec.Struct, kw_only=True):
    """Options that may stand before any command, and what was made of them.

    Attributes:
        plain: Only the chat looks at it.
        log_file: Where this process logs, once the settings are known.
    """

    config: str | None = None
    workspace: str | None = None
    graph: str | None = None
    model: str | None = None
    persona: str | None = None
    plain: bool = False
    log_file: Path | None = None


class ChatFlags(msgspec.Struct, kw_only=True):
    """How the chat is to open; `resume` None: a new conversation, empty: pick one."""

    shared: Shared
    resume: str | None = None
    continue_last: bool = False


def chat_flags(args: Sequence[str]) -> ChatFlags | None:
    """The chat's options; None when there is anything else: a command, a mistake, another way to write them."""
    flags = ChatFlags(shared=Shared())
    rest = list(args)

    def value() -> str | None:
        return rest.pop(0) if rest and not rest[0].startswith("-") else None

    while rest:
        arg = rest.pop(0)
        if arg in ("--continue", "-c"):
            flags.continue_last = True
        elif arg == "--plain":
            flags.shared.plain = True
        elif arg in ("--resume", "-r"):
            flags.resume = value() or ""
        elif arg in _VALUES and (given := value()):
            setattr(flags.shared, arg.removeprefix("--"), given)
        else:
            return None
    return None if flags.continue_last and flags.resume is not None else flags


def load_settings(
    given: Shared,
    *,
    config: str | None = None,
    workspace: str | None = None,
    graph: str | None = None,
    model: str | None = None,
    persona: str | None = None,
) -> Loaded:
    """Load the settings with the flags given, before or after the command; the log begins here."""
    from ragforge_tui.config_files import load
    from ragforge_tui.engine.logs import log_to_file
    from ragforge_tui.engine.private_memory import close_to_others

    flags = {
        "graph.uri": graph if graph is not None else given.graph,
        "model.name": model if model is not None else given.model,
        "personas.default": persona if persona is not None else given.persona,
        "tui.plain": given.plain or None,
    }
    loaded = load(config_file=config or given.config, workspace=workspace or given.workspace, flags=flags)
    given.log_file = log_to_file(loaded.paths)
    close_to_others()
    return loaded


@contextlib.contextmanager
def failures(given: Shared) -> Iterator[None]:
    """Turn whatever goes wrong into one sentence on stderr and an exit status; never a traceback."""
    try:
        yield
        sys.stdout.flush()
    except RagforgeError as error:
        log.info("failed: %s", error)
        complain(str(error))
        raise SystemExit(FAILED) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise SystemExit(CANCELLED) from None
    except BrokenPipeError:
        # The reader, `head` for one, has enough; without this Python would complain while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except Exception as error:
        if hasattr(error, "exit_code"):  # the command line's own: usage errors and requests to end
            raise
        log.exception("unexpected")
        if info := storage_error(error):
            complain(info.sentence())
            raise SystemExit(FAILED) from None
        where = f"The details are in {given.log_file}." if given.log_file else "There is no log to look into."
        complain(f"Something unexpected went wrong ({type(error).__name__}: {error}). {where}")
        raise SystemExit(FAILED) from None


def complain(text: str) -> None:
    """One line for the person on stderr."""
    from ragforge_tui.redaction import mask_secrets
    from ragforge_tui.text import plain_text

    with contextlib.suppress(OSError):
        sys.stderr.write(f"ragforge-chat: {plain_text(mask_secrets(text))}\n")
        sys.stderr.flush()
