"""Tool glob_files, which finds files by folder and name, and its earlier parts list_directory and search_files.

`grep.py` searches contents; `matching.py` completes names while the user types.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.look_alikes import folded
from ragforge_tui.shared.records import FileAccess
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo
from ragforge_tui.tools.base import Plan, Tool, ToolArguments, ToolOutcome
from ragforge_tui.tools.search.gitignore import LONGEST_PATH, Patterns
from ragforge_tui.tools.search.ignore import WALK_SECONDS, Entry, IgnoreRules
from ragforge_tui.tools.search.matching import best_matches
from ragforge_tui.tools.workspace import Place, Workspace

IN_FOLDER = ShownArgument(names=("path",), before=" in ", hidden=".")

_MOST_LISTED = 1_000
_MOST_FOUND = 500
_MOST_SIMILAR = 30
_MOST_ACCESSES = 50
_MOST_WALKED = 1_000_000
_BRACES = re.compile(r"\{([^{},]*+,[^{}]*+)\}")


class ListDirectoryArguments(ToolArguments):
    path: Annotated[str, Meta(description="Folder; empty for the workspace.")] = ""
    depth: Annotated[int, Meta(ge=1, le=10, description="Levels of folders to show.")] = 1


class GlobFilesArguments(ToolArguments):
    pattern: Annotated[
        str,
        Meta(description="E.g. src/**/test_*.{ts,tsx} or part of a name, at any depth; empty to list the folder."),
    ] = ""
    path: Annotated[str, Meta(description="Folder; empty for the workspace.")] = ""
    depth: Annotated[int, Meta(ge=1, le=10, description="Levels of folders to list.")] = 1


class SearchFilesArguments(ToolArguments):
    query: Annotated[str, Meta(description="Part of a name or path; letters may be missing.")]
    path: Annotated[str, Meta(description="Folder; empty for the workspace.")] = ""
    limit: Annotated[int, Meta(ge=1, le=200, description="Most files to return.")] = 30


class FolderTool(Tool):
    """Base of the tools that work on a folder: a check of the folder, and the ignore rules."""

    def folder(self, given: str) -> Place:
        """Return the folder at a path.

        Raises:
            ToolError: The path does not exist or is not a folder.
        """
        place = self.context.workspace.locate(given)
        if not place.absolute.is_dir():
            what = "is not a folder" if place.absolute.exists() else "does not exist"
            raise ToolError(f"{place.shown} {what}.", todo="Use glob_files to find it.")
        return place

    def rules(self) -> IgnoreRules:
        """Return the ignore rules, read again for each call because the agent changes files."""
        return IgnoreRules(self.context.workspace.root, self.context.settings.ignore)

    def listed(self, place: Place, depth: int) -> ToolOutcome:
        """Return the entries of a folder: sub-folders first, ignored entries marked; blocks."""
        start = "" if place.relative == "." else place.relative
        lines: list[str] = []
        self._list(self.rules(), start, depth, "", lines)
        count = min(len(lines), _MOST_LISTED)
        if len(lines) > _MOST_LISTED:
            lines = [*lines[:_MOST_LISTED], f"[Cut after {_MOST_LISTED} entries; list a sub-folder or give a pattern.]"]
        text = "\n".join(lines) if lines else f"{place.shown} is empty."
        return ToolOutcome(text=text, data={"count": count}, files=[FileAccess(path=place.shown, access="list")])

    def _list(self, rules: IgnoreRules, folder: str, depth: int, indent: str, lines: list[str]) -> None:
        entries = [
            entry for entry in rules.entries(folder) if not rules.ignored_by_user(entry.path, is_folder=entry.is_folder)
        ]
        entries.sort(key=lambda entry: (not entry.is_folder, entry.path))
        for entry in entries:
            if len(lines) > _MOST_LISTED:
                return
            ignored = rules.ignored(entry.path, is_folder=entry.is_folder)
            lines.append(indent + self._line(entry) + (" (ignored)" if ignored else ""))
            if entry.is_folder and depth > 1 and not ignored:
                self._list(rules, entry.path, depth - 1, indent + "  ", lines)

    def _line(self, entry: Entry) -> str:
        name = shown(entry.path.rsplit("/", 1)[-1])
        if entry.is_folder:
            return name + "/"
        if entry.is_link:
            return f"{name} -> {shown(_target(self.context.workspace, entry.path))}"
        try:
            return f"{name} ({_size((self.context.workspace.root / entry.path).lstat().st_size)})"
        except OSError:
            return name


class ListDirectory(FolderTool):
    """Tool that lists the entries of a folder."""

    info = ToolInfo(
        name="list_directory",
        label="List",
        help="list a folder",
        main_argument="path",
        counted=("entry", "entries"),
        verb="listed {}",
        outcome="files",
        weight=1,
        joined="glob_files",
    )
    description = "List a folder: sub-folders first, files with their size; ignored entries are marked."
    arguments = ListDirectoryArguments

    async def prepare(self, arguments: ListDirectoryArguments) -> Plan:
        place = await asyncio.to_thread(self.folder, arguments.path)

        async def run() -> ToolOutcome:
            return await asyncio.to_thread(self._run, arguments, place)

        return Plan(run=run)

    def _run(self, arguments: ListDirectoryArguments, place: Place) -> ToolOutcome:
        place = self.context.workspace.locate_again(place, arguments.path)
        return self.listed(place, arguments.depth)


class GlobFiles(FolderTool):
    """Tool that finds files by a glob pattern."""

    info = ToolInfo(
        name="glob_files",
        label="Find",
        help="list a folder, or find files by a pattern or name",
        main_argument="pattern",
        shown=(ShownArgument(names=("pattern",)), IN_FOLDER),
        counted=("entry", "entries"),
        verb="listed {}",
        outcome="files",
        weight=1,
    )
    description = (
        "Find files by a glob pattern on their path, or by about what they are called if none matches; ignored files "
        "are left out. Without a pattern, list a folder: sub-folders first, files with their size."
    )
    arguments = GlobFilesArguments

    async def prepare(self, arguments: GlobFilesArguments) -> Plan:
        place = await asyncio.to_thread(self.folder, arguments.path)
        matcher = glob_matcher(arguments.pattern) if arguments.pattern.strip() else None

        async def run() -> ToolOutcome:
            return await asyncio.to_thread(self._run, arguments, place, matcher)

        return Plan(run=run)

    def _run(self, arguments: GlobFilesArguments, place: Place, matcher: Patterns | None) -> ToolOutcome:
        place = self.context.workspace.locate_again(place, arguments.path)
        if matcher is None:
            return self.listed(place, arguments.depth)
        start = "" if place.relative == "." else place.relative
        skip = len(start) + 1 if start else 0
        rules = self.rules()
        paths = list(_files(rules, start))
        nothing = f"No file matches {visible(arguments.pattern)}."
        found = [path for path in paths if matcher.covers(path[skip:])]
        if not found:
            alike = glob_matcher(folded(arguments.pattern))
            found = [path for path in paths if alike.covers(folded(path[skip:]))]
        if not found and (similar := best_matches(paths, arguments.pattern, _MOST_SIMILAR)):
            outcome = found_files(similar, "", cut=rules.walk_expired)
            outcome.text = f"[{nothing} Files with such names, best first:]\n{outcome.text}"
            return outcome
        return found_files(found, nothing, cut=rules.walk_expired)


class SearchFiles(FolderTool):
    """Tool that finds files by an approximate name."""

    info = ToolInfo(
        name="search_files",
        label="Match",
        help="find files by an approximate name",
        main_argument="query",
        shown=(ShownArgument(names=("query",)), IN_FOLDER),
        counted=("file", "files"),
        verb="looked for files like {}",
        outcome="files",
        weight=1,
        joined="glob_files",
    )
    description = "Find files by an approximate name, best first; ignored files are left out."
    arguments = SearchFilesArguments

    async def prepare(self, arguments: SearchFilesArguments) -> Plan:
        place = await asyncio.to_thread(self.folder, arguments.path)

        async def run() -> ToolOutcome:
            return await asyncio.to_thread(self._run, arguments, place)

        return Plan(run=run)

    def _run(self, arguments: SearchFilesArguments, place: Place) -> ToolOutcome:
        place = self.context.workspace.locate_again(place, arguments.path)
        start = "" if place.relative == "." else place.relative
        rules = self.rules()
        found = best_matches(_files(rules, start), arguments.query, arguments.limit)
        return found_files(found, f"No file has a name like {visible(arguments.query)}.", cut=rules.walk_expired)


def glob_matcher(pattern: str) -> Patterns:
    """Return a matcher of relative paths for a glob pattern, which may contain braces.

    Raises:
        ToolError: The pattern is invalid.
    """
    pattern = pattern.strip().removeprefix("./")
    if not pattern or "\0" in pattern or len(pattern) > LONGEST_PATH:
        raise ToolError(
            f"The pattern is empty, contains a NUL character or is longer than {LONGEST_PATH} characters.",
            todo="Give a pattern such as **/*.py.",
        )
    expanded = expand_braces(pattern)
    matcher = Patterns(("\\" + item if item[0] in "!#" else item for item in expanded), bytewise=False)
    if not matcher:
        raise ToolError(f"{pattern!r} is not a glob pattern.", todo="Give a pattern such as **/*.py.")
    return matcher


def expand_braces(pattern: str, most: int = 64) -> list[str]:
    """Expand {a,b} into all patterns it represents; stops expanding at about `most` patterns."""
    done: list[str] = []
    pending = [pattern]
    while pending and len(done) + len(pending) <= most:
        current = pending.pop(0)
        match = _BRACES.search(current)
        if match is None:
            done.append(current)
        else:
            pending += [current[: match.start()] + choice + current[match.end() :] for choice in match[1].split(",")]
    return [item for item in [*done, *pending] if item]


def _files(rules: IgnoreRules, start: str) -> Iterator[str]:
    return (entry.path for entry in rules.walk(start, most=_MOST_WALKED) if not entry.is_folder)


def found_files(paths: list[str], nothing: str, *, cut: bool) -> ToolOutcome:
    """Return an outcome that lists files; `cut` if the search timed out."""
    lines = [shown(path) for path in paths[:_MOST_FOUND]]
    text = "\n".join(lines) or nothing
    if len(paths) > _MOST_FOUND:
        text += f"\n[{len(paths)} files in total; the first {_MOST_FOUND} are shown. Narrow the search.]"
    if cut:
        text += f"\n[Stopped after {WALK_SECONDS:g} s; search a sub-folder.]"
    return ToolOutcome(text=text, data={"count": len(paths)}, files=accesses(lines))


def accesses(paths: Iterable[str]) -> list[FileAccess]:
    """Return the accesses recorded with a call, for the first files of a search."""
    return [FileAccess(path=path, access="search") for path, _ in zip(paths, range(_MOST_ACCESSES), strict=False)]


def shown(path: str) -> str:
    """Return a name from the file system in a form that can be displayed and stored."""
    return visible(storable(path))


def _target(workspace: Workspace, path: str) -> str:
    try:
        return str((workspace.root / path).readlink())
    except OSError:
        return "?"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MiB"
