"""The embedded graph's server: an ArcadeDB Java process on loopback, and its data folder.

Prepares the folder (password, version, backup before an upgrade, leftovers of a crash), starts the server, reports when
it is ready and stops it. Only the supervisor uses it; it has no knowledge of the chats.
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
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path

import msgspec
import psutil

from ragforge_tui.graph.embedded import http
from ragforge_tui.graph.embedded.class_archive import ClassArchive
from ragforge_tui.graph.embedded.files import (
    DATABASE,
    ServerFiles,
    open_private_log,
    process_alive,
)
from ragforge_tui.graph.embedded.ports import ServerPorts
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, make_private, read_regular
from ragforge_tui.shared.json_text import decode_json

log = logging.getLogger(__name__)

PACKAGE = "arcadedb-embedded"
START_TIMEOUT = 120.0
STOP_TIMEOUT = 15.0
KEPT_BACKUPS = 2
FIRST_HEAP_MB = 128
"""Heap a server begins with, in MiB; it grows as far as it has to. With 64 its start took half a second longer."""
HEAP_STEP = 512 * 2**20
"""Bytes of data for which the heap may grow by `heap_mb`: some 25 000 turns, whose vector index takes 130 MB to
build. A server with too little of it dies while it builds the index, at each search again."""
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of the cgroup that a container sees as its root, in both versions."""
_LOG_LIMIT = 4 * 1024 * 1024
_LOOK_SECONDS = 0.1
_IDLE_LOOK_SECONDS = 0.4
_VERSION = "-Dragforge.version="


class DataVersion(msgspec.Struct, kw_only=True):
    """The content of ``version.json`` next to the data."""

    arcadedb: str


class LoginRefusedError(Exception):
    """The server runs but knows another login than the one in the files."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A running server process; its ports are 0 until it listens."""

    pid: int
    started: float
    version: str
    bolt_port: int = 0
    http_port: int = 0

    def alive(self) -> bool:
        return process_alive(self.pid, self.started)


def installed_version() -> str | None:
    """Return the version of the installed server, None if the platform has none."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def require_installed() -> str:
    """Return the installed version.

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
    make_private(files.root)
    for leftover in [*files.home.glob("*.partial"), *files.backups.glob("*.partial")]:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
    stored = _stored_version(files)
    if stored and version_key(stored) > version_key(version):
        raise GraphUnavailableError(
            f"The embedded graph was written by a newer server ({stored}) than the one installed ({version}).",
            kept="It was not changed.",
            todo=f"Upgrade: pip install -U 'arcadedb-embedded>={stored}'.",
            kind="graph_newer",
        )
    if stored and version_key(stored) < version_key(version):
        _back_up(files, stored)
    _ensure_login(files)
    _rotate(files.server_log)


