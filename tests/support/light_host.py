"""The engine host for tests, whose engines start embedded servers that are quick to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import psutil

from ragforge_tui.engine.warm import host, launch
from ragforge_tui.engine.warm.client import host_pid
from ragforge_tui.settings.schema import Loaded
from tests.support.light_server import light_servers


@contextmanager
def light_hosts(*arguments: str) -> Iterator[None]:
    """Let this process start such hosts, with further arguments."""
    with mock.patch.object(launch, "HOST", [str(Path(__file__).resolve()), *arguments]):
        yield


def host_of(loaded: Loaded) -> psutil.Process | None:
    """Return the running host of these folders."""
    pid = host_pid(loaded)
    return psutil.Process(pid) if pid else None


def end_host(loaded: Loaded) -> None:
    """kill -9 of the host and of its engines, recognised by their command line."""
    mark = f"--state={loaded.paths.state}"
    for process in psutil.process_iter(["cmdline"]):
        if mark in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                process.kill()


if __name__ == "__main__":
    with light_servers():
        sys.exit(host.main())
