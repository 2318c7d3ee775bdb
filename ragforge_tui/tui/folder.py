"""The folder of the chat and its branch, in short form for a line of the screen."""

from __future__ import annotations

import os

from rich.cells import cell_len

from ragforge_tui.shared.account import home_folder
from ragforge_tui.tui.drawing.lines import clip, fit, one_line

_LEAST_BRANCH = 4
"""Fewest cells of a branch that are shown, with the blank before it."""


def short_folder(folder: str) -> str:
    """Return a path with ``~`` for the user's home."""
    home = str(home_folder()).rstrip(os.sep)
    if home and (folder == home or folder.startswith(f"{home}{os.sep}")):
        folder = f"~{folder[len(home) :]}"
    return one_line(folder)


def folder_text(folder: str, branch: str, width: int) -> str:
    """Return folder and branch in at most `width` cells: first the start of the path is left out, then the branch.

    The name of the folder distinguishes one terminal from another, so it stays longest.
    """
    path = short_folder(folder)
    sign = f" ({one_line(branch)})" if branch else ""
    name = path.rpartition(os.sep)[2] or path
    for text in (f"{path}{sign}", f"…{os.sep}{name}{sign}", f"{name}{sign}"):
        if cell_len(text) <= width:
            return text
    room = width - cell_len(name)
    return f"{name}{clip(sign, room)}" if room > _LEAST_BRANCH else fit(name, width).rstrip()
