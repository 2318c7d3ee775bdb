"""Recently accessed files of a conversation, as a request lists them.

Used by the context of a turn and shown in the sidebar. Held in memory and updated turn by turn, so that a request
costs no statement. Rules read .gitignore and mentions are looked up on the disk, so call `note` in a thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

import msgspec

from ragforge_tui.llm import count_tokens
from ragforge_tui.shared.accessed_files import Group, accesses_of, merge_by_path, top_files
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import AccessedFile, Turn
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import written_name
from ragforge_tui.tools.search.gitignore import Patterns
from ragforge_tui.tools.search.ignore import IgnoreRules
from ragforge_tui.tools.workspace import Workspace

MOST_FILES = 100
MENTION = "mention"
"""Shown as the tool where the user named the file."""

_HEADINGS: dict[Group, str] = {"read": "Read", "modified": "Modified", "found": "Found in searches"}
_MOST_MENTIONS = 50
FOUND_NAMED = 3
"""Files of one search that are named; of more, only their number is told."""
_MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\"'`<>|]+))(:\d+(?:-\d+)?)?")
_PLACE = re.compile(r"(?:#L?\d+(?:-L?\d+)?|:\d+(?:[:-]\d+)?)$")
"""Line or range after the name, as in ``app.py:12`` and ``app.py#L3-L9``."""

_TEMPORARY_OR_GENERATED = """
.git/ .hg/ .svn/ node_modules/ bower_components/ __pycache__/ .venv/ venv/ site-packages/
build/ dist/ .next/ .nuxt/ .gradle/ .eggs/ *.egg-info/ htmlcov/
.cache/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .tox/ .nox/ .hypothesis/ .idea/
tmp/ temp/ .tmp/ *.tmp *.temp *.swp *.swo *~ .#* *.bak *.orig *.rej .DS_Store Thumbs.db
*.pyc *.pyo *.class *.o *.obj *.so *.dylib *.dll *.min.js *.min.css *.map
conv-????????-????-????-????-????????????.json conv-????????-????-????-????-????????????.md
*.lock *.lockfile package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb go.sum
"""
_NOISE = Patterns(_TEMPORARY_OR_GENERATED.split())


class PackedFiles(msgspec.Struct, kw_only=True, frozen=True):
    """Files listed in a request.

    Attributes:
        files: The files named in `text`, in the order of the three groups.
        left_out: Number of files that did not fit.
    """

    text: str = ""
    files: list[AccessedFile] = []
    left_out: int = 0
    tokens: int = 0


