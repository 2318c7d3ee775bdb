"""What every command needs: the options before it, the settings, an engine, and one way to fail.

Used by all modules of this package. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from ragforge_tui.config import Loaded, ModelSettings
from ragforge_tui.errors import RagforgeError, storage_error
from ragforge_tui.protocol import Engine

log = logging.getLogger(__name__)

T = TypeVar("T")

FAILED = 1
USAGE = 2
CANCELLED = 130

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigOption = Annotated[str | None, typer.Option("--config", metavar="FILE", help="Settings file to use.")]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="DIR", help="Folder the agent works in.")]
GraphOption = Annotated[str | None, typer.Option("--graph", metavar="URI", help="Neo4j URI, or 'embedded'.")]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Model that answers.")]
PersonaOption = Annotated[str | None, typer.Option("--persona", metavar="NAME", help="Character of the agent.")]


def not_empty(value: str | None) -> str | None:
    """Callback of an option or argument that names something."""
    if value is not None and not value.strip():
        raise typer.BadParameter("it is empty.")
    return value


ConversationArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Conversation: id or unique prefix.", callback=not_empty)
]


class Shared(msgspec.Struct, kw_only=True):
    """Options that may stand before any command, and what was made of them.

    Attributes:
        log_file: Where this process logs, once the settings are known.
    """

    config: str | None = None
    workspace: str | None = None
    graph: str | None = None
    model: str | None = None
    persona: str | None = None
    log_file: Path | None = None


def shared(ctx: typer.Context) -> Shared:
    """The `Shared` of this run."""
    return ctx.ensure_object(Shared)


def settings(
    ctx: typer.Context,
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

    given = shared(ctx)
    flags = {
        "graph.uri": graph if graph is not None else given.graph,
        "model.name": model if model is not None else given.model,
        "personas.default": persona if persona is not None else given.persona,
    }
    loaded = load(config_file=config or given.config, workspace=workspace or given.workspace, flags=flags)
    given.log_file = log_to_file(loaded.paths)
    return loaded


def with_engine(loaded: Loaded, work: Callable[[Engine], Awaitable[T]], *, approve_all: bool = False) -> T:
    """Run `work` with an engine in this process, which is closed in order afterwards."""

    async def session() -> T:
        from ragforge_tui.engine import connect_in_process

        engine = await connect_in_process(loaded, approve_all=approve_all)
        try:
            return await work(engine)
        finally:
            await engine.close()

    return run_async(session())


def with_memory(ctx: typer.Context, work: Callable[[Engine], Awaitable[T]]) -> T:
    """`with_engine` for commands that ask no model, so that none is looked for or loaded."""
    loaded = settings(ctx)
    no_model = msgspec.structs.replace(loaded.settings, model=ModelSettings(name="offline"))
    return with_engine(msgspec.structs.replace(loaded, settings=no_model), work)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, where Ctrl-C cancels `work` and lets it end in order, and so do a hang-up and SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    return asyncio.run(work)


@contextlib.contextmanager
def failures(given: Shared) -> Iterator[None]:
    """Turn whatever goes wrong into one sentence on stderr and an exit status; never a traceback."""
    try:
        yield
        sys.stdout.flush()
    except RagforgeError as error:
        log.info("failed: %s", error)
        complain(str(error))
        raise typer.Exit(FAILED) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(CANCELLED) from None
    except BrokenPipeError:
        # The reader, `head` for one, has enough; without this Python would complain while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except Exception as error:
        if hasattr(error, "exit_code"):  # the command line's own: usage errors and requests to end
            raise
        log.exception("unexpected")
        if info := storage_error(error):
            complain(info.sentence())
            raise typer.Exit(FAILED) from None
        where = f"The details are in {given.log_file}." if given.log_file else "There is no log to look into."
        complain(f"Something unexpected went wrong ({type(error).__name__}: {error}). {where}")
        raise typer.Exit(FAILED) from None


def complain(text: str) -> None:
    """One line for the person on stderr."""
    from ragforge_tui.text import mask_secrets, plain_text

    with contextlib.suppress(OSError):
        sys.stderr.write(f"ragforge-chat: {plain_text(mask_secrets(text))}\n")
        sys.stderr.flush()
