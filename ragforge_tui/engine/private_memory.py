"""Keeps this process's memory and environment, which hold the provider's keys, from other programs of the user.

Called by the engine's process and by the command line, whose environments have the keys; commands of the agent run as
the same user and could read ``/proc/<pid>/environ`` otherwise.
"""

from __future__ import annotations

import logging
import sys

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Make this process unreadable for others but root, on Linux; it can neither be traced nor dump its core.

    Programs it starts are as readable as ever. Failure is logged: it protects, nothing depends on it.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            log.warning("other programs can read this process: prctl failed with error %d", ctypes.get_errno())
    except (ImportError, OSError, AttributeError) as error:
        log.warning("other programs can read this process: %s", error)
