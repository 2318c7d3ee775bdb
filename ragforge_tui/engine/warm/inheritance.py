"""Settings that a child process inherits from its parent, applied to an engine that the host forked instead."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

from ragforge_tui.engine.warm.messages import ForkRequest

_LIMITS = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))


def current_limits() -> dict[str, tuple[int, int]]:
    """Return the soft and hard limits of this process."""
    return {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}


def current_umask() -> int:
    """Return the umask of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text("utf-8").splitlines():
            if line.startswith("Umask:"):
                return int(line.partition(":")[2], 8)
    # It can only be read by setting it; a file that another thread creates meanwhile is readable by its owner alone.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def adopt(request: ForkRequest, descriptors: list[int]) -> None:
    """Give this process everything that a child of the chat would have inherited, in a session of its own.

    Args:
        descriptors: Standard input, output and error; closed afterwards.

    Raises:
        OSError: The folder is gone, or a limit cannot be raised.
        ValueError: A limit cannot be raised.
    """
    for handled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(handled, signal.SIG_DFL)
    if os.getsid(0) != os.getpid():  # a host that was not forked leads its session already
        os.setsid()
    os.chdir(request.folder)
    os.umask(request.umask)
    for name, limits in request.limits.items():
        if name in _LIMITS:
            resource.setrlimit(getattr(resource, name), limits)
    if (missing := request.niceness - os.nice(0)) != 0:
        os.nice(missing)
    os.environb.clear()
    os.environb.update(request.environment)
    time.tzset()
    if "tempfile" in sys.modules:
        import tempfile  # not at the top: the chat imports this module for its limits

        tempfile.tempdir = None  # so that it is determined again, from the environment of the chat
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
