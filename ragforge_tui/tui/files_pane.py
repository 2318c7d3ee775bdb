"""The pane of files."""

from __future__ import annotations

from typing import ClassVar

from ragforge_tui.tui.sidebar import Pane


class FilesPane(Pane, can_focus=True):
    """The files the agent touched."""

    name_: ClassVar[str] = "files"
    label: ClassVar[str] = "Files"
