"""The files of a conversation as the sidebar lists them: three groups, the newest first in each.

Pure. They come from the engine's memory and are kept up to date with the calls of the running turn.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from rich.cells import cell_len, set_cell_size

from ragforge_tui.shared.records import AccessedFile, ToolCall
from ragforge_tui.shared.requests.work import FileDiff
from ragforge_tui.shared.touched_files import Group, group_of, joined, most_telling

HEADINGS: dict[Group, str] = {"modified": "Modified", "read": "Read", "found": "Found in searches"}
MOST_FILES = 100


class FileLine(msgspec.Struct, frozen=True):
    """A line of the list: the heading of a group, or a file."""

    heading: str = ""
    file: AccessedFile | None = None


class TouchedFiles:
    """The files of one conversation, each once."""

    def __init__(self) -> None:
        self._files: dict[str, AccessedFile] = {}
        self._diffs: dict[str, FileDiff] = {}

    def __len__(self) -> int:
        return len(self._files)

    def load(self, files: Iterable[AccessedFile]) -> None:
        """Replace the files by those that the memory knows."""
        self._files = joined(files)

    def load_diffs(self, diffs: Iterable[FileDiff]) -> None:
        self._diffs = {one.path: one for one in diffs}

    def note(self, turn: int, call: ToolCall) -> bool:
        """Take in a finished call; return whether it touched a file."""
        fresh = [
            AccessedFile(path=file.path, group=group, tool=call.tool_name, turn_index=turn, timestamp=call.timestamp)
            for file in call.files
            if (group := group_of(file.access)) is not None
        ]
        if call.success is False or not fresh:
            return False
        self._files = joined([*self._files.values(), *fresh])
        return True

    def file(self, path: str) -> AccessedFile | None:
        return self._files.get(path)

    def diff(self, path: str) -> FileDiff | None:
        """Return the diff of a file, if it is known."""
        return self._diffs.get(path)

    @property
    def modified(self) -> list[str]:
        return [file.path for file in self._files.values() if file.group == "modified"]

    def lines(self) -> list[FileLine]:
        """Return headings and files."""
        chosen = most_telling(self._files.values(), MOST_FILES)
        lines: list[FileLine] = []
        for group, heading in HEADINGS.items():
            members = [FileLine(file=file) for file in chosen if file.group == group]
            if members:
                lines += [FileLine(heading), *members]
        return lines


def short_path(path: str, width: int) -> str:
    """Shorten a path to so many cells: its end matters more than its beginning."""
    if cell_len(path) <= width:
        return path
    name = path
    while "/" in name:
        name = name.partition("/")[2]
        if cell_len(name) + 2 <= width:
            return f"…/{name}"
    return set_cell_size(name, max(0, width - 1)) + "…" if width > 0 else ""


def mention(path: str) -> str:
    """Return a path as users mention it in a message."""
    return f'@"{path}"' if any(letter in path for letter in " \t'`<>|") and '"' not in path else f"@{path}"
