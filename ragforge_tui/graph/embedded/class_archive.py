"""Java's class data archive for the embedded server, which halves the processor time of its start.

Java reads, checks and links some eight thousand classes at each start, and the bundled one has no archive of its own.
A server without an archive lists the classes that it loads; after it has ended, its supervisor makes the archive from
that list. Java ignores an archive made for another version of itself or of the jars.
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
"""Longest time for making an archive, in seconds; three are usual."""
_NAME = "classes-"


class ClassArchive:
    """The class archive of one installed server, and the list it is made from.

    Args:
        java: The Java executable.
        jars: Folder of the server's jars.
        options: The server's Java options that an archive depends on: modules, class path, heap.
    """

    def __init__(self, files: ServerFiles, java: Path, jars: Path, options: list[str]) -> None:
        self._files = files
        self._java = java
        self._options = options
        key = _key([*sorted(jars.glob("*.jar")), java.parent.parent / "release"], options)
        self._archive = files.home / f"{_NAME}{key}.jsa"
        self._list = files.home / f"{_NAME}{key}.list"

    def server_options(self) -> list[str]:
        """Return the Java options for a start: use the archive, or list the loaded classes to make one."""
        if self._archive.exists():
            return [f"-XX:SharedArchiveFile={self._archive}"]
        return ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:DumpLoadedClassList={self._list}"]

    def make(self) -> None:
        """Make the archive from the list of a server that has ended. Blocks, with the lowest priority."""
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
        """Remove all archives and lists; the next server lists its classes again."""
        for path in self._files.home.glob(f"{_NAME}*"):
            if path.suffix != ".partial":
                path.unlink(missing_ok=True)


def _key(files: list[Path], options: list[str]) -> str:
    """Return a digest of everything an archive depends on."""
    parts = [*options]
    for path in files:
        status = path.stat()
        parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
