"""The image in the clipboard, read by a program of the desktop and saved as a file that a message can name.

Loaded when first used. A terminal pastes text only, so an image has to be fetched.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.files import atomic_write, make_private
from ragforge_tui.shared.images import media_type

READ_SECONDS = 10.0
KEPT_DAYS = 7
"""Days for which a saved image stays; what was sent with a message is stored with it."""
_OSASCRIPT = re.compile(rb"\xc2\xabdata PNGf([0-9A-Fa-f]+)\xc2\xbb")


def reader(
    env: Mapping[str, str], platform: str = sys.platform, find: Callable[[str], str | None] = which
) -> list[str]:
    """Return the command that writes the clipboard's image to its output.

    Raises:
        RagforgeError: There is none; the error says what to install.
    """
    if platform == "darwin":
        if find("pngpaste"):
            return ["pngpaste", "-"]
        return ["osascript", "-e", "the clipboard as «class PNGf»"]
    if env.get("WAYLAND_DISPLAY"):
        command, package = ["wl-paste", "--type", "image/png"], "wl-clipboard"
    elif env.get("DISPLAY"):
        command, package = ["xclip", "-selection", "clipboard", "-target", "image/png", "-out"], "xclip"
    else:
        raise RagforgeError("There is no clipboard here.", todo="Save the image and name its file with @.")
    if not find(command[0]):
        raise RagforgeError(f"{command[0]}, which reads the clipboard, is missing.", todo=f"Install {package}.")
    return command


async def save_image(folder: Path) -> Path:
    """Save the clipboard's image in a folder and return its path.

    Raises:
        RagforgeError: There is no image, or it cannot be read or saved.
    """
    content = await _output(reader(os.environ))
    if hexadecimal := _OSASCRIPT.search(content):
        content = bytes.fromhex(hexadecimal[1].decode())
    if not media_type(content):
        raise RagforgeError("The clipboard holds no image.", todo="Copy one, then paste again.")
    try:
        return await asyncio.to_thread(_save, folder, content)
    except OSError as error:
        raise RagforgeError(f"The image could not be saved in {folder}: {error.strerror}.") from error


async def _output(command: list[str]) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise RagforgeError(f"{command[0]} could not be started: {error.strerror}.") from error
    try:
        async with asyncio.timeout(READ_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise RagforgeError(f"{command[0]} did not answer within {READ_SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return output


def _save(folder: Path, content: bytes) -> Path:
    make_private(folder)
    for old in folder.glob("image-*"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > KEPT_DAYS * 86_400:
                old.unlink()
    kind = media_type(content).removeprefix("image/")
    path = folder / f"image-{hashlib.sha256(content).hexdigest()[:8]}.{kind}"
    atomic_write(path, content)
    return path
