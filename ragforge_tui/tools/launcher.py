"""Runs a command so that it is killed when its parent dies (Linux), where util-linux's setpriv is missing.

Started by `process.py` as a script of its own (``launcher.py PARENT_PID PROGRAM ARGUMENT…``) instead of through
preexec_fn, which may deadlock in a program with threads. Leans on the standard library alone: it starts without
site-packages.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie the life of this process to its parent's and become the command."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        # The parent died before the request took hold.
        raise SystemExit(1)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
