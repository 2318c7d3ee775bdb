"""Shared parts of the commands: common options, settings, an engine and error handling.

Used by all modules of this package. Slow imports are delayed until a command needs them.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from ragforge_tui.cli.start import Shared, load_settings
from ragforge_tui.settings.schema import Loaded, ModelSettings
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.wire import Engine

if TYPE_CHECKING:  # importing the driver takes 100 ms, which --help does not need
    from ragforge_tui.graph import Graph, GraphTarget

T = TypeVar("T")

PROGRESS_EVERY = 500

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigOption = Annotated[str | None, typer.Option("--config", metavar="FILE", help="Settings file to use.")]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="DIR", help="Folder the agent works in.")]
GraphOption = Annotated[str | None, typer.Option("--graph", metavar="URI", help="Neo4j URI, or 'embedded'.")]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Model to use.")]
PersonaOption = Annotated[str | None, typer.Option("--persona", metavar="NAME", help="Persona of the agent.")]


def not_empty(value: str | None) -> str | None:
    """Reject an empty value of an option or argument."""
    if value is not None and not value.strip():
        raise typer.BadParameter("The value is empty.")
    return value


ConversationArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Conversation: id or unique prefix.", callback=not_empty)
]


def shared(ctx: typer.Context) -> Shared:
    return ctx.ensure_object(Shared)


def settings(ctx: typer.Context, **flags: str | None) -> Loaded:
    """Load the settings with the flags before or after the command, and start logging.

    Args:
        flags: The options after the command, named as in `Shared`.
    """
    given = shared(ctx)
    for name, value in flags.items():
        if value is not None:
            setattr(given, name, value)
    return load_settings(given)


def with_engine(
    loaded: Loaded,
    work: Callable[[Engine], Awaitable[T]],
    *,
    approve_all: bool = False,
    settle_seconds: float | None = None,
    start_host: bool = False,
) -> T:
    """Run `work` with an engine, and close the engine afterwards. It is in this process if there is no engine host.

    Args:
        settle_seconds: Longest wait after `work` for the memory to catch up.
        start_host: Start an engine host if none runs, for a command that needs a model.
    """

    async def session() -> T:
        from ragforge_tui.engine import connect_in_process, connect_warm

        engine = await connect_warm(
            loaded, approve_all=approve_all, settle_seconds=settle_seconds, start_host=start_host
        ) or await connect_in_process(loaded, approve_all=approve_all, settle_seconds=settle_seconds)
        try:
            return await work(engine)
        finally:
            await engine.close()

    return run_async(session())


def with_memory(
    ctx: typer.Context, work: Callable[[Engine], Awaitable[T]], *, settle_seconds: float | None = None
) -> T:
    """Run `work` with an engine that selects and loads no model, for commands that need none.

    Args:
        settle_seconds: Longest wait after `work` for the memory to catch up.
    """
    loaded = settings(ctx)
    no_model = msgspec.structs.replace(loaded.settings, model=ModelSettings(name="offline"))
    return with_engine(msgspec.structs.replace(loaded, settings=no_model), work, settle_seconds=settle_seconds)


async def use_graph(
    loaded: Loaded, target: GraphTarget, work: Callable[[Graph], Awaitable[T]], *, restoring: bool = False
) -> T:
    """Open the graph, run `work` with it and close it.

    Args:
        restoring: Open a graph whose restore was interrupted too.
    """
    from ragforge_tui.graph import Graph

    chosen = loaded.settings
    graph = await Graph.open(
        target,
        loaded.paths,
        heap_mb=chosen.graph.heap_mb,
        linger_seconds=chosen.graph.linger_seconds,
        embedding_dimension=chosen.agent.memory.embeddings.dimension,
        contents=chosen.agent.memory.persistence.type,
        restoring=restoring,
    )
    try:
        return await work(graph)
    finally:
        await graph.close()


def target_of(loaded: Loaded) -> GraphTarget:
    """Return the graph that the settings name."""
    from ragforge_tui.graph import resolve_target

    return resolve_target(loaded.settings.graph, loaded.origins)


def progress_of(what: str) -> Callable[[int, int], None]:
    """Return a progress printer: one updated line on a terminal, otherwise a line every `PROGRESS_EVERY` of them."""
    every = 1 if sys.stderr.isatty() else PROGRESS_EVERY
    last = 0

    def show(done: int, total: int) -> None:
        nonlocal last
        if done // every > last // every or done == total:
            end = "\n" if not sys.stderr.isatty() or done == total else ""
            sys.stderr.write(f"\r{done} of {total} {what}{end}" if every == 1 else f"{done} of {total}\n")
            sys.stderr.flush()
        last = done

    return show


def confirmed(question: str, kept: str) -> bool:
    """Ask the user; without a terminal, fail.

    Args:
        kept: What stays as it is without an answer.
    """
    if not sys.stdin.isatty():
        raise RagforgeError(question, kept=kept, todo="Add --yes to confirm.", kind="confirm")
    return typer.confirm(question)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end; Ctrl-C, a hang-up and SIGTERM cancel it and let it clean up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores the hang-up
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    return asyncio.run(work)
