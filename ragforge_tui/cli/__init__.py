"""The command line: the only place that reads argv.

Here stands no more than the entry point, so that `--version` costs nothing beyond Python itself; the commands are
in `app` and the modules it gathers, one per subject.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The console script ``ragforge-chat``."""
    if sys.argv[1:] == ["--version"]:
        from ragforge_tui import __version__

        sys.stdout.write(f"ragforge-chat {__version__}\n")
        return
    from ragforge_tui.cli.app import app

    app(prog_name="ragforge-chat")
