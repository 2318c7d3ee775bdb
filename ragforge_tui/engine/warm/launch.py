"""Start of an engine host as a background process."""

from __future__ import annotations

import os
import socket
import subprocess

from ragforge_tui.engine.warm.messages import HostFiles
from ragforge_tui.shared.daemon import daemon_command, daemon_environment
from ragforge_tui.shared.files import make_private

HOST = ["-m", "ragforge_tui.engine.warm.host"]


def start_host(files: HostFiles, listener: socket.socket, lock: int, *, keep_seconds: float, forks: bool) -> None:
    """Start a host that inherits the socket and the lock.

    Args:
        listener: The socket chats connect to.
        lock: Descriptor of the host's lock, held.
        keep_seconds: How long the host waits for its first chat.
        forks: Whether the host forks engines; otherwise it becomes one.

    Raises:
        OSError: The host cannot be started.
    """
    command = daemon_command(
        *HOST,
        f"--state={files.state}",
        f"--listener={listener.fileno()}",
        f"--lock={lock}",
        f"--keep-seconds={keep_seconds}",
        *([] if forks else ["--no-fork"]),
    )
    log = open_log(files)
    try:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=files.folder,
            env=daemon_environment(),
            pass_fds=(listener.fileno(), lock),
            start_new_session=True,
        )
    finally:
        os.close(log)


def open_log(files: HostFiles) -> int:
    """Return a descriptor for stray output: a log file, or the null device if it cannot be opened."""
    try:
        make_private(files.log.parent)
        return os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
