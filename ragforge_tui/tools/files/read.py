"""Tool read_file: read a text file, with numbered lines."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from ragforge_tui.shared.encoding import decode, lines_of
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import FileAccess
from ragforge_tui.shared.sanitize import visible
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo
from ragforge_tui.tools.base import ApprovalNeed, Plan, Tool, ToolArguments, ToolOutcome
from ragforge_tui.tools.sensitive import BECAUSE
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.workspace import Place, Workspace, read_bytes

_LONGEST_LINE = 2_000

FilePath = Annotated[str, Meta(description="Path, relative to the workspace.")]


class ReadFileArguments(ToolArguments):
    path: FilePath
    start_line: Annotated[int | None, Meta(description="First line, from 1.")] = None
    end_line: Annotated[int | None, Meta(description="Last line, inclusive.")] = None


class ReadFile(Tool):
    """Tool that returns the numbered lines of a text file."""

    info = ToolInfo(
        name="read_file",
        label="Read",
        help="read a text file",
        main_argument="path",
        shown=(
            ShownArgument(names=("path",)),
            ShownArgument(names=("start_line", "offset"), before=" :", muted=True),
            ShownArgument(names=("end_line",), before="-", muted=True, needs=("start_line", "offset")),
        ),
        counted=("line", "lines"),
        result="numbered",
        verb="read {}",
        outcome="lines",
    )
    description = "Read a text file; its lines are numbered. Use start_line and end_line for part of a large file."
    arguments = ReadFileArguments

    async def prepare(self, arguments: ReadFileArguments) -> Plan:
        place = await asyncio.to_thread(self.context.workspace.locate, arguments.path)

        async def run() -> ToolOutcome:
            return await asyncio.to_thread(self._run, arguments, place)

        return Plan(run=run, approval=secret_need(self.context.workspace, place) if place.secret else None)

    def _run(self, arguments: ReadFileArguments, place: Place) -> ToolOutcome:
        place = self.context.workspace.locate_again(place, arguments.path)
        content = existing(place)
        decoded = decode(content)
        if decoded is None:
            raise ToolError(
                f"{place.shown} is binary ({len(content)} bytes) and cannot be read as text.",
                todo="Use run_command with file, strings or xxd if you need its bytes.",
                kind="binary",
            )
        self.context.seen[place.relative] = digest_of(content)
        text, encoding = decoded
        outcome = _numbered(lines_of(text), arguments, place, self.context.most_output)
        if encoding.unknown:
            outcome.text += "\n[Its encoding is not known: <U+DC80> to <U+DCFF> stand for bytes, which edits keep.]"
        elif not text.isascii() and not encoding.codec.startswith("utf"):
            outcome.text += f"\n[It seems to be encoded in {encoding.codec}, which edits keep.]"
        outcome.text += f"\n[{place.note}]" if place.note else ""
        outcome.files = [FileAccess(path=place.shown, access="read")]
        return outcome


def existing(place: Place) -> bytes:
    """Return the content of a file.

    Raises:
        ToolError: There is none, or it cannot be read.
    """
    content = read_bytes(place)
    if content is None:
        raise ToolError(f"{place.shown} does not exist.", todo="Use glob_files to find it.", kind="not_found")
    return content


def secret_need(workspace: Workspace, place: Place) -> ApprovalNeed:
    """Return the approval needed to read a file that may contain keys or passwords."""
    return ApprovalNeed(
        kind="secret",
        question=f"Show {place.shown}, which {BECAUSE[place.reason]}, to the model?",
        detail=place.shown,
        session_scope="" if place.reason == "own" else f"reading {place.shown}",
        session_key="" if place.reason == "own" else f"secret:{workspace.root}:{place.relative}",
        in_every_mode=place.reason == "own",
    )


def _numbered(lines: list[str], arguments: ReadFileArguments, place: Place, limit: int) -> ToolOutcome:
    """Return the requested lines with their numbers, as many as fit, and a note on how to read the rest."""
    if not lines:
        return ToolOutcome(text=f"{place.shown} is empty.", data={"lines": 0})
    first = max(arguments.start_line or 1, 1)
    last = min(len(lines), arguments.end_line or len(lines))
    if first > len(lines) or last < first:
        raise ToolError(
            f"{place.shown} has {len(lines)} lines; lines {first} to {arguments.end_line or 'its end'} do not exist.",
            kind="bad_range",
        )
    shown: list[str] = []
    characters = size = 0
    for number in range(first, last + 1):
        line = f"{number:>6}\t{_short(visible(lines[number - 1]), limit)}\n"
        characters += len(line)
        size += len(line.encode())
        if characters <= limit or not shown:
            shown.append(line)
    end = first + len(shown) - 1
    note = ""
    if end < last:
        note = f"[Cut after line {end} of {len(lines)}; continue with start_line={end + 1}.]"
    elif last < len(lines):
        note = f"[Lines {first} to {last} of {len(lines)}.]"
    text = "".join([*shown, note]).removesuffix("\n")
    return ToolOutcome(text=text, data={"lines": len(shown)}, full_size=size if end < last else 0)


def _short(line: str, limit: int) -> str:
    longest = min(_LONGEST_LINE, limit)
    return line if len(line) <= longest else f"{line[:longest]} [line cut, {len(line)} characters]"
