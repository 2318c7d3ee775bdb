"""The files pane: files that were read, changed and found in groups, newest first.

The files come from the engine's memory and are kept up to date with the calls of the running turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ragforge_tui.shared.accessed_files import group_of, merge_by_path, top_files
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event, ToolCallFinished, TurnCancelled, TurnCompleted, TurnFailed
from ragforge_tui.shared.records import AccessedFile, ToolCall
from ragforge_tui.shared.requests.memory import FetchFiles
from ragforge_tui.shared.requests.work import FileDiff, SessionDiff
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import tool_label
from ragforge_tui.tui.code.opening import open_file_code
from ragforge_tui.tui.dialogs.detail import Section, file_sections
from ragforge_tui.tui.drawing.diff_lines import count_runs
from ragforge_tui.tui.drawing.lines import Run, one_line, short_path
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.prompt.completion import mention
from ragforge_tui.tui.sidebar.pane import Pane
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.virtual_list import VirtualList, fold_arrow

log = logging.getLogger(__name__)

HEADINGS = {
    "created": "Created",
    "modified": "Modified",
    "removed": "Removed",
    "read": "Read",
    "found": "found in searches",
}
NEW_FILE = "--- /dev/null\n"
"""First line of the diff of a created file."""
MOST_FILES = 100
FOUND = "\0found"
"""Key of the heading above the files that searches found."""


class FileLine(msgspec.Struct, frozen=True):
    """A line of the list: the heading of a group, or a file."""

    heading: str = ""
    file: AccessedFile | None = None
    telling: str = ""
    """The end of its path that no other line has."""
    folds: bool | None = None
    """For a heading that opens and closes: whether its files are hidden."""


class TouchedFiles:
    """The files of one conversation, each once."""

    def __init__(self) -> None:
        self._files: dict[str, AccessedFile] = {}
        self._diffs: dict[str, FileDiff] = {}
        self._restored: set[str] = set()
        self._noted: list[AccessedFile] = []
        """Files of calls that ended since `fetching`: a pending answer may lack them."""
        self.found_shown = False
        """Whether files that searches alone found are listed, rather than counted."""

    def __len__(self) -> int:
        return len(self._files)

    def fetching(self) -> None:
        """Keep the files of calls that end from now on, when the fetched ones are loaded."""
        self._noted = []

    def load(self, files: Iterable[AccessedFile]) -> None:
        """Replace the files by the fetched ones, and those noted since `fetching`."""
        fetched = {(file.path, file.timestamp): file for file in files}
        missed = (file for file in self._noted if (file.path, file.timestamp) not in fetched)
        self._files = merge_by_path([*fetched.values(), *missed])

    def load_diffs(self, diffs: Iterable[FileDiff]) -> None:
        """Replace the diffs; a modified file without one has its earlier content again."""
        self._diffs = {one.path: one for one in diffs}
        self._restored = {path for path in self.modified if path not in self._diffs}

    def note(self, turn: int, call: ToolCall) -> bool:
        """Take in a finished call; return whether it touched a file."""
        fresh = [
            AccessedFile(path=file.path, group=group, tool=call.tool_name, turn_index=turn, timestamp=call.timestamp)
            for file in call.files
            if (group := group_of(file.access)) is not None
        ]
        if call.success is False or not fresh:
            return False
        self._noted += fresh
        self._files = merge_by_path([*self._files.values(), *fresh])
        self._restored.difference_update(file.path for file in fresh)
        return True

    def file(self, path: str) -> AccessedFile | None:
        return self._files.get(path)

    def diff(self, path: str) -> FileDiff | None:
        """Return the diff of a file, if it is known."""
        return self._diffs.get(path)

    def restored(self, path: str) -> bool:
        """Return whether the agent changed a file that has its earlier content again, after /undo for instance."""
        return path in self._restored

    @property
    def modified(self) -> list[str]:
        return [file.path for file in self._files.values() if file.group == "modified"]

    def _group(self, file: AccessedFile) -> str:
        """Return the group of a file; whether a changed one was created is known from its diff."""
        if file.removed:
            return "removed"
        known = self._diffs.get(file.path) if file.group == "modified" else None
        return "created" if known is not None and known.diff.startswith(NEW_FILE) else file.group

    def lines(self) -> list[FileLine]:
        """Return headings and files."""
        chosen = top_files(self._files.values(), MOST_FILES)
        ends = telling_ends(file.path for file in chosen)
        lines: list[FileLine] = []
        for group, heading in HEADINGS.items():
            members = [FileLine(file=file, telling=ends[file.path]) for file in chosen if self._group(file) == group]
            if members and group == "found":
                found = sum(file.group == "found" for file in self._files.values())
                lines.append(FileLine(f"{found} {heading}", folds=not self.found_shown))
                lines += members if self.found_shown else []
            elif members:
                lines += [FileLine(heading), *members]
        return lines

    @property
    def used(self) -> int:
        """The number of files that were read or changed, not only found."""
        return sum(file.group != "found" for file in self._files.values())


def telling_ends(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path its shortest end, in whole folders, that no other of them has."""
    parts = {path: path.split("/") for path in paths}
    seen = Counter("/".join(names[-count:]) for names in parts.values() for count in range(1, len(names) + 1))
    return {
        path: next((end for count in range(1, len(names)) if seen[end := "/".join(names[-count:])] == 1), path)
        for path, names in parts.items()
    }


