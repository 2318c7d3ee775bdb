"""The command line: the only module that reads argv.

It contains only the entry point, so that `--version` costs nothing beyond Python itself and the chat with its own
options starts without Typer. The commands are in `app` and the modules it imports.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the console script ``ragforge-chat``."""
    if not _complete_streams():
        sys.stderr.write("ragforge-chat: Standard output is closed, so nothing could be shown.\n")
        sys.exit(1)
    if sys.argv[1:] == ["--version"]:
        from ragforge_tui import __version__

        sys.stdout.write(f"ragforge-chat {__version__}\n")
        return
    from ragforge_tui.shared.search_path import drop_relative_entries

    drop_relative_entries()
    from ragforge_tui.cli.start import chat_flags, failures, open_chat

    flags = chat_flags(sys.argv[1:])
    if flags is not None:
        with failures(flags.shared):
            sys.exit(open_chat(flags))
    from ragforge_tui.cli.app import app

    app(prog_name="ragforge-chat")


def _complete_streams() -> bool:
    """Give standard streams that are closed a null device; return whether standard output was open.

    Otherwise the next file that is opened would be one of them.
    """
    shown = sys.stdout is not None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
    return shown