def record_version(files: ServerFiles, version: str) -> None:
    """Record the version of the server that last wrote the data; called once that server answered."""
    if _stored_version(files) != version:
        atomic_write(files.version, msgspec.json.encode(DataVersion(arcadedb=version)))


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as comparable numbers: ``26.10.2.post1`` is (26, 10, 2, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def heap_for(files: ServerFiles, heap_mb: int) -> int:
    """Return the largest heap for the data that is there, in MiB.

    Never less than `heap_mb`, and else at most a quarter of the memory that this process may use.
    """
    most = min([psutil.virtual_memory().total, *_container_limits()]) // 4 // 2**20
    return max(heap_mb, min(heap_mb * (1 + files.size() // HEAP_STEP), most))


def _container_limits() -> list[int]:
    """Return the limits of the container's memory in bytes; Java ignores them once it is given a heap."""
    limits: list[int] = []
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(path.read_text("ascii")))  # "max" is no limit.
    return limits


def start(files: ServerFiles, version: str, *, heap_mb: int) -> Server:
    """Start the process and return immediately; it answers a little later (`wait_ready`).

    Args:
        files: Where its data is, prepared.
        version: The installed version, written into its command line so that it can be known later.
        heap_mb: Its largest heap.
    """
    # Everything but the version is in a file of the user's own: every local user can read a command line.
    atomic_write(files.arguments, b"\n".join(_quoted(argument) for argument in _arguments(files, heap_mb)))
    classes = class_archive(files, heap_mb).server_options()
    with open_private_log(files.server_log) as output:
        process = subprocess.Popen(
            [str(_java()), f"{_VERSION}{version}", *classes, f"@{files.arguments}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=files.root,
            env=_environment(),
            start_new_session=True,
        )
    log.info("server %s started, pid %s", version, process.pid)
    return Server(pid=process.pid, started=psutil.Process(process.pid).create_time(), version=version)


def class_archive(files: ServerFiles, heap_mb: int) -> ClassArchive:
    """Return the archive of the installed server's classes."""
    return ClassArchive(files, _java(), _package() / "jars", _class_options(heap_mb))


def wait_ready(files: ServerFiles, server: Server, *, stopping: Callable[[], bool] = lambda: False) -> Server | None:
    """Wait until the database answers and return the server with its ports; None when it died, hung or is not wanted.

    Raises:
        LoginRefusedError: It answers, but not to the login in the files.
    """
    ports = ServerPorts(server.pid, server.started)
    end = time.monotonic() + START_TIMEOUT
    logged, looked = -1, 0.0
    while time.monotonic() < end and server.alive() and not stopping():
        # A look takes CPU from the server that starts; when its log grows there may be something to see.
        size = files.server_log.stat().st_size if files.server_log.exists() else 0
        if time.monotonic() - looked > (_LOOK_SECONDS if size != logged else _IDLE_LOOK_SECONDS):
            if found := _ports_when_ready(files, ports):
                bolt, web = found
                return msgspec.structs.replace(server, bolt_port=bolt, http_port=web)
            logged, looked = size, time.monotonic()
        time.sleep(0.05)
    return None


def forget_users(files: ServerFiles) -> None:
    """Let the next start create the server's users again, with the login in the files. No server may be running."""
    (files.root / "config" / "server-users.jsonl").unlink(missing_ok=True)


def find_running(files: ServerFiles) -> Server | None:
    """Return the server running on this data, recognised by its command line: a killed supervisor leaves one."""
    # Earlier releases started it without a file of arguments; that one is recognised too, so that it can be stopped.
    marks = {f"@{files.arguments}", f"-Darcadedb.server.rootPath={files.root}"}
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            line = process.cmdline()
            if marks & set(line):
                current = f"@{files.arguments}" in line
                version = next((part[len(_VERSION) :] for part in line if current and part.startswith(_VERSION)), "")
                return Server(pid=process.pid, started=process.create_time(), version=version)
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


def _ports_when_ready(files: ServerFiles, ports: ServerPorts) -> tuple[int, int] | None:
    """Return the Bolt and HTTP ports once the database answers on both."""
    found = ports.listening()
    if len(found) < 2:
        return None
    # It reports ready once databases and users exist. An earlier request would count as a failed login.
    web = next((port for port in found if http.status(port, "ready") == 204), 0)
    bolt = next((port for port in found if port != web and _speaks_bolt(port)), 0) if web else 0
    return (bolt, web) if bolt and _answers(files, ports, web) else None


def _answers(files: ServerFiles, ports: ServerPorts, web: int) -> bool:
    login = http.Login(ports, web, files.read_username(), files.read_password())
    try:
        http.request(login, f"query/{DATABASE}", {"language": "sql", "command": "SELECT 1 AS one"}, timeout=5)
    except http.HttpError as error:
        if error.status in (401, 403):
            raise LoginRefusedError from error
        return False
    except (OSError, ValueError):
        return False
    return True


def _speaks_bolt(port: int) -> bool:
    """Return whether a port answers a Bolt handshake, which offers 5.8 to 5.0 and 4.4 to 4.2 as a driver would."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(bytes.fromhex("6060b017 00080805 00020404 00000000 00000000"))
            return any(connection.recv(4)[2:])
    except OSError:
        return False


def _package() -> Path:
    spec = util.find_spec("arcadedb_embedded")
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else Path()


def _java() -> Path:
    return _package() / "jre" / "bin" / "java"


def _class_options(heap_mb: int) -> list[str]:
    return [
        f"-Xmx{heap_mb}m",
        "--add-modules",
        "jdk.incubator.vector",
        "--enable-native-access=ALL-UNNAMED",
        "-cp",
        f"{_package() / 'jars'}/*",
    ]


def _arguments(files: ServerFiles, heap_mb: int) -> list[str]:
    return [
        *_class_options(heap_mb),
        # Else it begins with a 64th of the machine's memory, and fills that before it collects anything.
        f"-Xms{min(FIRST_HEAP_MB, heap_mb)}m",
        # A server that ran out of memory is half dead; gone, it is started again.
        "-XX:+ExitOnOutOfMemoryError",
        # Nothing of ours under /tmp.
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={files.logs}/graph-server-crash.log",
        f"-Darcadedb.server.rootPath={files.root}",
        # Production flushes the write-ahead log with every transaction.
        "-Darcadedb.server.mode=production",
        f"-Darcadedb.server.rootPasswordPath={files.password}",
        "-Darcadedb.server.httpIncomingHost=127.0.0.1",
        # Port 0: it takes free ports itself, so that no other process can take them in between.
        "-Darcadedb.server.httpIncomingPort=0",
        "-Darcadedb.server.plugins=Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "-Darcadedb.bolt.host=127.0.0.1",
        "-Darcadedb.bolt.port=0",
        # Five wrong passwords lock a user out for 30 s. The chat's own user has a name that cannot be guessed, so
        # other accounts on this machine can lock out root only, which nothing here uses.
        f"-Darcadedb.server.defaultDatabases={DATABASE}[{files.read_username()}:{files.read_password()}:admin]",
        "com.arcadedb.server.ArcadeDBServer",
    ]


def _quoted(argument: str) -> bytes:
    """Quote an argument as Java reads it from an argument file."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        argument = argument.replace(plain, escaped)
    return os.fsencode(f'"{argument}"')


def _environment() -> dict[str, str]:
    # Neither provider keys nor the user's JAVA_TOOL_OPTIONS belong in the server.
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ") if name in os.environ}


def _stored_version(files: ServerFiles) -> str:
    try:
        return decode_json(read_regular(files.version, STATE_BYTES), DataVersion).arcadedb
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
            kept="It was not changed.",
            todo=f"Free some space or make {files.backups} writable, then start again.",
        ) from error
    log.info("data of %s backed up to %s", stored, target)
    for old in sorted(files.backups.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT_BACKUPS]:
        shutil.rmtree(old)


def _ensure_login(files: ServerFiles) -> None:
    if not files.read_password():
        forget_users(files)  # they have a password that is lost
        atomic_write(files.password, secrets.token_urlsafe(32).encode())
    if not files.read_username():
        atomic_write(files.username, f"chat_{secrets.token_hex(16)}".encode())


def _rotate(path: Path) -> None:
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))