HINTS = (
    KeyHint("open", "enter", "look"),
    KeyHint("show_code", "v", "code"),
    KeyHint("insert", "at", "mention"),
    KeyHint("show_turn", "g", "turn"),
)


class FileRows(VirtualList[FileLine]):
    """The list of files."""

    def __init__(self, files: TouchedFiles, *, empty: str) -> None:
        super().__init__(empty=empty)
        self.files = files

    def key_of(self, line: FileLine) -> str:
        return line.file.path if line.file is not None else FOUND if line.folds is not None else ""

    def draw(self, line: FileLine, width: int, palette: Palette) -> list[Run]:
        """Draw a heading, or a file with the size of its changes and the last turn."""
        if line.file is None:
            arrow = "" if line.folds is None else f" {fold_arrow(not line.folds, palette)}"
            return [(line.heading, palette.muted), (arrow, palette.arrow)]
        right: list[Run] = []
        known = self.files.diff(line.file.path)
        if known is not None and "\n" in known.diff:
            changed = count_runs(known.added, known.removed, palette)
            right += [*changed, (", " if palette.plain else " ", palette.removed)] if changed else []
        elif self.files.restored(line.file.path) and not line.file.removed:
            right.append(("restored, " if palette.plain else "restored ", palette.muted))
        turn = f"turn {line.file.turn_index}" if palette.plain else f"{f't{line.file.turn_index}':>4}"
        right.append((turn, palette.muted))
        cells = sum(cell_len(text) for text, _ in right)
        shown = short_path(one_line(line.file.path), max(4, width - cells - 3), one_line(line.telling))
        folder, slash, name = shown.rpartition("/")
        gap = max(1, width - 2 - cell_len(shown) - cells)
        return [
            ("  ", palette.text),
            (folder + slash, palette.muted),
            (name, palette.text),
            (" " * gap, palette.text),
            *right,
        ]


