"""What opening a link of a message does: a page in the browser, a file of the workspace in its preview.

A part of `ChatActions`. Where a link leads is always said in full.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.tui.choices import Choice
from ragforge_tui.tui.opening import open_address, opener
from ragforge_tui.tui.transcript.links import Link, file_path, web_address

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp
    from ragforge_tui.tui.detail import Section


class LinkActions:
    """The opening of links."""

    _app: ChatApp

    def choose_link(self, links: list[Link]) -> None:
        """Open the only link, or let the person choose among several by where they lead."""
        app = self._app
        if not links:
            app.hint("no link here")
            return
        if len(links) == 1:
            app.controller.spawn(self.open_link(links[0].target), group="link", exclusive=True)
            return
        from ragforge_tui.tui.picker import Picker

        async def rows() -> list[Choice]:
            return [Choice(link.target, link.target, detail=_label(link)) for link in links]

        def picked(target: str | None) -> None:
            if target:
                app.controller.spawn(self.open_link(target), group="link", exclusive=True)

        app.push_screen(Picker("Links", rows, empty="no link", verb="open"), picked)

    async def open_link(self, target: str) -> None:
        """Open a whole address, or a file by its path in the workspace.

        Raises:
            RagforgeError: It is neither.
        """
        if address := web_address(target):
            await self._open_page(address)
        elif path := file_path(target):
            await self._open_file(path)
        else:
            raise RagforgeError(f"{target} is no link that can be opened here.")

    async def _open_page(self, address: str) -> None:
        app = self._app
        host = urlsplit(address).hostname or "a mail"
        program = opener(os.environ)
        if program and await open_address(program, address):
            app.controller.notice(f"Opened {host}: {address}", "info")
            return
        app.copy_to_clipboard(address)
        why = "no browser could be started" if program else "there is no browser here"
        app.controller.notice(f"Copied, since {why}: {address}", "info")

    async def _open_file(self, path: str) -> None:
        workspace = Path(self._app.options.workspace or ".")
        found = await asyncio.to_thread(_inside, workspace, path)
        if found is None:
            raise NotFoundError(f"There is no file {path} in the workspace.")
        from ragforge_tui.tui.detail import file_sections
        from ragforge_tui.tui.viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            return found, await asyncio.to_thread(file_sections, workspace, found, "", "")

        self._app.push_screen(DetailScreen(found, load, actions={}))


def _label(link: Link) -> str:
    return " ".join(link.label.split()) if link.label != link.target else ""


def _inside(workspace: Path, path: str) -> str | None:
    """The path relative to the workspace of a file that is there; links out of it lead nowhere."""
    try:
        root = workspace.resolve()
        file = (root / path).resolve()
        return file.relative_to(root).as_posix() if file.is_file() else None
    except (OSError, ValueError):
        return None
