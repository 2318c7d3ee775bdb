"""The process that runs an engine: its log file, and protection of its memory, which contains the provider's keys.

The command line uses both too. Commands of the agent run as the same user and could otherwise read
``/proc/<pid>/environ``.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from pathlib import Path

from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.files import make_private
from ragforge_tui.shared.redaction import mask_words

log = logging.getLogger(__name__)

MAX_LOG_BYTES = 2 * 1024 * 1024
KEPT_LOGS = 3
_PR_SET_DUMPABLE = 4


class _Masked(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return mask_words(super().format(record))


def log_file(paths: Paths) -> Path:
    """Return the log file of all processes of this user."""
    return Path(paths.state) / "logs" / "ragforge-chat.log"


def log_to_file(paths: Paths) -> Path:
    """Send all logging to the log file and none to the terminal; without a writable disk only the log is lost."""
    path = log_file(paths)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False
    try:
        make_private(path.parent)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=MAX_LOG_BYTES, backupCount=KEPT_LOGS, encoding="utf-8", errors="replace"
        )
        path.chmod(0o600)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_Masked(f"%(asctime)s {os.getpid()} %(levelname)s %(name)s: %(message)s"))
    root.handlers[:] = [handler]
    for noisy in ("httpx", "httpcore", "neo4j", "LiteLLM", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return path


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
