"""The data folder of the embedded graph, made fit for the installed server.

Password, version, backup before an upgrade, leftovers of a crash. Only the server uses it, before it starts.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec

from ragforge_tui.graph.embedded.files import ServerFiles
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, make_private, read_regular
from ragforge_tui.shared.json_text import decode_json

log = logging.getLogger(__name__)

PACKAGE = "arcadedb"
KEPT_BACKUPS = 2
_PHASES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "": 0, "post": 1}


class DataVersion(msgspec.Struct, kw_only=True):
    """The content of ``version.json`` next to the data."""

    arcadedb: str


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
    if version is None:
        raise GraphUnavailableError(
            "The embedded graph is not available here: the package arcadedb is not installed "
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
            todo=f"Upgrade: pip install -U '{PACKAGE}>={stored}'.",
            kind="graph_newer",
        )
    if stored and version_key(stored) < version_key(version):
        _back_up(files, stored)
    _write_config(files)


def record_version(files: ServerFiles, version: str) -> None:
    """Record the version of the server that last wrote the data; called once that server has started."""
    if _stored_version(files) != version:
        atomic_write(files.version, msgspec.json.encode(DataVersion(arcadedb=version)))


def version_key(version: str) -> tuple[tuple[int, ...], int, int]:
    """Return a version in a form that compares: ``26.11.1.dev2`` comes before ``26.11.1``, ``.post1`` after it.

    What is not a version comes before all others.
    """
    found = re.match(r"(\d+(?:\.\d+)*)\.?(dev|a|b|rc|post|)(\d*)", version)
    if found is None:
        return (), 0, 0
    release, kind, number = found.groups()
    return tuple(int(part) for part in release.split(".")), _PHASES[kind], int(number or 0)


def _stored_version(files: ServerFiles) -> str:
    try:
        return decode_json(read_regular(files.version, STATE_BYTES), DataVersion).arcadedb
    except FileNotFoundError:
        return ""
    except msgspec.MsgspecError:
        log.warning("%s cannot be read and is written again", files.version)
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
    # By the moment in its name: a copied folder has the time of the one it was copied from.
    others = sorted((path for path in files.backups.iterdir() if path != target), key=_written)
    for old in others[: 1 - KEPT_BACKUPS]:
        shutil.rmtree(old, ignore_errors=True)


def _written(backup: Path) -> tuple[str, object]:
    version, _, moment = backup.name.rpartition("-")
    return moment, version_key(version)


def _write_config(files: ServerFiles) -> None:
    """Write the login if there is none, and have the server make its users from it."""
    if not files.read_password():
        atomic_write(files.password, secrets.token_urlsafe(32).encode())
    if not files.read_username():
        atomic_write(files.username, f"chat_{secrets.token_hex(16)}".encode())
    config = files.root / "config"
    config.mkdir(mode=0o700, exist_ok=True)
    (config / "server-users.jsonl").unlink(missing_ok=True)
    # Its server for other agents cannot be left out of the library, and is turned on by a request.
    atomic_write(config / "mcp-config.json", b'{"enabled": false}')