class FilesPane(Pane):
    """Lists files, with keys to open them and to mention them in the prompt."""

    name_: ClassVar[str] = "files"
    label: ClassVar[str] = "Files"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("at", "insert", "mention in the prompt", show=False),
        Binding("g", "show_turn", "go to its turn", show=False),
        Binding("v", "show_code", "view: whole, its code, as it was sent", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.files = TouchedFiles()
        self.rows = FileRows(self.files, empty="loading …")
        self._stale = True
        self._keys = KeyBar(self, HINTS)

    def compose(self) -> ComposeResult:
        """Lay out the list and the keys."""
        yield self.rows
        yield self._keys

    # -- calls of the sidebar

    def opened(self) -> None:
        """Fetch the files, unless they are known."""
        self.show()
        if self._stale and self.session.state.conversation_id:
            self.session.spawn(self._fetch(), group="files", exclusive=True)

    def conversation_changed(self) -> None:
        """Drop the list."""
        self.files = self.rows.files = TouchedFiles()
        self._stale = True
        self.show()

    def event(self, event: Event) -> None:
        """Note the files of a call; reload after a turn."""
        match event:
            case ToolCallFinished():
                if self.files.note(event.turn_index, event.call):
                    self.show()
            case TurnCompleted() | TurnCancelled() | TurnFailed():
                self._stale = True
                if self.display:
                    self.opened()

    # -- rows

    def show(self) -> None:
        count = len(self.files)
        self.note = str(count) if count else ""
        self._keys.display = count > 0
        loading = self._stale and bool(self.session.state.conversation_id)
        self.rows.show(self.files.lines(), empty="loading …" if loading else "nothing read or changed yet")
        self.tally = str(self.files.used or f"{count} found") if count else ""
        self.needed = self.rows.count + 1 if count else 0

    async def _fetch(self) -> None:
        files, session = self.files, self.session
        uuid = session.state.conversation_id
        files.fetching()
        try:
            found = await session.ask(FetchFiles(conversation_id=uuid))
            if files is not self.files:
                return
            files.load(found)
            self._stale = False
            self.show()
            if files.modified:
                diffs = await session.ask(SessionDiff(conversation_id=uuid))
                files.load_diffs(diffs)
                self.show()
        except RagforgeError as error:
            # No notice, since the user did not ask: shown in place of the files, if there are none.
            log.info("files not fetched: %s", error)
            self.rows.show(self.files.lines(), empty=plain_text(error.info.what))

    # -- one file

    def action_open(self) -> None:
        self.rows.action_open()

    def action_insert(self) -> None:
        if (file := self.files.file(self.rows.chosen)) is not None:
            self._insert(file.path)

    def _insert(self, path: str) -> None:
        prompt = self.host.prompt
        before = prompt.text
        lead = " " if before and not before[-1].isspace() else ""
        self.host.sidebar.uncover()
        prompt.insert(f"{lead}{mention(plain_text(path))} ")
        prompt.focus()

    def action_show_code(self) -> None:
        """Show the functions and classes of the chosen file, with the turns about each."""
        if (file := self.files.file(self.rows.chosen)) is not None:
            open_file_code(self.host, file.path)

    def action_show_turn(self) -> None:
        """Bring the last turn that touched the chosen file into view."""
        if (file := self.files.file(self.rows.chosen)) is not None:
            self.host.navigator.go_to_turns(file.turn_index)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Show the file and its changes; list or count the files that searches found."""
        event.stop()
        if event.key == FOUND:
            self.files.found_shown = not self.files.found_shown
            self.show()
            return
        file = self.files.file(event.key)
        if file is None:
            return
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        title = f"{file.path} · turn {file.turn_index} · {tool_label(file.tool)}"

        async def load() -> tuple[str, list[Section]]:
            diff = await self._diff(file.path) if file.group == "modified" else ("", "")
            workspace = Path(self.host.options.workspace or ".")
            return title, await asyncio.to_thread(file_sections, workspace, file.path, *diff)

        def closed(action: str | None) -> None:
            if action == "insert":
                self._insert(file.path)
            elif action == "turn":
                self.host.navigator.go_to_turns(file.turn_index)
            elif action == "code":
                open_file_code(self.host, file.path)

        actions = {"v": ("code", "its code"), "at": ("insert", "mention"), "g": ("turn", "go to its turn")}
        changed = file.group == "modified"
        self.app.push_screen(DetailScreen(title, load, actions=actions, has_diff=changed), closed)

    async def _diff(self, path: str) -> tuple[str, str]:
        """Return the diff of a file and a note about it; a failure becomes the note."""
        try:
            uuid = self.session.state.conversation_id
            diffs = await self.session.ask(SessionDiff(conversation_id=uuid))
        except RagforgeError as error:
            return "", f"The changes are unknown: {error.info.sentence()}"
        self.files.load_diffs(diffs)
        found = self.files.diff(path)
        return (found.diff, found.note) if found is not None else ("", "")
