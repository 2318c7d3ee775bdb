"""What every command needs: the options before it, the settings, an engine, and one way to fail.

Used by all modules of this package. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from ragforge_tui.cli.start import CANCELLED, FAILED, USAGE, Shared, complain, failures, load_settings
from ragforge_tui.config import Loaded, ModelSettings
from ragforge_tui.protocol import Engine

__all__ = [
    "CANCELLED",
    "FAILED",
    "USAGE",
    "ConfigOption",
    "ConversationArgument",
    "GraphOption",
    "JsonFlag",
    "ModelOption",
    "PersonaOption",
    "Shared",
    "WorkspaceOption",
    "complain",
    "failures",
    "not_empty",
    "run_async",
    "settings",
    "shared",
    "with_engine",
    "with_memory",
]

T = TypeVar("T")

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
    return load_settings(shared(ctx), config=config, workspace=workspace, graph=graph, model=model, persona=persona)


def with_engine(
    loaded: Loaded,
    work: Callable[[Engine], Awaitable[T]],
    *,
    approve_all: bool = False,
    settle_seconds: float | None = None,
) -> T:
    """Run `work` with an engine in this process, which is closed in order afterwards.

    Args:
        settle_seconds: How long the memory may take to be brought up to date after `work`.
    """

    async def session() -> T:
        from ragforge_tui.engine import connect_in_process

        engine = await connect_in_process(loaded, approve_all=approve_all, settle_seconds=settle_seconds)
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
