"""Texts of a tool call or a file, as sections.

Pure. Making them may take long and is done in a thread; `text_viewer.py` shows them.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ToolCall, call_end
from ragforge_tui.shared.requests.work import FileDiff
from ragforge_tui.shared.sanitize import plain_value
from ragforge_tui.shared.tool_calls import COUNTS, tool_info, tool_label
from ragforge_tui.tui.drawing.code import language_of
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.transcript.tool_block import CallState, duration_text, failure_of, state_of, state_word

SectionKind = Literal["prose", "markdown", "struck", "code", "diff", "error"]

MAX_FILE_BYTES = 2_000_000
_SNIFFED = 8192
_NUMBERED = re.compile(r" *\d+\t")
_WORDS = {
    "running": "running",
    "waiting": "waits for you",
    "ok": "done",
    "failed": "failed",
    "stopped": "stopped",
    "unknown": "outcome unknown",
}


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One section of the text.

    Attributes:
        title: Its heading; empty for a diff, which names its file itself.
        language: The language of code by its Pygments name; empty for none.
        numbered: Each line starts with its number and a tab, as `read_file` returns them.
        note: Remark on the file of a diff.
    """

    title: str
    text: str
    kind: SectionKind = "code"
    language: str = ""
    numbered: bool = False
    note: str = ""


def call_title(call: ToolCall, turn: int, state: CallState | None = None, at: datetime | None = None) -> str:
    """Return label, turn, outcome, duration, size and the tool's own name in one line.

    Args:
        state: The state of a call without a result; None if it is not watched.
        at: The time now, for the duration of a running call.
    """
    state = state_of(call, over=True) if state is None or call.result is not None else state
    label = tool_label(call.tool_name)
    parts = [f"{label} · turn {turn} · {_word(call, state)}"]
    if state == "running" and at is not None:
        parts.append(f"{max(0, int((at - call.timestamp).total_seconds()))} s")
    if call.duration_ms is not None:
        parts.append(duration_text(call.duration_ms))
    if call.result is not None and call.result.result_size_bytes:
        parts.append(f"{counted(call.result.result_size_bytes)} bytes")
    if label != call.tool_name:
        parts.append(call.tool_name)
    return " · ".join(parts)


def _word(call: ToolCall, state: CallState) -> str:
    return state_word(call, state) if state == "refused" else _WORDS[state]


def call_sections(call: ToolCall) -> list[Section]:
    """Return the sections of a call: reason, arguments, result."""
    result = json_object(call.result.result) if call.result is not None else {}
    arguments = json_object(call.arguments)
    diff = str(result.get("diff") or "")
    sections: list[Section] = []
    reason = call.reasoning.strip() or str(arguments.get("reason") or "").strip()
    if reason:
        sections.append(Section(title="Why", text=reason, kind="prose"))
    if call.result is not None and call.result.error:
        if (end := call_end(call)) == "failed":
            sections.append(Section(title="Error", text=call.result.error, kind="error"))
        elif why := failure_of(call):
            title = state_word(call, "refused") if end == "refused" else end
            sections.append(Section(title=title.capitalize(), text=why, kind="prose"))
    if diff:
        sections.append(Section(title="Diff", text=diff, kind="diff"))
    sections += _argument_sections(call, arguments, has_diff=bool(diff))
    text = str(result.get("whole") or result.get("text") or "")
    if text.strip() and text != (call.result.error if call.result else None):
        form = tool_info(call.tool_name).result
        numbered = form == "numbered"
        language = language_of(str(arguments.get("path") or "")) if numbered else ""
        kind: SectionKind = "prose" if form == "prose" else "code"
        # What a refused call returned is what the model was told of it.
        title = "Sent to the model" if call_end(call) == "refused" else "Result"
        sections.append(Section(title=title, text=text, kind=kind, language=language, numbered=numbered))
    rest = {key: value for key, value in result.items() if key not in ("text", "whole", "diff", *COUNTS)}
    if rest:
        sections.append(Section(title="Also stored", text=_pretty(rest), language="json"))
    elif call.result is not None and not result and call.result.result:
        sections.append(Section(title="Result", text=call.result.result, language="json"))
    return sections


def _argument_sections(call: ToolCall, arguments: dict[str, object], *, has_diff: bool) -> list[Section]:
    """Return short arguments together and long texts as sections of their own."""
    if not arguments:
        return [Section(title="Arguments", text=call.arguments)] if call.arguments.strip() not in ("", "{}") else []
    language = language_of(str(arguments.get("path") or ""))
    short: dict[str, object] = {}
    long: list[Section] = []
    for key, value in arguments.items():
        if key == "reason":
            continue
        if isinstance(value, str) and "\n" in value:
            # Arguments that repeat the diff come last.
            long.append(Section(title=f"Argument {key}", text=value, language="" if key == "command" else language))
        else:
            short[key] = value
    lines = [f"{key}: {value if isinstance(value, str) else _pretty(value)}" for key, value in short.items()]
    sections = [Section(title="Arguments", text="\n".join(lines))] if lines else []
    return sections + ([] if has_diff else long)


def _pretty(value: object) -> str:
    # Else JSON would spell out an escape sequence that text elsewhere is shown without.
    return json.dumps(plain_value(value), indent=2, ensure_ascii=False)


def file_sections(workspace: Path, path: str, diff: str, note: str = "") -> list[Section]:
    """Return the changes of a file and its contents. Reads the file: for a thread."""
    sections = [Section(title="Note", text=note, kind="prose")] if note else []
    if diff:
        kind: SectionKind = "diff" if "\n" in diff else "prose"
        sections.append(Section(title="Changed in this conversation", text=diff, kind=kind))
    return [*sections, _content(workspace, path)]


def _content(workspace: Path, path: str) -> Section:
    def sentence(text: str) -> Section:
        return Section(title="File", text=text, kind="prose")

    place = workspace / path
    try:
        if not place.resolve().is_relative_to(workspace.resolve()):
            return sentence("It is outside the workspace and is not shown.")
        if not place.is_file():
            return sentence("The file no longer exists." if not place.exists() else "It is not a file.")
        data = read_regular(place, MAX_FILE_BYTES + 1, cut=True)
        size = place.stat().st_size
    except OSError as error:
        return sentence(f"It could not be read: {error.strerror}.")
    if b"\x00" in data[:_SNIFFED]:
        return sentence(f"It is binary, {size} bytes.")
    text = data[:MAX_FILE_BYTES].decode("utf-8", "replace")
    title = (
        "File" if len(data) <= MAX_FILE_BYTES else f"File, the first {MAX_FILE_BYTES // 1_000_000} MB of {size} bytes"
    )
    if not text:
        return sentence("It is empty.")
    return Section(title=title, text=text, language=language_of(path))


def diff_section(one: FileDiff) -> Section:
    """Return the changes of one file among several."""
    note = one_line(one.note)
    if not one.diff.startswith("--- "):
        title = f"{one_line(one.path)}   {note}".rstrip()
        return Section(title=title, text=one.diff, kind="prose")
    return Section(title="", text=one.diff, kind="diff", note=note)


def is_numbered(line: str) -> re.Match[str] | None:
    """Return the match of a line number of `read_file`."""
    return _NUMBERED.match(line)
