"""Engine hosts of the tests: which one runs, and its end."""

from __future__ import annotations

from contextlib import suppress

import psutil

from ragforge_tui.engine.warm.client import host_pid
from ragforge_tui.settings.schema import Loaded


def host_of(loaded: Loaded) -> psutil.Process | None:
    """Return the running host of these folders."""
    pid = host_pid(loaded)
    return psutil.Process(pid) if pid else None


def end_host(loaded: Loaded) -> None:
    """kill -9 of the host and of its engines."""
    end_host_in(loaded.paths.state)


def end_host_in(state: str) -> None:
    """kill -9 of the host with this folder and of its engines, recognised by their command line."""
    mark = f"--state={state}"
    for process in psutil.process_iter(["cmdline"]):
        if mark in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                process.kill()
