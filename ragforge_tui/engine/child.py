"""The engine's own process: `python -m ragforge_tui.engine.child`, started by `client.ChildEngine`.

The first line on stdin is the `Loaded` settings, every further one a request. End of file there, not a signal,
means that the screen is gone: the turn under way is finished and stored, then the process ends. Fd 1 is moved away
before anything else is imported, so that nothing a library prints can reach the pipe.
"""

from __future__ import annotations

import os
import sys


def _private_stdout() -> int:
    """The pipe to the screen; whatever is printed goes to stderr, which is the log, from here on."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return pipe


def main() -> int:
    """Serve until the screen says so or is gone; the exit status of the process."""
    pipe = _private_stdout()
    import asyncio

    from ragforge_tui.engine.private_memory import close_to_others
    from ragforge_tui.engine.serve import serve

    close_to_others()
    return asyncio.run(serve(sys.stdin.fileno(), pipe))


if __name__ == "__main__":
    sys.exit(main())
