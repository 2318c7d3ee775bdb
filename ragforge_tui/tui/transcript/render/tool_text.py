"""A tool call in words: argument and outcome on one line.

Reads what models wrote and tools returned, either of which may be malformed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec

from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, Todo, ToolCall, call_end
from ragforge_tui.shared.tool_calls import argument_names, tool_info
from ragforge_tui.tui.drawing.lines import Run, one_line
from ragforge_tui.tui.style.palette import Palette

CallState = Literal["running", "waiting", "ok", "failed", "refused", "stopped", "unknown"]


class Argument(NamedTuple):
    """A piece of the argument; `quiet` pieces are shown muted."""

    text: str
    quiet: bool = False


def arguments_of(call: ToolCall) -> list[Argument]:
    """Return the arguments on a call's line, as the tool's description wants them."""
    given = json_object(call.arguments)
    if not given:
        return (
            [Argument(one_line(call.arguments[:400]), quiet=True)] if call.arguments.strip() not in ("", "{}") else []
        )

    def text(names: Iterable[str]) -> str:
        value = next((given[name] for name in names if given.get(name) not in (None, "")), None)
        return "" if value is None else one_line(str(value)[:400])

    tool = tool_info(call.tool_name)
    if tool.shown is None:
        shown = text(argument_names(tool)) or text(name for name, value in given.items() if isinstance(value, str))
        return [Argument(shown)] if shown else []
    pieces: list[Argument] = []
    for part in tool.shown:
        value = text(part.names)
        if not value or value == part.hidden or (part.needs and not text(part.needs)):
            continue
        pieces += [Argument(part.before, quiet=True), Argument(value, quiet=part.muted)]
    joined = ((quiet, "".join(piece.text for piece in group)) for quiet, group in groupby(pieces, lambda p: p.quiet))
    return [Argument(text, quiet) for quiet, text in joined if text]


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
    counted = tool_info(call.tool_name).counted
    if counted is None:
        return ""
    singular, plural = counted
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
    message = call.result.error or str(json_object(call.result.result).get("text", ""))
    return one_line(next((line for line in message.splitlines() if line.strip()), "")[:400])


def todos_of(call: ToolCall, result: dict[str, Any]) -> list[Todo]:
    """Return the plan that a call set."""
    items = result.get("todos")
    if items is None:
        items = json_object(call.arguments).get("todos")
    try:
        return msgspec.convert(items, list[Todo]) if items else []
    except msgspec.ValidationError:
        return []
