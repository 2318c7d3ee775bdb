"""Start of the chat, and what it has in common with all commands: options, settings, error handling; without Typer.

Parsing argv with Typer takes a third of the chat's start, so `chat_flags` parses the chat's few options itself and
leaves everything else to Typer.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.settings.folders import user_file

if TYPE_CHECKING:
    from ragforge_tui.settings.schema import Loaded
    from ragforge_tui.shared.wire import Engine

FAILED = 1
USAGE = 2
CANCELLED = 130
SERVED = "textual.drivers.web_driver:WebDriver"
"""Driver that textual-serve names for a chat in a browser, which has no terminal."""

VALUES = ("--config", "--workspace", "--graph", "--model", "--persona")
"""Options before any command that take a value."""


class Shared(msgspec.Struct, kw_only=True):
    """Options before any command, and state derived from them.

    Attributes:
        plain: Plain mode, used by the chat only.
        log_file: Log file of this process, set once the settings are loaded.
    """

    config: str | None = None
    workspace: str | None = None
    graph: str | None = None
    model: str | None = None
    persona: str | None = None
    plain: bool = False
    log_file: Path | None = None


class ChatFlags(msgspec.Struct, kw_only=True):
    """Options of the chat. `resume` is None for a new conversation and empty to open the picker.

    Attributes:
        text: First message.
        inline: Print lines instead of drawing a screen.
    """

    shared: Shared
    resume: str | None = None
    continue_last: bool = False
    text: str = ""
    inline: bool = False


def chat_flags(args: Sequence[str]) -> ChatFlags | None:
    """Return the chat's options; None for anything that Typer has to parse, such as a command or a mistake."""
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
        elif arg == "--inline":
            flags.inline = True
        elif arg in ("--resume", "-r"):
            flags.resume = value() or ""
        elif arg in VALUES and (given := value()):
            setattr(flags.shared, arg.removeprefix("--"), given)
        elif " " in arg.strip() and not arg.startswith("-") and not flags.text:
            flags.text = arg.strip()  # No command has a blank in its name; a single word may be one.
        else:
            return None
    mistaken = (flags.continue_last and flags.resume is not None) or (flags.text and flags.resume == "")
    return None if mistaken else flags


def load_settings(given: Shared) -> Loaded:
    """Load the settings with the flags of the command line, and start logging."""
    from ragforge_tui.engine.process import close_to_others, log_to_file
    from ragforge_tui.settings.load import load

    flags = {
        "graph.uri": given.graph,
        "model.name": given.model,
        "personas.default": given.persona,
        "tui.plain": given.plain or None,
    }
    loaded = load(config_file=given.config or None, workspace=given.workspace or None, flags=flags)
    given.log_file = log_to_file(loaded.paths)
    close_to_others()
    return loaded


def open_chat(flags: ChatFlags) -> int:
    """Open the chat; return its exit status, or 2 without a terminal.

    The user interface receives a function that starts the engine, so that it paints first.
    """
    if flags.inline:
        return _open_inline(flags)
    served = os.environ.get("TEXTUAL_DRIVER") == SERVED
    missing = [name for name, stream in (("input", sys.stdin), ("output", sys.stdout)) if not stream.isatty()]
    if missing and not served:
        complain(
            f"The chat needs a terminal, but standard {' and '.join(missing)} is not one. "
            "In scripts, use `ragforge-chat ask`."
        )
        return USAGE
    if not served:
        from ragforge_tui.tui.quiet_start import silence

        silence()
    from ragforge_tui.engine import connect_child, request_child

    if not served:
        from ragforge_tui.tui.hang_up import watch_terminal

        watch_terminal()
    loaded = load_settings(flags.shared)
    requested = request_child(loaded)  # Before Textual is imported: the engine is ready when the screen is.

    from ragforge_tui import __version__
    from ragforge_tui.tui.app import run_chat
    from ragforge_tui.tui.session.state import ChatOptions

    is_first = True

    async def connect() -> Engine:
        nonlocal requested, is_first
        given, requested, from_host, is_first = requested, None, is_first, False
        return await connect_child(loaded, given, from_host=from_host)

    options = ChatOptions(
        served=served,
        message=flags.text,
        resume=flags.resume,
        continue_last=flags.continue_last,
        tui=loaded.settings.tui,
        state_dir=Path(loaded.paths.state),
        exports_dir=loaded.settings.agent.memory.export.folder(loaded.paths.data, loaded.workspace),
        workspace=loaded.workspace,
        persona=flags.shared.persona or "",
        version=__version__,
        settings=loaded.settings,
        origins=loaded.origins,
        config_file=user_file(flags.shared.config, loaded.paths, os.environ)[0],
    )
    return run_chat(connect, options)


def _open_inline(flags: ChatFlags) -> int:
    """Open the chat as lines, in a terminal or not."""
    from ragforge_tui.engine import connect_child, request_child

    loaded = load_settings(flags.shared)
    requested = request_child(loaded)
    from ragforge_tui.cli.inline import Opening, run_inline

    opening = Opening(
        resume=flags.resume,
        continue_last=flags.continue_last,
        text=flags.text,
        persona=flags.shared.persona or "",
    )
    return run_inline(lambda: connect_child(loaded, requested, from_host=True), loaded.workspace, opening)


@contextlib.contextmanager
def failures(given: Shared) -> Iterator[None]:
    """Report every failure as one sentence on stderr and an exit status, never as a traceback."""
    try:
        yield
        sys.stdout.flush()
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if hasattr(error, "exit_code"):  # Typer's own exceptions: usage errors and exits
            raise
        raise SystemExit(_reported(error, given)) from None


def _reported(error: BaseException, given: Shared) -> int:
    """Report an error; return the exit status."""
    if isinstance(error, KeyboardInterrupt):
        return CANCELLED  # Before any import: it may have interrupted one of these modules.
    import asyncio
    import logging

    from ragforge_tui.shared.errors import RagforgeError, storage_error

    log = logging.getLogger(__name__)
    match error:
        case RagforgeError():
            log.info("failed: %s", error)
            complain(str(error))
        case asyncio.CancelledError():
            return CANCELLED
        case BrokenPipeError():
            # The reader, such as `head`, has closed the pipe; without this Python prints an error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case _:
            log.error("unexpected", exc_info=error)
            info = storage_error(error) if isinstance(error, Exception) else None
            details = f"The details are in {given.log_file}." if given.log_file else "No log was written."
            unexpected = f"Unexpected error ({type(error).__name__}: {error}). {details}"
            complain(info.sentence() if info is not None else unexpected)
    return FAILED


def complain(text: str) -> None:
    """Print one line for the user on stderr."""
    from ragforge_tui.shared.redaction import mask_words

    with contextlib.suppress(OSError):
        sys.stderr.write(f"ragforge-chat: {mask_words(text)}\n")
        sys.stderr.flush()
