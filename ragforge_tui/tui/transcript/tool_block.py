"""A tool call as a block: its state, argument and outcome on one line, and all of it when it is unfolded.

Reads what models wrote and tools returned, either of which may be malformed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
from rich.cells import cell_len

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, Todo, ToolCall, call_end
from ragforge_tui.shared.sanitize import plain_value
from ragforge_tui.shared.tool_calls import argument_names, tool_info
from ragforge_tui.tui.drawing.code import code_lines, diff_counts, diff_lines
from ragforge_tui.tui.drawing.lines import BLANK, Line, Run, clean, clip, indent, line_of, one_line, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import Block

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


_TOOL_MEASURE = 88
_SHOWN_LINES = 400
_SHOWN_CHARS = 20_000
"""Of each argument and of the result; the `v` key opens all of it."""


class ToolBlock(Block):
    """A tool call on one line; its arguments, result or diff below when unfolded."""

    kind = "tool"

    def __init__(self, turn_index: int, call: ToolCall, *, gap: int) -> None:
        super().__init__(turn_index, call.message_id, gap=gap)
        self.call = call
        self.waiting = False
        self.over = False
        self.folded = True

    @property
    def record_id(self) -> str:
        return self.call.uuid

    @property
    def source(self) -> str:
        result = json_object(self.call.result.result) if self.call.result is not None else {}
        parts = [f"{self.call.tool_name} {self.call.arguments}", str(result.get("diff") or result.get("text") or "")]
        return "\n".join(part for part in parts if part)

    @property
    def state(self) -> CallState:
        return state_of(self.call, waiting=self.waiting, over=self.over)

    def update(self, call: ToolCall) -> None:
        """Replace the record of the call by a newer one."""
        self.call = call
        self.waiting = False
        self.touch()

    def draw(self, width: int, palette: Palette) -> list[Line]:
        result = json_object(self.call.result.result) if self.call.result is not None else {}
        lines = [self._head_line(result, min(width, _TOOL_MEASURE), palette)]
        if self.state in ("failed", "refused"):
            reason = failure_of(self.call)
            if reason and self.folded:
                lines += indent(wrap([(reason, palette.muted)], max(1, width - 4)), [("    ", palette.text)], width)
        lines += self._todo_lines(result, width, palette)
        if self.folded is False:
            lines += self._body(result, width, palette)
        return lines

    def _head_line(self, result: dict[str, object], width: int, palette: Palette) -> Line:
        state = self.state
        glyph, style = state_sign(state, palette)
        right = self._right(state, result, palette)
        right_cells = cell_len("".join(text for text, _ in right))
        name = clip(one_line(self.call.tool_name), max(1, width - right_cells - 6))
        left: list[Run] = [("  ", palette.text), (f"{glyph} ", style), (f"{name:<10}", palette.tool)]
        if palette.plain:
            left = [("  tool ", palette.text), (name, palette.tool), (f" {state} ", style)]
        room = width - right_cells - cell_len("".join(text for text, _ in left)) - 3
        for argument in [(" ", False), *((part.text, part.quiet) for part in arguments_of(self.call))]:
            shown = clip(argument[0], room)
            room -= cell_len(shown)
            left.append((shown, palette.muted if argument[1] else palette.text))
        used = cell_len("".join(text for text, _ in left))
        return line_of([*left, (" " * max(1, width - used - right_cells), palette.text), *right], width)

    def _right(self, state: CallState, result: dict[str, object], palette: Palette) -> list[Run]:
        arrow = self.arrow(palette)
        time = duration_text(self.call.duration_ms) if self.call.duration_ms is not None else ""
        if palette.plain and state not in ("ok", "running"):
            return [(time, palette.muted), arrow]  # The word for the state replaces the glyph in front.
        match state:
            case "running":
                return [("…", palette.muted), arrow]
            case "waiting":
                return [("waits for you", palette.running), arrow]
            case "unknown":
                return [("outcome unknown", palette.muted), arrow]
            case "failed" | "stopped":
                word = (state, state_sign(state, palette)[1])
                return [word, (f" · {time}" if time else "", palette.muted), arrow]
            case "refused":
                return [(state, palette.running), arrow]
            case "ok":
                return [*self._outcome(result, time, palette), arrow]

    def _outcome(self, result: dict[str, object], time: str, palette: Palette) -> list[Run]:
        if result.get("diff"):
            added, removed = diff_counts(str(result["diff"]))
            changed = [(f"+{added} ", palette.added), (f"−{removed}", palette.removed)]
            return [*changed, (f" · {time}" if time else "", palette.muted)]
        outcome = outcome_of(self.call, result)
        style = palette.running if outcome.startswith("exit ") else palette.muted
        return [(outcome, style), (f" · {time}" if outcome and time else time, palette.muted)]

    def _todo_lines(self, result: dict[str, object], width: int, palette: Palette) -> list[Line]:
        if tool_info(self.call.tool_name).result != "plan" or self.state in ("failed", "refused", "stopped"):
            return []
        lines: list[Line] = []
        for todo in todos_of(self.call, result):
            glyph, mark, style = {
                "pending": ("☐", palette.muted, palette.text),
                "in_progress": ("◐", palette.running, palette.text),
                "completed": ("☑", palette.ok, palette.muted),
            }[todo.status]
            if palette.plain:
                glyph = f"{todo.status.replace('_', ' ')}:"
            first = [("    ", palette.text), (f"{glyph} ", mark)]
            rest = [("      ", palette.text)]
            lines += wrap([(one_line(todo.content), style)], width, first=first, rest=rest, quiet_first=False)
        return lines

    def _body(self, result: dict[str, object], width: int, palette: Palette) -> list[Line]:
        prefix: list[Run] = [("    │ ", palette.faint)]
        lines: list[Line] = []
        if self.call.reasoning.strip():
            text = one_line(self.call.reasoning)
            lines += wrap([(text, palette.muted)], width, first=prefix, rest=prefix)
        for key, value in json_object(self.call.arguments).items() or [("", self.call.arguments)]:
            if key == "reason" or (result.get("diff") and key in ("content", "old_string", "new_string", "files")):
                continue
            if key == "todos" and todos_of(self.call, result):
                continue  # They are listed above.
            # JSON would spell out an escape sequence instead of removing it.
            shown = clean(value if isinstance(value, str) else msgspec.json.encode(plain_value(value)).decode())
            label = [(f"{one_line(str(key))}: ", palette.muted)] if key else []
            shown, hidden = _head_of(shown)
            lines += wrap([*label, (shown, palette.text)], width, first=prefix, rest=prefix)
            lines += self._more(hidden, prefix, width, palette)
        text = str(result.get("text") or (self.call.result.error if self.call.result else "") or "")
        if result.get("diff"):
            shown, hidden = _head_of(str(result["diff"]))
            lines += diff_lines(shown, width, palette, prefix=prefix)
            lines += self._more(hidden, prefix, width, palette)
        elif text.strip():
            shown, hidden = _head_of(text)
            lines += indent([BLANK], prefix, width) + code_lines(shown, "", width, palette, prefix=prefix)
            lines += self._more(hidden, prefix, width, palette)
        return lines

    def _more(self, hidden: int, prefix: list[Run], width: int, palette: Palette) -> list[Line]:
        """Return a line about the hidden part of a text."""
        if not hidden:
            return []
        more = f"… {counted(hidden)} more characters; v shows all"
        return [line_of([*prefix, (more, palette.muted)], width)]

    def estimate(self, width: int) -> int:
        plan = self.call.arguments.count('"content"') if tool_info(self.call.tool_name).result == "plan" else 0
        return self.gap + 1 + plan + (self.call.success is False)


def _head_of(text: str) -> tuple[str, int]:
    """Return the beginning of a text and the number of hidden characters."""
    text = text.rstrip("\n")
    head = "\n".join(text[:_SHOWN_CHARS].split("\n")[:_SHOWN_LINES])
    return head, len(text) - len(head)
