"""The chat itself: what `ragforge-chat` does without a command.

The screen is handed a function that starts the engine, so that it paints first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from ragforge_tui import __version__
from ragforge_tui.cli.common import USAGE, complain, settings, shared
from ragforge_tui.protocol import Engine


def chat(ctx: typer.Context, *, resume: str | None, continue_last: bool) -> None:
    """Open the screen; `resume` None: a new conversation, empty: pick one.

    Raises:
        typer.Exit: With the screen's exit status, or 2 without a terminal.
    """
    if resume is not None and continue_last:
        raise typer.BadParameter("--resume and --continue exclude each other.")
    missing = [name for name, stream in (("input", sys.stdin), ("output", sys.stdout)) if not stream.isatty()]
    if missing:
        complain(
            f"The chat needs a terminal, and standard {' and '.join(missing)} is none. "
            "In scripts use `ragforge-chat ask`."
        )
        raise typer.Exit(USAGE)
    loaded = settings(ctx)

    from ragforge_tui.tui.app import run_chat
    from ragforge_tui.tui.options import ChatOptions

    async def connect() -> Engine:
        from ragforge_tui.engine import connect_child

        return await connect_child(loaded)

    options = ChatOptions(
        resume=resume,
        continue_last=continue_last,
        tui=loaded.settings.tui,
        state_dir=Path(loaded.paths.state),
        workspace=loaded.workspace,
        persona=shared(ctx).persona or "",
        version=__version__,
    )
    raise typer.Exit(run_chat(connect, options))
