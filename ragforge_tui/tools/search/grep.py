"""Tool grep_files: search for lines of files that match a pattern.

Matching always runs in another process: ripgrep if it is installed, else `grep_worker.py`, which also reads old
encodings and finds look-alikes. A pattern with catastrophic backtracking, or a huge tree, can then be stopped and
never blocks the engine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ragforge_tui.shared.sanitize import visible
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo
from ragforge_tui.tools.base import Plan, ToolArguments, ToolOutcome
from ragforge_tui.tools.search.ignore import WALK_SECONDS, IgnoreRules
from ragforge_tui.tools.search.listing import IN_FOLDER, FolderTool, accesses, glob_matcher, shown
from ragforge_tui.tools.sensitive import Guard
from ragforge_tui.tools.workspace import Place

MAX_SEARCHED_BYTES = 20 * 1024 * 1024
"""Largest file that is searched."""

_MOST_SHOWN = 250
_MOST_COLLECTED = 10_000
_LONGEST_LINE = 500
_SECONDS = 60.0
_QUOTES = re.compile("[\"']")


class GrepFilesArguments(ToolArguments):
    pattern: Annotated[str, Meta(description="Regular expression, matched line by line.")]
    path: Annotated[str, Meta(description="Folder or file; empty for the workspace.")] = ""
    include: Annotated[str, Meta(description="Glob of the files, such as *.py.")] = ""
    ignore_case: bool = False


class Query(msgspec.Struct, kw_only=True):
    """Pattern and location of a search."""

    root: str
    start: str
    pattern: str
    literal: bool
    ignore_case: bool
    is_file: bool


class Found(msgspec.Struct, frozen=True, order=True):
    """One matching line."""

    path: str
    line: int
    text: str


class Findings(msgspec.Struct):
    """Result of a search.

    Attributes:
        left_out: Whether files were left out because they may hold keys or passwords.
        stopped: The reason the search ended early; empty if it did not.
    """

    lines: list[Found] = []
    left_out: bool = False
    stopped: str = ""


class GrepFiles(FolderTool):
    """Tool that returns matching lines."""

    info = ToolInfo(
        name="grep_files",
        label="Search",
        help="search file contents by a regular expression",
        main_argument="pattern",
        shown=(ShownArgument(names=("pattern",)), IN_FOLDER),
        counted=("match", "matches"),
        verb="searched for {}",
        outcome="matches",
        longest_argument=32,
        weight=1,
    )
    description = (
        "Search the contents of files for a regular expression; returns path:line: text. Ignored, binary and very "
        "large files, and files that may contain keys or passwords, are skipped."
    )
    arguments = GrepFilesArguments

    async def prepare(self, arguments: GrepFilesArguments) -> Plan:
        place = await asyncio.to_thread(self._place, arguments.path)
        if arguments.include:
            glob_matcher(arguments.include)

        async def run() -> ToolOutcome:
            return await self._run(arguments, place)

        return Plan(run=run)

    def _place(self, given: str) -> Place:
        place = self.context.workspace.locate(given)
        return place if place.absolute.is_file() else self.folder(given)

    async def _run(self, arguments: GrepFilesArguments, place: Place) -> ToolOutcome:
        place = await asyncio.to_thread(self.context.workspace.locate_again, place, arguments.path)
        query = Query(
            root=str(self.context.workspace.root),
            start="" if place.relative == "." else place.relative,
            pattern=arguments.pattern,
            literal=not await asyncio.to_thread(_is_expression, arguments.pattern),
            ignore_case=arguments.ignore_case,
            is_file=await asyncio.to_thread(place.absolute.is_file),
        )
        search = _Search(query, self.rules(), arguments.include, self.context.workspace.guard)
        try:
            findings = await asyncio.to_thread(search.run)
        finally:
            search.stop()
        return _outcome(findings, query)


class _Search:
    """Search in another process; `stop` may be called from another thread."""

    def __init__(self, query: Query, rules: IgnoreRules, include: str, guard: Guard) -> None:
        self._query = query
        self._guard = guard
        self._rules = rules
        self._matcher = glob_matcher(include) if include else None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._expired = False
        self._included: dict[str, bool] = {}

    def run(self) -> Findings:
        """Run the search; blocks until it ends or is stopped."""
        rg = shutil.which("rg")
        # ripgrep knows neither old encodings nor look-alikes.
        if rg is not None and self._query.pattern.isascii():
            findings = self._collect(self._rg_lines(rg))
            # Status 2 without a match: an expression that ripgrep does not support, such as a look-ahead.
            found = bool(findings.lines or findings.stopped or self._stopped)
            if found or (self._status() in (0, 1) and not _QUOTES.search(self._query.pattern)):
                return findings
        return self._collect(self._worker_lines())

    def stop(self) -> None:
        """End the other process; also keeps it from starting."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _status(self) -> int | None:
        return self._process.wait() if self._process is not None else None

    def _collect(self, found: Generator[Found, None, None]) -> Findings:
        findings = Findings(left_out=bool(self._query.start) and self._guard.hides(self._query.start))
        with contextlib.closing(found) as lines:
            for line in lines:
                if self._guard.hides(line.path):
                    findings.left_out = True
                elif self._is_included(line.path):
                    findings.lines.append(line)
                if len(findings.lines) >= _MOST_COLLECTED:
                    findings.stopped = f"Stopped after {_MOST_COLLECTED} matches; narrow the search."
                    break
        if self._expired:
            findings.stopped = f"Stopped after {_SECONDS:g} s; narrow the search."
        elif self._rules.walk_expired:
            findings.stopped = f"Not all folders were searched within {WALK_SECONDS:g} s; search a sub-folder."
        findings.lines.sort()
        return findings

    def _is_included(self, path: str) -> bool:
        if path not in self._included:
            start = self._query.start
            if self._query.is_file:
                self._included[path] = True
            else:
                below = path[len(start) + 1 :] if start else path
                matches = self._matcher is None or self._matcher.covers(below)
                self._included[path] = matches and not self._rules.ignored_anywhere(path, below=start)
        return self._included[path]

    def _rg_lines(self, rg: str) -> Generator[Found, None, None]:
        query = self._query
        command = [rg, "--json", "--no-config", "--no-messages", "--hidden", "--crlf", "--no-require-git"]
        command += ["--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-parent"]
        command += ["--max-filesize", str(MAX_SEARCHED_BYTES), "--max-count", str(_MOST_COLLECTED)]
        if query.start and self._rules.ignored_anywhere(query.start, is_folder=not query.is_file):
            command.append("--no-ignore")
        else:
            command += ["--glob", "!.git"]
        command += ["--ignore-case"] if query.ignore_case else []
        command += ["--fixed-strings"] if query.literal else []
        command += ["--regexp", query.pattern, "--", f"./{query.start}"]
        pending: list[Found] = []
        for line in self._output(command, b""):
            event = msgspec.json.decode(line)
            if event["type"] == "match":
                pending += _rg_match(event["data"])
            elif event["type"] == "end":
                # A file that turned out to be binary after its first matches counts as binary.
                if event["data"]["binary_offset"] is None:
                    yield from pending
                pending = []

    def _worker_lines(self) -> Generator[Found, None, None]:
        query = self._query
        if query.is_file:
            paths = [query.start]
        else:
            walked = itertools.takewhile(lambda _: not self._stopped, self._rules.walk(query.start))
            paths = [entry.path for entry in walked if entry.is_regular]
        paths = [path for path in paths if path.isprintable() and self._is_included(path)]
        package = str(Path(__file__).resolve().parents[3])
        worker = "from ragforge_tui.tools.search.grep_worker import main; main()"
        code = f"import sys; sys.path.insert(0, {package!r}); {worker}"
        work: dict[str, Any] = {
            "root": query.root,
            "paths": paths,
            "pattern": re.escape(query.pattern) if query.literal else query.pattern,
            "ignore_case": query.ignore_case,
            "most_bytes": MAX_SEARCHED_BYTES,
            "most_matches": _MOST_COLLECTED,
        }
        # -P: Python modules in the workspace are searched, never imported.
        for line in self._output([sys.executable, "-E", "-P", "-c", code], msgspec.json.encode(work)):
            yield msgspec.json.decode(line, type=Found)

    def _output(self, command: list[str], data: bytes) -> Iterator[bytes]:
        """Yield the lines that another process writes until it ends, is stopped or times out."""
        process = subprocess.Popen(
            command, cwd=self._query.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._process = process
        timer = threading.Timer(_SECONDS, self._expire)
        timer.daemon = True
        timer.start()
        assert process.stdin is not None
        assert process.stdout is not None
        ended = False
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(data)
                process.stdin.close()
            if not self._stopped:
                yield from process.stdout
            ended = not self._stopped
        finally:
            timer.cancel()
            # A process whose output has ended will exit; one whose output is abandoned would write forever.
            if not ended:
                process.kill()
            process.stdout.close()
            process.wait()

    def _expire(self) -> None:
        self._expired = True
        self.stop()


def _rg_match(data: Any) -> Iterator[Found]:
    path = _rg_text(data["path"]).removeprefix("./")
    for offset, text in enumerate(_rg_text(data["lines"]).removesuffix("\n").split("\n")):
        yield Found(path, data["line_number"] + offset, text.removesuffix("\r"))


def _rg_text(value: dict[str, str]) -> str:
    if "text" in value:
        return value["text"]
    content = base64.b64decode(value["bytes"])
    try:
        return content.decode("utf-8", "strict")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _is_expression(pattern: str) -> bool:
    """Return whether a pattern is a valid regular expression; otherwise it is searched for literally."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            return False
    return True


def _outcome(findings: Findings, query: Query) -> ToolOutcome:
    lines = [_line(found) for found in findings.lines[:_MOST_SHOWN]]
    paths = list(dict.fromkeys(found.path for found in findings.lines))
    notes = []
    if query.literal:
        notes.append("The pattern is not a valid regular expression and was searched for as plain text.")
    if len(findings.lines) > _MOST_SHOWN:
        notes.append(f"{len(findings.lines)} matches in {len(paths)} files; the first {_MOST_SHOWN} are shown.")
    if findings.left_out:
        notes.append("Files that may contain keys or passwords were left out.")
    if findings.stopped:
        notes.append(findings.stopped)
    body = "\n".join(lines) if lines else f"No line matches {visible(query.pattern)}."
    text = "\n".join([body, *(f"[{note}]" for note in notes)])
    return ToolOutcome(text=text, data={"matches": len(findings.lines)}, files=accesses(shown(path) for path in paths))


def _line(found: Found) -> str:
    text = visible(found.text)
    if len(text) > _LONGEST_LINE:
        text = f"{text[:_LONGEST_LINE]} [line cut]"
    return f"{shown(found.path)}:{found.line}: {text}"
