"""The archive of the embedded server's classes, which halves the processor time of its start.

Java reads, checks and links some eight thousand classes at each start, and the bundled one has no archive of its own.
A server without an archive lists the classes that it loads; after it has ended, its supervisor makes the archive from
that list, when nobody waits. Java ignores an archive that does not belong to it and to its jars, and starts as without.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
from pathlib import Path

from ragforge_tui.graph.embedded.files import ServerFiles, open_private_log

log = logging.getLogger(__name__)

ARCHIVE_TIMEOUT = 120.0
"""Seconds until making an archive is given up; it takes three of one core."""
_NAME = "classes-"


class ClassArchive:
    """The archive and the list of one installed server.

    Args:
        java: The program that runs the server.
        jars: Folder of its classes.
        options: Options of Java that the server runs with and that decide which classes fit: modules, class path, heap.
    """

    def __init__(self, files: ServerFiles, java: Path, jars: Path, options: list[str]) -> None:
        self._files = files
        self._java = java
        self._options = options
        key = _key([*sorted(jars.glob("*.jar")), java.parent.parent / "release"], options)
        self._archive = files.home / f"{_NAME}{key}.jsa"
        self._list = files.home / f"{_NAME}{key}.list"

    def server_options(self) -> list[str]:
        """Return the options of a server that is about to start: use the archive, or list the classes for it."""
        if self._archive.exists():
            return [f"-XX:SharedArchiveFile={self._archive}"]
        return ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:DumpLoadedClassList={self._list}"]

    def make(self) -> None:
        """Make the archive from the list of a server that has ended. Blocks; takes whatever nobody else uses."""
        if self._archive.exists() or not self._list.exists():
            return
        os.nice(19)
        partial = self._archive.with_name(f"{self._archive.name}.partial")
        how = ["-Xshare:dump", f"-XX:SharedClassListFile={self._list}", f"-XX:SharedArchiveFile={partial}"]
        try:
            with open_private_log(self._files.supervisor_log) as output:
                subprocess.run(
                    [str(self._java), *how, "-Xlog:disable", "-Xlog:all=error", *self._options],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self._files.home,
                    timeout=ARCHIVE_TIMEOUT,
                    check=True,
                )
            self.discard()
            partial.rename(self._archive)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("no archive of the server's classes: %s", error)
            partial.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the archives and lists of all installations; the next server lists its classes again."""
        for path in self._files.home.glob(f"{_NAME}*"):
            if path.suffix != ".partial":
                path.unlink(missing_ok=True)


def _key(files: list[Path], options: list[str]) -> str:
    """Return a name for what an archive depends on."""
    made_of = [*options]
    for path in files:
        status = path.stat()
        made_of.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
