"""The command line: the only place that reads argv.

Here stands no more than the entry point, so that `--version` costs nothing beyond Python itself, and the chat,
opened with its own options alone, does without Typer; the commands are in `app` and the modules it gathers.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The console script ``ragforge-chat``."""
    if sys.argv[1:] == ["--version"]:
        from ragforge_tui import __version__

        sys.stdout.write(f"ragforge-chat {__version__}\n")
        return
    from ragforge_tui.cli.start import chat_flags, failures

    flags = chat_flags(sys.argv[1:])
    if flags is not None:
        import gc

        # Modules are no garbage: looking for it while they load is a fifth of the start. The screen enables it again.
        gc.disable()
        from ragforge_tui.cli.chat import open_chat

        with failures(flags.shared):
            sys.exit(open_chat(flags))
    from ragforge_tui.cli.app import app

    app(prog_name="ragforge-chat")
