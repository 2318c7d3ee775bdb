"""The supervisor of the embedded graph for tests, whose server is quick to start.

A server of the tests lives for seconds to minutes. Optimising what it runs would cost half of its start and pays only
in servers that run for hours, so the quick compiler alone compiles it. Its classes come loaded and linked from the
cache of `server_cache`, which Java ignores where it does not match the jars.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from ragforge_tui.graph.embedded import attach, server, supervisor
from ragforge_tui.graph.embedded.class_archive import ClassArchive

OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+IgnoreUnrecognizedVMOptions"]
_JARS = server._package() / "jars"
_MADE_OF = f"{_JARS} {max((jar.stat().st_mtime_ns for jar in _JARS.glob('*.jar')), default=0)}"
CACHE = (
    Path(__file__).resolve().parents[2]
    / ".build"
    / f"graph-server-{hashlib.sha256(_MADE_OF.encode()).hexdigest()[:16]}.aot"
)


@contextmanager
def light_servers(option: str = f"-XX:AOTCache={CACHE}") -> Iterator[None]:
    """Let this process start such servers, with a further option for Java."""
    with mock.patch.object(attach, "SUPERVISOR", [str(Path(__file__).resolve()), option]):
        yield


if __name__ == "__main__":
    options = [*OPTIONS, sys.argv.pop(1)]
    arguments = server._arguments
    server._arguments = lambda files, heap_mb: [*options, *arguments(files, heap_mb)]
    ClassArchive.server_options = lambda archive: []  # type: ignore[method-assign]  # the cache takes its place
    # Java writes the cache after the server has stopped.
    server.STOP_TIMEOUT = 120.0 if "AOTCacheOutput" in options[-1] else server.STOP_TIMEOUT
    sys.exit(supervisor.main())
