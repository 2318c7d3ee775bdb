"""How an address is opened: by what the desktop has for that, in the background, or not at all.

`opener` is pure. Python's own `webbrowser` would start a browser of the terminal over the chat where there is no
desktop, and over ssh it would open on a machine nobody sits at; there the address is copied instead.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from shutil import which

OPEN_SECONDS = 5.0
"""An opener that has not failed by then has opened it, or is the browser itself."""


def opener(env: Mapping[str, str], platform: str = sys.platform, find: Callable[[str], str | None] = which) -> str:
    """The program that opens an address here; empty when there is none, or nobody would see it."""
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
    """Whether the address was opened; nothing the program says reaches the screen."""
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
