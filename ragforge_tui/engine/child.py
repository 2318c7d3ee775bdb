"""Entry point of the engine process: `python -m ragforge_tui.engine.child`, or a fork of the engine host.

The first line on stdin holds an `EngineStart`, every other line a request. End of file on stdin, not a signal,
means that the user interface is gone: the running turn is finished and stored, then the process ends. File descriptor 1
is moved before anything else is imported, so that output of libraries cannot reach the pipe.
"""

from __future__ import annotations

import os
import sys


def _private_stdout() -> int:
    """Return the pipe to the user interface, and redirect everything printed to stderr, which is the log."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return pipe


def main() -> int:
    """Serve until shutdown or end of file; return the exit status of the process."""
    pipe = _private_stdout()
    from ragforge_tui.shared.search_path import drop_relative_entries

    drop_relative_entries()
    import asyncio

    from ragforge_tui.engine.process import close_to_others
    from ragforge_tui.engine.server import serve

    close_to_others()
    return asyncio.run(serve(sys.stdin.fileno(), pipe))


if __name__ == "__main__":
    sys.exit(main())
