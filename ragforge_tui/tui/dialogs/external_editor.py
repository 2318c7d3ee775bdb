"""Editing a text in the user's own editor while the chat is suspended.

Loaded when first used. The file keeps the text's line endings and is removed afterwards.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from textual.app import App, SuspendNotSupported

from ragforge_tui.shared.encoding import decode_saved
from ragforge_tui.shared.errors import RagforgeError

FALLBACKS = ("nano", "vim", "vi")


def editor_command(env: Mapping[str, str]) -> list[str]:
    """Return the command in $VISUAL or $EDITOR, else the first usual editor that is installed.

    Raises:
        RagforgeError: There is none.
    """
    for name in ("VISUAL", "EDITOR"):
        if env.get(name, "").strip():
            try:
                return shlex.split(env[name])
            except ValueError as error:
                raise RagforgeError(f"${name} cannot be understood: {error}.", kind="editor") from error
    for name in FALLBACKS:
        if shutil.which(name):
            return [name]
    raise RagforgeError("No editor was found.", todo="Set $EDITOR.", kind="editor")


async def edited(app: App[str], text: str, name: str) -> str:
    """Return the edited text; `name` is the name of its file.

    Raises:
        RagforgeError: The editor could not be run or failed; the text is unchanged.
    """
    command = editor_command(os.environ)
    with tempfile.TemporaryDirectory(prefix="ragforge-") as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        await _run(app, [*command, str(path)])
        return decode_saved(path.read_bytes())


async def _run(app: App[str], command: list[str]) -> None:
    kept = "Nothing was changed."
    try:
        with app.suspend():
            # The terminal is the editor's: nothing may be drawn meanwhile, so this waits here.
            status = subprocess.run(command, check=False).returncode  # noqa: ASYNC221
        app.refresh()
    except SuspendNotSupported:
        status = await _run_in_window(command)
    except OSError as error:
        raise RagforgeError(
            f"{command[0]} could not be started: {error.strerror}.", kept=kept, kind="editor"
        ) from error
    if status:
        raise RagforgeError(f"{command[0]} ended with status {status}.", kept=kept, kind="editor")


async def _run_in_window(command: list[str]) -> int:
    """Run an editor with a window of its own, since the terminal cannot be suspended."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise RagforgeError(f"{command[0]} could not be started: {error.strerror}.", kind="editor") from error
    return await process.wait()
