"""The log file: rotated, with keys masked, and readable by its owner only."""

from __future__ import annotations

import logging
import logging.handlers
import os
from pathlib import Path

from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.redaction import mask_secrets

MAX_BYTES = 2 * 1024 * 1024
KEPT = 3


class _Masked(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return mask_secrets(super().format(record))


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
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8", errors="replace"
        )
        path.chmod(0o600)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_Masked(f"%(asctime)s {os.getpid()} %(levelname)s %(name)s: %(message)s"))
    root.handlers[:] = [handler]
    for noisy in ("httpx", "httpcore", "neo4j", "LiteLLM", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return path
