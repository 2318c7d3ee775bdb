"""What the commands about the sidebar do. A part of `ChatActions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp


class SidebarActions:
    """The commands that show and fold panes."""

    _app: ChatApp

    async def trace(self) -> None:
        """Show the calls of tools, or go back from them."""
        self._app.sidebar.toggle("trace")

    async def files(self) -> None:
        """Show the files touched, or go back from them."""
        self._app.sidebar.toggle("files")

    async def sidebar(self) -> None:
        """Show or fold the sidebar."""
        self._app.sidebar.toggle()
