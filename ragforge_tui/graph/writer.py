"""The process that writes a streaming message, and whether it still lives.

The store stamps streaming messages with `writer_id`. Readers ask `writer_alive` and report the message as interrupted
when the process is gone. Apart from the store, because it deals with operating systems and not with graphs.
"""

from __future__ import annotations

import os
import platform
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

import psutil

LEASE_GRACE = timedelta(seconds=10)
"""Time after its lease for which a writer on another host still counts as alive."""

_START_TOLERANCE = 2.0
"""Seconds by which a start time may differ where it is computed from the wall clock (not on Linux)."""


@lru_cache(maxsize=1)
def _boot_id() -> str:
    """Return the id of this boot and, on Linux, of this pid namespace: containers share a boot but not their pids."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        name = boot.read_text(encoding="ascii").strip()
    except OSError:
        return f"boot-{int(psutil.boot_time()) // 60}"
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return name
    return f"{name}/{namespace.removeprefix('pid:[').removesuffix(']')}"


def _start_time(pid: int) -> str | None:
    """Return a process's start time in a form that is stable for its life; None when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _start_time_portable(pid)
    # The name in parentheses may hold anything; what follows the last one is state and numbers.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _start_time_portable(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def _same_start(recorded: str, actual: str) -> bool:
    if recorded == actual:
        return True
    try:
        return "." in recorded and abs(float(recorded) - float(actual)) <= _START_TOLERANCE
    except ValueError:
        return False


def writer_id() -> str:
    """Return this process as ``host|boot id|pid|start time``."""
    return _writer_of(os.getpid())


@lru_cache(maxsize=1)
def _writer_of(pid: int) -> str:
    return f"{platform.node()}|{_boot_id()}|{pid}|{_start_time(pid) or ''}"


def writer_alive(writer: str, lease_until: datetime | None, now: datetime) -> bool:
    """Return whether the process that writes a streaming message may still be writing.

    On this host the process table decides, whatever the lease; for another host only the lease is known.
    """
    host, _, rest = writer.partition("|")
    boot, _, rest = rest.partition("|")
    pid, _, start = rest.partition("|")
    if host == platform.node() and boot == _boot_id() and pid.isdigit():
        actual = _start_time(int(pid))
        return actual is not None and _same_start(start, actual)
    if host == platform.node() and boot.partition("/")[0] != _boot_id().partition("/")[0]:
        return False  # this very machine, before a restart
    return lease_until is not None and now <= lease_until + LEASE_GRACE