class RecentFiles:
    """Files of one conversation.

    Args:
        workspace: Folder in which mentioned files are looked up and whose .gitignore counts; None for neither.
        ignore: Patterns set by the user, as in .gitignore.
    """

    def __init__(self, workspace: Path | None = None, ignore: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self._ignore = tuple(ignore)
        self._loaded: list[AccessedFile] = []
        self._turns: dict[int, list[AccessedFile]] = {}
        self._files: list[AccessedFile] = []
        self._packed: dict[int, PackedFiles] = {}

    def load(self, files: Iterable[AccessedFile], mentions: Iterable[Turn] = ()) -> None:
        """Set the files of the turns before those that are noted, as the store returns them.

        Args:
            files: Files that tools accessed.
            mentions: Turns whose questions may mention a file.
        """
        relevant = self._filter()
        mentioned = (file for turn in mentions for file in self._mentioned(turn))
        self._loaded = [file for file in (*files, *mentioned) if relevant(file)]
        self._changed()

    def note(self, turn: Turn) -> None:
        """Add a turn; noted again, after a retry, it replaces its earlier version."""
        relevant = self._filter()
        noted = merge_by_path(file for file in (*accesses_of(turn), *self._mentioned(turn)) if relevant(file))
        self._turns[turn.turn_index] = list(noted.values())
        self._changed()

    def turns_moved(self, moved: Mapping[int, int]) -> None:
        """Correct the indexes of noted turns: the new ones by those assumed so far."""
        noted: dict[int, list[AccessedFile]] = {}
        for assumed, files in self._turns.items():
            index = moved.get(assumed, assumed)
            noted[index] = [msgspec.structs.replace(file, turn_index=index) for file in files]
        self._turns = noted
        self._changed()

    def groups(self, limit: int = MOST_FILES) -> list[AccessedFile]:
        """Return the files in the order of the groups (Read, Modified, Found in searches), newest first in each.

        If there are more than `limit`, modified ones are dropped last.
        """
        chosen = top_files(self._files, limit)
        return [file for group in _HEADINGS for file in chosen if file.group == group]

    def render(self, max_tokens: int) -> str:
        return self.pack(max_tokens).text

    def pack(self, max_tokens: int) -> PackedFiles:
        """Return the files that fit into `max_tokens`; empty if there are none or none fits."""
        if max_tokens not in self._packed:
            self._packed = {max_tokens: _pack(self._files, max_tokens)}
        return self._packed[max_tokens]

    def _changed(self) -> None:
        everything = (*self._loaded, *(file for index in sorted(self._turns) for file in self._turns[index]))
        self._files = top_files(self._existing(merge_by_path(everything).values()), MOST_FILES)
        self._packed = {}

    def _existing(self, files: Iterable[AccessedFile]) -> Iterator[AccessedFile]:
        """Leave out files that no longer exist, and mark those that the agent modified; any command may remove one."""
        for file in files:
            if self._workspace is None or os.path.lexists(self._workspace / file.path):
                yield file
            elif file.group == "modified":
                yield msgspec.structs.replace(file, removed=True)

    def _filter(self) -> Callable[[AccessedFile], bool]:
        """Return a test for files worth listing: not temporary, not generated, not ignored by the user.

        Files matched by .gitignore are mostly generated, but one that the agent was asked to change is not.
        """
        rules = IgnoreRules(self._workspace, self._ignore) if self._workspace else None
        ignored = Patterns(self._ignore)

        def relevant(file: AccessedFile) -> bool:
            if not file.path or _NOISE.covers(file.path) or ignored.covers(file.path):
                return False
            return rules is None or file.group == "modified" or not rules.ignored_anywhere(file.path)

        return relevant

    def _mentioned(self, turn: Turn) -> Iterator[AccessedFile]:
        """Yield the files of the workspace that the user named with an @."""
        if self._workspace is None:
            return
        workspace = Workspace(self._workspace)
        for message in turn.messages:
            if message.role != "user":
                continue
            for path in dict.fromkeys(mentions(message.content)):
                if (existing := _existing(workspace, path)) is not None:
                    yield AccessedFile(
                        path=existing,
                        group="read",
                        tool=MENTION,
                        turn_index=turn.turn_index,
                        timestamp=message.timestamp,
                    )


def mentions(text: str) -> list[str]:
    """Return the possible file names after an @ in a message, as written."""
    names = ((match[1] or match[2] or match[3]) + (match[4] or "") for match in _MENTION.finditer(text))
    return [name for name, _ in zip(names, range(_MOST_MENTIONS), strict=False)]


def _existing(workspace: Workspace, written: str) -> str | None:
    """Return the workspace file a mention names: as written, or without the punctuation and line after it."""
    bare = written.rstrip(".,;:!?)]}…")
    for name in dict.fromkeys((written, bare, _PLACE.sub("", bare))):
        try:
            place = workspace.locate(name)
            if place.absolute.is_file():
                return place.shown
        except (ToolError, OSError, ValueError):
            continue
    return None


def _pack(files: list[AccessedFile], max_tokens: int) -> PackedFiles:
    """Return as many of the files, in order of importance, as fit."""
    whole = _rendered(files, 0)
    if whole.tokens <= max_tokens:
        return whole
    low, high = 0, len(files)
    best = PackedFiles(left_out=len(files))
    while low < high:
        middle = (low + high + 1) // 2
        packed = _rendered(files[:middle], len(files) - middle)
        if packed.tokens <= max_tokens:
            low, best = middle, packed
        else:
            high = middle - 1
    return best


def _rendered(files: list[AccessedFile], left_out: int) -> PackedFiles:
    parts: list[str] = []
    shown: list[AccessedFile] = []
    for group, heading in _HEADINGS.items():
        members = [file for file in files if file.group == group]
        if members:
            parts += [f"{heading}:", *(_found_lines(members) if group == "found" else _lines(members))]
            shown += members
    if left_out:
        parts.append(f"({left_out} more not shown)")
    text = "\n".join(parts)
    return PackedFiles(text=text, files=shown, left_out=left_out, tokens=count_tokens(text))


def _lines(files: list[AccessedFile]) -> list[str]:
    """Return one line per file, or one per folder where that is shorter."""
    folders: dict[str, list[AccessedFile]] = {}
    for file in files:
        folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    lines: list[str] = []
    for folder, members in folders.items():
        single = [f"- {_one_line(file.path)} {_where(file)}" for file in members]
        together = f"- {_one_line(folder)}/: {_named(members)}"
        lines += [together] if folder and len(together) < len("\n".join(single)) else single
    return lines


def _found_lines(files: list[AccessedFile]) -> list[str]:
    """Return the lines of files that searches found and nobody read; many of one search are one line with a count."""
    searches: dict[str, list[AccessedFile]] = {}
    for file in files:
        searches.setdefault(_where(file), []).append(file)
    lines: list[str] = []
    for members in searches.values():
        lines += _lines(members) if len(members) <= FOUND_NAMED else [_counted(members)]
    return lines


def _counted(files: list[AccessedFile]) -> str:
    """Return one line for files of a search: what their paths have in common, their number, and the turn."""
    folders = [_one_line(file.path).split("/")[:-1] for file in files]
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))]
    deeper = any(len(folder) > len(common) for folder in folders)
    pattern = "/".join([*common, *(["*"] if deeper else []), "…"])
    return f"- {pattern} ({len(files)} files, t{files[0].turn_index})"


def _named(files: list[AccessedFile]) -> str:
    """Return the names of one folder's files; neighbours with the same tool and turn share one note."""
    parts: list[str] = []
    for position, file in enumerate(files):
        name = _one_line(file.path.rpartition("/")[2])
        following = files[position + 1] if position + 1 < len(files) else None
        alike = following is not None and _where(following) == _where(file)
        parts.append(name if alike else f"{name} {_where(file)}")
    return ", ".join(parts)


def _where(file: AccessedFile) -> str:
    removed = "since removed; " if file.removed else ""
    return f"({removed}{_one_line(written_name(file.tool)) or '?'}, t{file.turn_index})"


def _one_line(name: str) -> str:
    return " ".join(plain_text(name).split("\n"))
