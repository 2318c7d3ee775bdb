"""Launcher that lets a command be killed when its parent dies (Linux), for systems without util-linux's setpriv.

Started by `process.py` as a separate script (``launcher.py PARENT_PID PROGRAM ARGUMENT…``) instead of through
preexec_fn, which may deadlock in a program with threads. Uses only the standard library, because it starts without
site-packages.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Request a SIGKILL at the parent's death, then replace this process with the command."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        # The parent died before the request took effect.
        raise SystemExit(1)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
