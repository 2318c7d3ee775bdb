"""A tool call in words: argument and outcome on one line.

Reads what models wrote and tools returned, either of which may be malformed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, Todo, ToolCall, call_end
from ragforge_tui.tui.drawing.lines import Run, one_line
from ragforge_tui.tui.style.palette import Palette

CallState = Literal["running", "waiting", "ok", "failed", "refused", "stopped", "unknown"]
_MAX_DECODED = 8 * 1024 * 1024
_DEEPEST = 100
"""Maximum nesting of lists and objects: walking through hundreds of levels would raise a RecursionError."""
_COUNTED = {
    "grep_files": ("match", "matches"),
    "glob_files": ("file", "files"),
    "search_files": ("file", "files"),
    "list_directory": ("entry", "entries"),
    "read_file": ("line", "lines"),
}


class Argument(NamedTuple):
    """A piece of the argument; `quiet` pieces are shown muted."""

    text: str
    quiet: bool = False


def decoded(text: str) -> dict[str, Any]:
    """Return a JSON object; empty for anything else, or if it is nested too deeply."""
    if len(text) > _MAX_DECODED:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) and _is_shallow(value) else {}


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for container in inner for each in container if isinstance(each, dict | list)]
        if not level:
            return True
    return False


def arguments_of(call: ToolCall) -> list[Argument]:
    """Return the main argument of a call, by tool."""
    given = decoded(call.arguments)
    if not given:
        return (
            [Argument(one_line(call.arguments[:400]), quiet=True)] if call.arguments.strip() not in ("", "{}") else []
        )

    def text(key: str) -> str:
        value = given.get(key)
        return one_line(str(value)[:400]) if value not in (None, "") else ""

    match call.tool_name:
        case "grep_files" | "glob_files" | "search_files":
            what = text("pattern") or text("query")
            where = text("path")
            place = [Argument(" in ", quiet=True), Argument(where)] if where and where != "." else []
            return [Argument(what), *place]
        case "run_command":
            return [Argument(text("command"))]
        case "read_file":
            begin, end = text("start_line") or text("offset"), text("end_line")
            span = f" :{begin}-{end}" if begin and end else f" :{begin}" if begin else ""
            return [Argument(text("path")), Argument(span, quiet=True)]
        case "update_todos":
            return []
        case "restore_files":
            return [Argument("as before turn ", quiet=True), Argument(text("turn"))]
        case _:
            for key in ("path", "query", "message", "pattern", "command"):
                if text(key):
                    return [Argument(text(key))]
            shown = next((one_line(value[:400]) for value in given.values() if isinstance(value, str)), "")
            return [Argument(shown)] if shown else []


def duration_text(milliseconds: int) -> str:
    """Return a duration in a readable unit."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def state_of(call: ToolCall, *, waiting: bool = False, over: bool = False) -> CallState:
    """Return the state of a call.

    Args:
        waiting: The call waits for the user's approval.
        over: The turn is over: without a result the outcome is unknown.
    """
    end = call_end(call)
    if end != "unknown":
        return end
    return "unknown" if over else "waiting" if waiting else "running"


def state_sign(state: CallState, palette: Palette) -> Run:
    """Return the glyph of a state in its color."""
    return {
        "running": ("◐", palette.running),
        "waiting": ("◐", palette.running),
        "ok": ("●", palette.ok),
        "failed": ("●", palette.failed),
        "refused": ("⊘", palette.running),
        "stopped": ("■", palette.muted),
        "unknown": ("○", palette.muted),
    }[state]


def outcome_of(call: ToolCall, result: dict[str, Any]) -> str:
    """Return the outcome of a successful call: a count, an exit status, or nothing."""
    if call.result is None:
        return ""
    status = result.get("exit_status")
    if isinstance(status, int) and status != 0:
        return f"exit {status}"
    count = next((result[key] for key in ("matches", "count", "lines") if isinstance(result.get(key), int)), None)
    if call.tool_name not in _COUNTED:
        return ""
    singular, plural = _COUNTED[call.tool_name]
    if count is None:
        body = str(result.get("text", "")).strip("\n")
        count = body.count("\n") + 1 if body else 0
        singular, plural = "line", "lines"
    return f"{count} {singular if count == 1 else plural}"


def failure_of(call: ToolCall) -> str:
    """Return in one line why a call failed or was refused; empty if its state is enough."""
    if call.result is None or (end := call_end(call)) == "stopped":
        return ""
    if end == "refused":
        return one_line(
            (call.result.error or "").removeprefix(REFUSED).removeprefix(REFUSED_BECAUSE).removeprefix(": ")
        )
    message = call.result.error or str(decoded(call.result.result).get("text", ""))
    return one_line(next((line for line in message.splitlines() if line.strip()), "")[:400])


def todos_of(call: ToolCall, result: dict[str, Any]) -> list[Todo]:
    """Return the plan that a call of update_todos set."""
    items = result.get("todos")
    if items is None:
        items = decoded(call.arguments).get("todos")
    try:
        return msgspec.convert(items, list[Todo]) if items else []
    except msgspec.ValidationError:
        return []
