"""Protection of this process's memory and environment, which contain the provider's keys, from other programs.

The engine process and the command line call it, because their environments hold the keys. Commands of the agent run as
the same user and could otherwise read ``/proc/<pid>/environ``.
"""

from __future__ import annotations

import logging
import sys

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Make this process unreadable for all users but root, on Linux; it can be neither traced nor dumped.

    Programs that it starts stay readable. A failure is only logged, because nothing depends on the protection.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            log.warning("other programs can read this process: prctl failed with error %d", ctypes.get_errno())
    except (ImportError, OSError, AttributeError) as error:
        log.warning("other programs can read this process: %s", error)
