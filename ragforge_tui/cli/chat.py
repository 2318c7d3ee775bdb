"""The chat, which `ragforge-chat` opens without a command.

The user interface receives a function that starts the engine, so that it paints first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ragforge_tui import __version__
from ragforge_tui.cli.start import USAGE, ChatFlags, complain, load_settings
from ragforge_tui.shared.wire import Engine


def open_chat(flags: ChatFlags) -> int:
    """Open the chat; return its exit status, or 2 without a terminal."""
    missing = [name for name, stream in (("input", sys.stdin), ("output", sys.stdout)) if not stream.isatty()]
    if missing:
        complain(
            f"The chat needs a terminal, but standard {' and '.join(missing)} is not one. "
            "In scripts, use `ragforge-chat ask`."
        )
        return USAGE
    loaded = load_settings(flags.shared)

    from ragforge_tui.settings.load import user_file
    from ragforge_tui.tui.app import run_chat
    from ragforge_tui.tui.options import ChatOptions

    async def connect() -> Engine:
        from ragforge_tui.engine import connect_child

        return await connect_child(loaded)

    options = ChatOptions(
        resume=flags.resume,
        continue_last=flags.continue_last,
        tui=loaded.settings.tui,
        state_dir=Path(loaded.paths.state),
        workspace=loaded.workspace,
        persona=flags.shared.persona or "",
        version=__version__,
        settings=loaded.settings,
        origins=loaded.origins,
        config_file=user_file(flags.shared.config, loaded.paths, os.environ)[0],
    )
    return run_chat(connect, options)
