"""The embedded graph's server: an ArcadeDB java process on loopback, and the care its data needs.

Used by the supervisor alone. Knows how to prepare the data folder (password, version, backup before an upgrade,
leftovers of a crash), how to start the server, when it is ready and how to end it; who wants it is not known here.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path

import msgspec
import psutil

from ragforge_tui.errors import GraphUnavailableError
from ragforge_tui.graph import http
from ragforge_tui.graph.server_files import (
    DATABASE,
    USERNAME,
    ServerFiles,
    open_private_log,
    process_alive,
    write_private,
)

log = logging.getLogger(__name__)

PACKAGE = "arcadedb-embedded"
START_TIMEOUT = 120.0
STOP_TIMEOUT = 15.0
KEPT_BACKUPS = 2
_LOG_LIMIT = 4 * 1024 * 1024


class DataVersion(msgspec.Struct, kw_only=True):
    """What ``version.json`` beside the data says."""

    arcadedb: str


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A running server process."""

    pid: int
    started: float
    bolt_port: int
    http_port: int
    version: str

    def alive(self) -> bool:
        """Whether it still runs."""
        return process_alive(self.pid, self.started)


def installed_version() -> str | None:
    """Version of the server that is installed, None when this platform has none."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def require_installed() -> str:
    """The installed version.

    Raises:
        GraphUnavailableError: There is no embedded server here.
    """
    version = installed_version()
    if version is None or not _java().exists():
        raise GraphUnavailableError(
            "The embedded graph is not available here: the package arcadedb-embedded is not installed "
            "(it exists for Linux x86_64/aarch64 and macOS arm64).",
            todo="Give the URI of a Neo4j 5.23 or newer with --graph, NEO4J_URI or graph.uri.",
            kind="graph_not_embedded",
        )
    return version


def prepare(files: ServerFiles, version: str) -> None:
    """Make the data folder fit for a server of `version`. No server may run on it.

    Raises:
        GraphUnavailableError: The data is of a newer version, or could not be backed up.
    """
    files.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    for leftover in [*files.home.glob("*.partial"), *files.backups.glob("*.partial")]:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
    stored = _stored_version(files)
    if stored and version_key(stored) > version_key(version):
        raise GraphUnavailableError(
            f"The embedded graph was written by a newer server ({stored}) than the one installed ({version}).",
            kept="It was not touched.",
            todo=f"Upgrade: pip install -U 'arcadedb-embedded>={stored}'.",
            kind="graph_newer",
        )
    if stored and version_key(stored) < version_key(version):
        _back_up(files, stored)
    _ensure_password(files)
    _rotate(files.server_log)


def record_version(files: ServerFiles, version: str) -> None:
    """Write beside the data which server last wrote it; called once that server answered."""
    if _stored_version(files) != version:
        write_private(files.version, msgspec.json.encode(DataVersion(arcadedb=version)))


def version_key(version: str) -> tuple[int, ...]:
    """A version as numbers that compare: ``26.10.2.post1`` is (26, 10, 2, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def start(files: ServerFiles, version: str, *, heap_mb: int, ports: tuple[int, int] = (0, 0)) -> Server:
    """Start the process and return at once; it answers a little later (`wait_ready`).

    Args:
        files: Where its data is, prepared.
        version: The installed version, written into its command line so that it can be known later.
        heap_mb: Its heap.
        ports: Bolt and HTTP ports to use again when they are free, so that clients need not look them up.
    """
    bolt, web = (_usable(port) or _free_port() for port in ports)
    with open_private_log(files.server_log) as output:
        process = subprocess.Popen(
            _command(files, version, heap_mb, bolt, web),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=files.root,
            env=_environment(),
            start_new_session=True,
        )
    log.info("server %s started, pid %s, bolt %s, http %s", version, process.pid, bolt, web)
    return Server(
        pid=process.pid,
        started=psutil.Process(process.pid).create_time(),
        bolt_port=bolt,
        http_port=web,
        version=version,
    )


def wait_ready(files: ServerFiles, server: Server, *, stopping: Callable[[], bool] = lambda: False) -> bool:
    """Wait until the database answers, not just the port. False when the server died, hung or is not wanted."""
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end and server.alive() and not stopping():
        if _answers(files, server):
            return True
        time.sleep(0.05)
    return False


def find_running(files: ServerFiles) -> Server | None:
    """The server that runs on this data, recognised by its command line: a killed supervisor leaves one behind."""
    root = f"-Darcadedb.server.rootPath={files.root}"
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            line = process.cmdline()
            if root in line:
                return _recognise(process, line)
        except psutil.Error:
            continue
    return None


def stop(server: Server) -> None:
    """End it in order, by force when it does not listen, and wait until it is gone."""
    if not server.alive():
        return
    process = psutil.Process(server.pid)
    try:
        process.terminate()
        process.wait(STOP_TIMEOUT)
    except psutil.TimeoutExpired:
        log.warning("server %s did not end in %s s and is killed", server.pid, STOP_TIMEOUT)
        process.kill()
        process.wait(STOP_TIMEOUT)
    except psutil.NoSuchProcess:
        return


def _recognise(process: psutil.Process, line: list[str]) -> Server:
    options = dict(part[2:].split("=", 1) for part in line if part.startswith("-D") and "=" in part)
    return Server(
        pid=process.pid,
        started=process.create_time(),
        bolt_port=int(options.get("arcadedb.bolt.port", 0)),
        http_port=int(options.get("arcadedb.server.httpIncomingPort", 0)),
        version=options.get("ragforge.version", ""),
    )


def _answers(files: ServerFiles, server: Server) -> bool:
    question = {"language": "sql", "command": "SELECT 1 AS one"}
    try:
        try:
            http.request(server.http_port, USERNAME, files.read_password(), f"query/{DATABASE}", question, timeout=5)
        except http.HttpError as error:
            if error.status not in (401, 403):  # it is there; that the password is wrong is the chat's to say
                raise
        with socket.create_connection(("127.0.0.1", server.bolt_port), timeout=2):
            return True
    except (OSError, http.HttpError, ValueError):
        return False


def _package() -> Path:
    spec = util.find_spec("arcadedb_embedded")
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else Path()


def _java() -> Path:
    return _package() / "jre" / "bin" / "java"


def _command(files: ServerFiles, version: str, heap_mb: int, bolt: int, web: int) -> list[str]:
    return [
        str(_java()),
        f"-Xmx{heap_mb}m",
        # A server that ran out of memory is half dead; gone, it is started again.
        "-XX:+ExitOnOutOfMemoryError",
        # Nothing of ours under /tmp.
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={files.logs}/graph-server-crash.log",
        "--add-modules",
        "jdk.incubator.vector",
        "--enable-native-access=ALL-UNNAMED",
        "-cp",
        f"{_package() / 'jars'}/*",
        f"-Dragforge.version={version}",
        f"-Darcadedb.server.rootPath={files.root}",
        # Production flushes the write-ahead log with every transaction.
        "-Darcadedb.server.mode=production",
        f"-Darcadedb.server.rootPasswordPath={files.password}",
        "-Darcadedb.server.httpIncomingHost=127.0.0.1",
        f"-Darcadedb.server.httpIncomingPort={web}",
        "-Darcadedb.server.plugins=Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "-Darcadedb.bolt.host=127.0.0.1",
        f"-Darcadedb.bolt.port={bolt}",
        f"-Darcadedb.server.defaultDatabases={DATABASE}[]",
        "com.arcadedb.server.ArcadeDBServer",
    ]


def _environment() -> dict[str, str]:
    # Neither provider keys nor somebody's JAVA_TOOL_OPTIONS belong in the server.
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ") if name in os.environ}


def _stored_version(files: ServerFiles) -> str:
    try:
        return msgspec.json.decode(files.version.read_bytes(), type=DataVersion).arcadedb
    except FileNotFoundError:
        return ""
    except msgspec.MsgspecError:
        log.warning("%s cannot be read and is written anew", files.version)
        return ""


def _back_up(files: ServerFiles, stored: str) -> None:
    target = files.backups / f"{stored}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    partial = target.with_name(f"{target.name}.partial")
    try:
        files.backups.mkdir(mode=0o700, exist_ok=True)
        shutil.copytree(files.root, partial, ignore=shutil.ignore_patterns("log"))
        partial.rename(target)
    except OSError as error:
        raise GraphUnavailableError(
            f"The embedded graph could not be backed up before its upgrade from {stored}: {error}.",
            kept="It was not touched.",
            todo=f"Make room or make {files.backups} writable, then start again.",
        ) from error
    log.info("data of %s backed up to %s", stored, target)
    for old in sorted(files.backups.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT_BACKUPS]:
        shutil.rmtree(old)


def _ensure_password(files: ServerFiles) -> None:
    if files.read_password():
        return
    # A server that knows another password would never let us in: its list of users is made anew with this one.
    (files.root / "config" / "server-users.jsonl").unlink(missing_ok=True)
    write_private(files.password, secrets.token_urlsafe(32).encode())


def _rotate(path: Path) -> None:
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _usable(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port
