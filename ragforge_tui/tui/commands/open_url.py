"""Opening an address with the desktop's program for it, in the background.

Python's own `webbrowser` would start a terminal browser over the chat if there is no desktop, and over ssh it would
open
on a machine where nobody sits; there the address is copied instead. `opener` is pure.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from shutil import which

OPEN_SECONDS = 5.0
"""An opener that has not failed by then has opened it, or is the browser itself."""


def opener(env: Mapping[str, str], platform: str = sys.platform, find: Callable[[str], str | None] = which) -> str:
    """Return the program that opens an address; empty if there is none, or nobody would see it."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return ""
    if platform == "darwin":
        return find("open") or ""
    if env.get("WSL_DISTRO_NAME") and (wsl := find("wslview")):
        return wsl
    if env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"):
        return find("xdg-open") or ""
    return ""


async def open_address(program: str, address: str) -> bool:
    """Open an address; return whether that worked. Output of the program never reaches the screen."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            address,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return True
