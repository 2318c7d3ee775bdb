"""The supervisor of the embedded graph for tests, whose server compiles with the quick compiler alone.

A server of the tests lives for seconds to minutes: optimising what it runs costs it half of its start and pays only
in servers that run for hours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from ragforge_tui.graph.embedded import attach, server, supervisor

OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


@contextmanager
def light_servers() -> Iterator[None]:
    """Let this process start such servers."""
    with mock.patch.object(attach, "SUPERVISOR", [str(Path(__file__).resolve())]):
        yield


if __name__ == "__main__":
    arguments = server._arguments
    server._arguments = lambda files, heap_mb: [*OPTIONS, *arguments(files, heap_mb)]
    sys.exit(supervisor.main())
