"""A tool call as a block: its state, argument and outcome on one line, and all of it when it is unfolded.

Reads what models wrote and tools returned, either of which may be malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, Todo, ToolCall, call_end
from ragforge_tui.shared.sanitize import plain_value
from ragforge_tui.shared.tool_calls import COUNTS, argument_names, arguments_used, given_reason, tool_info, tool_label
from ragforge_tui.tui.drawing.code import code_lines
from ragforge_tui.tui.drawing.diff_lines import SIDE_BY_SIDE, Diff, count_runs
from ragforge_tui.tui.drawing.lines import BLANK, Line, Run, clean, clip, indent, line_of, one_line, stack, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import MEASURE, Block
from ragforge_tui.tui.transcript.diff_block import WIDEST

TAIL_LINES = 3
"""Lines of a command's output that are always shown."""
OPEN_DIFF_LINES = 12
"""Lines of a diff that are always shown."""
_NOT_WORTH_HIDING = 2
_TAIL_CHARS = 4_000
_MOST_REASON = 300

CallState = Literal["running", "waiting", "ok", "failed", "refused", "stopped", "unknown"]


class Argument(NamedTuple):
    """A piece of the argument; `quiet` pieces are shown muted."""

    text: str
    quiet: bool = False


def arguments_of(call: ToolCall) -> list[Argument]:
    """Return the arguments on a call's line, as the tool's description wants them."""
    given = arguments_used(call)
    if not given:
        return (
            [Argument(one_line(call.arguments[:400]), quiet=True)] if call.arguments.strip() not in ("", "{}") else []
        )

    def text(names: Iterable[str]) -> str:
        value = next((given[name] for name in names if given.get(name) not in (None, "")), None)
        return "" if value is None else one_line(str(value)[:400])

    tool = tool_info(call.tool_name)
    if tool.shown is None:
        shown = text(argument_names(tool)) or text(
            name for name, value in given.items() if isinstance(value, str) and name != "reason"
        )
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
        "failed": ("✗", palette.failed),
        "refused": ("⊘", palette.running),
        "stopped": ("■", palette.muted),
        "unknown": ("○", palette.muted),
    }[state]


def exit_of(result: dict[str, Any]) -> int | None:
    """Return the exit status of a command; None for other results and for commands that a signal ended."""
    status = result.get("exit_status")
    return status if isinstance(status, int) and status >= 0 and not result.get("timed_out") else None


def end_of(result: dict[str, Any]) -> str:
    """Return how a command ended: the tests that failed in it, else its exit status; empty for other results."""
    if result.get("tests_failed"):
        return one_line(str(result.get("tests")))
    status = exit_of(result)
    return "" if status is None else f"exit {status}"


def output_of(result: dict[str, Any]) -> str:
    """Return what a command printed, without the closing remark on how it ended."""
    body, _, last = str(result.get("whole") or result.get("text") or "").rstrip("\n").rpartition("\n")
    return body if "exit_status" in result and last.startswith("[") else f"{body}\n{last}"


def last_lines(text: str) -> list[str]:
    """Return the last lines of an output that are not empty, each on one line."""
    lines = [shown for line in text[-_TAIL_CHARS:].split("\n") if (shown := clean(line).replace("\n", " ").rstrip())]
    return lines[-TAIL_LINES:]


def _hidden_lines(text: str) -> int:
    """Return how many lines of an output, not counting empty ones, come before those that are shown."""
    return max(0, sum(1 for line in text.split("\n") if line.strip()) - TAIL_LINES)


def outcome_of(call: ToolCall, result: dict[str, Any]) -> str:
    """Return the outcome of a successful call: a count, an exit status, the user's answer, or nothing."""
    if call.result is None:
        return ""
    if answer := result.get("answer"):
        return clip(one_line(str(answer)[:400]), _ANSWER_CELLS)
    if end := end_of(result):
        return end
    count = next((result[key] for key in COUNTS if isinstance(result.get(key), int)), None)
    counted = tool_info(call.tool_name).counted
    if counted is None or count is None:
        return ""
    singular, plural = counted
    return f"{count} {singular if count == 1 else plural}"


def state_word(call: ToolCall, state: CallState) -> str:
    """Return the word for a state; that for a refusal shows whether it was the user's."""
    by_user = state == "refused" and call.result is not None and (call.result.error or "").startswith(REFUSED)
    return "refused by you" if by_user else state


def failure_of(call: ToolCall) -> str:
    """Return in one line why a call failed or was refused; empty if its state is enough."""
    if call.result is None or (end := call_end(call)) == "stopped":
        return ""
    if end == "refused":
        error = call.result.error or ""
        if error.startswith(REFUSED):
            said = one_line(error.removeprefix(REFUSED).removeprefix(": "))
            return f"you said: {said}" if said else ""
        return one_line(error.removeprefix(REFUSED_BECAUSE))
    result = json_object(call.result.result)
    if exit_of(result) is not None and (printed := last_lines(output_of(result))):
        return one_line(printed[-1][:400])
    message = call.result.error or str(result.get("text", ""))
    lines = [line for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    return one_line(lines[-1 if lines[0].startswith("Traceback (most recent call last)") else 0][:400])


def traced_steps(result: dict[str, Any]) -> list[str]:
    """Return what a helper did, one line for each of its calls."""
    trace = result.get("trace")
    return [one_line(str(step)[:400]) for step in trace] if isinstance(trace, list) else []


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
_ANSWER_CELLS = 32
_SHOWN_LINES = 400
_SHOWN_CHARS = 20_000
"""Of each argument and of the result; the `v` key opens all of it."""


class ToolBlock(Block):
    """A tool call: what it did, why and how it ended on one line; below it a plan, or parts of a diff or an output.

    Unfolded it shows all of them, and the arguments.

    Attributes:
        output: The last lines of a command that is running.
        own: The user made the call: the arguments are what they typed.
    """

    kind = "tool"
    measure = WIDEST

    def __init__(self, turn_index: int, call: ToolCall, *, gap: int) -> None:
        super().__init__(turn_index, call.message_id, gap=gap)
        self.call = call
        self.waiting = False
        self.over = False
        self.own = False
        self.folded = True
        self.output: list[str] = []
        self._read_result()

    def _read_result(self) -> None:
        self._result = json_object(self.call.result.result) if self.call.result is not None else {}
        diff = str(self._result.get("diff") or "")
        self._diff = Diff(diff) if diff else None
        self._hidden = _hidden_lines(output_of(self._result)) if "exit_status" in self._result else 0

    @property
    def has_diff(self) -> bool:
        return self._diff is not None

    @property
    def has_body(self) -> bool:
        """Whether it shows more than its line, so that the next call needs a blank line before it."""
        return self.has_diff or bool(self.output) or "exit_status" in self._result

    @property
    def record_id(self) -> str:
        return self.call.uuid

    @property
    def source(self) -> str:
        result = str(self._result.get("diff") or self._result.get("text") or "")
        return "\n".join(part for part in (f"{self.call.tool_name} {self.call.arguments}", result) if part)

    @property
    def state(self) -> CallState:
        return state_of(self.call, waiting=self.waiting, over=self.over)

    def update(self, call: ToolCall) -> None:
        """Replace the record of the call by a newer one."""
        self.call = call
        self.waiting = False
        if call.result is not None:
            self.output = []
        self._read_result()
        self.touch()

    def show_output(self, lines: Sequence[str]) -> None:
        """Show the last lines that a running command has printed."""
        self.output = list(lines)
        self.touch()

    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        wide, width = width, min(width, MEASURE)
        lines = self._head_lines(min(width, _TOOL_MEASURE), palette)
        tail = self._tail_lines(width, palette)
        # A failed command printed its reason; one that was ended from outside did not.
        if self.state in ("failed", "refused") and self.folded and (not tail or exit_of(self._result) is None):
            reason = (self.call.result.error if self.call.result and tail else failure_of(self.call)) or ""
            tail += _indented(one_line(reason), width, palette.failed if self.state == "failed" else palette.running)
        lines += tail
        lines += self._todo_lines(self._result, width, palette)
        if self.folded is False:
            lines += self._body(self._result, width, palette)
        return stack(lines, self._diff_lines(wide, palette))

    def _diff_lines(self, width: int, palette: Palette) -> Sequence[Line]:
        if self._diff is None:
            return []
        several = sum(bool(file.path) for file in self._diff.files) > 1
        width = width if width >= SIDE_BY_SIDE + 4 else min(width, MEASURE)
        drawn = self._diff.lines(width, palette, header=several, prefix=[("    ", palette.text)])
        hidden = len(drawn) - OPEN_DIFF_LINES
        if not self.folded or hidden <= _NOT_WORTH_HIDING:
            return drawn
        more = f"… {counted(hidden)} more lines"
        return [*drawn[:OPEN_DIFF_LINES], line_of([("    ", palette.text), (more, palette.muted)], width)]

    def _tail_lines(self, width: int, palette: Palette) -> list[Line]:
        """Return the end of a command's output, in one style: which of its lines says why it failed is not known."""
        running = self.state == "running"
        if not running and (self.folded is False or "exit_status" not in self._result):
            return []
        shown = self.output if running else last_lines(output_of(self._result))
        prefix = "    " if palette.plain else "    │ "
        lines: list[Line] = []
        if self._hidden and not running:
            more = f"… {counted(self._hidden, 'more line')}"
            lines.append(line_of([(prefix, palette.faint), (more, palette.muted)], width))
        for text in shown:
            runs = [(prefix, palette.faint), (clip(clean(text).replace("\n", " "), width - len(prefix)), palette.muted)]
            lines.append(line_of(runs, width, gutter=len(prefix)))
        return lines

    def _label(self) -> str:
        """Return the word for the tool, for a plan with the number of its steps that are done."""
        tool = tool_info(self.call.tool_name)
        label = one_line(tool_label(self.call.tool_name))
        todos = todos_of(self.call, self._result) if tool.result == "plan" else []
        return f"{label} {sum(todo.status == 'completed' for todo in todos)}/{len(todos)}" if todos else label

    def _head_lines(self, width: int, palette: Palette) -> list[Line]:
        """Return the line of the call; a reason that has no room there is on the next one."""
        state = self.state
        glyph, style = state_sign(state, palette)
        right = self._right(state, self._result, palette)
        right_cells = cell_len("".join(text for text, _ in right))
        name = clip(self._label(), max(1, width - right_cells - 6))
        left: list[Run] = [("  ", palette.text), (f"{glyph} ", style), (f"{name:<6}", palette.tool)]
        if palette.plain:
            left = [("  tool ", palette.text), (name, palette.tool), (f" {state_word(self.call, state)} ", style)]
        room = width - right_cells - cell_len("".join(text for text, _ in left)) - 3
        for argument in [(" ", False), *((part.text, part.quiet) for part in arguments_of(self.call))]:
            shown = clip(argument[0], room)
            room -= cell_len(shown)
            left.append((shown, palette.muted if argument[1] else palette.text))
        why = one_line(given_reason(self.call))[:_MOST_REASON]
        why = f"why: {why}" if why and palette.plain else why
        fits = bool(why) and cell_len(why) + 2 <= room
        if fits:
            left.append((f"  {why}", palette.muted))
        used = cell_len("".join(text for text, _ in left))
        head = line_of([*left, (" " * max(1, width - used - right_cells), palette.text), *right], width)
        return [head, *_indented("" if fits else why, width, palette.muted)]

    def _right(self, state: CallState, result: dict[str, object], palette: Palette) -> list[Run]:
        arrow = self.arrow(palette)
        time = duration_text(self.call.duration_ms) if self.call.duration_ms is not None else ""
        end = end_of(result)
        if palette.plain and state not in ("ok", "running"):
            # The word for the state replaces the glyph in front.
            return [(f"{end}, {time}" if end else time, palette.muted), arrow]
        match state:
            case "running":
                return [("…", palette.muted), arrow]
            case "waiting":
                return [("waits for you", palette.running), arrow]
            case "unknown":
                return [("outcome unknown", palette.muted), arrow]
            case "failed" | "stopped":
                word = (end or state, state_sign(state, palette)[1])
                return [word, (f" · {time}" if time else "", palette.muted), arrow]
            case "refused":
                return [(state_word(self.call, state), palette.running), arrow]
            case "ok":
                return [*self._outcome(result, time, palette), arrow]

    def _outcome(self, result: dict[str, object], time: str, palette: Palette) -> list[Run]:
        if self._diff is not None:
            changed = count_runs(self._diff.added, self._diff.removed, palette)
            return [*changed, (f" · {time}" if changed and time else time, palette.muted)]
        outcome = outcome_of(self.call, result)
        style = palette.running if exit_of(result) else palette.muted
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
        reasoning = one_line(self.call.reasoning)
        if reasoning and reasoning != one_line(given_reason(self.call)):
            lines += wrap([(reasoning, palette.muted)], width, first=prefix, rest=prefix)
        given = json_object(self.call.arguments).items() or [("", self.call.arguments)]
        for key, value in () if self.own else given:
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
        if self.state == "refused":
            # The text is the one for the model; the user's form of it is on the lines of the folded call.
            why = failure_of(self.call)
            said = f"{state_word(self.call, 'refused')}{f' · {why}' if why else ''}"
            return (
                lines
                + indent([BLANK], prefix, width)
                + wrap([(said, palette.running)], width, first=prefix, rest=prefix)
            )
        for step in traced_steps(result):
            lines.append(line_of([*prefix, (clip(step, width - 6), palette.muted)], width))
        if text.strip() and not result.get("diff"):
            shown, hidden = _head_of(text)
            lines += indent([BLANK] if lines else [], prefix, width)
            lines += code_lines(shown, "", width, palette, prefix=prefix)
            lines += self._more(hidden, prefix, width, palette)
        return lines

    def _more(self, hidden: int, prefix: list[Run], width: int, palette: Palette) -> list[Line]:
        """Return a line about the hidden part of a text."""
        if not hidden:
            return []
        more = f"… {counted(hidden)} more characters; v shows all"
        return [line_of([*prefix, (more, palette.muted)], width)]

    def estimate(self, width: int) -> int:
        tool = tool_info(self.call.tool_name)
        plan = self.call.arguments.count('"content"') if tool.result == "plan" else 0
        shown = {"changes": OPEN_DIFF_LINES // 2, "exit_status": TAIL_LINES}.get(tool.outcome, 0)
        return self.gap + 1 + plan + shown + (self.call.success is False)


def _indented(text: str, width: int, style: Style) -> list[Line]:
    """Return a sentence about a call; no line for an empty one."""
    if not text:
        return []
    return indent(wrap([(text, style)], max(1, width - 4)), [("    ", Style())], width)


def _head_of(text: str) -> tuple[str, int]:
    """Return the beginning of a text and the number of hidden characters."""
    text = text.rstrip("\n")
    head = "\n".join(text[:_SHOWN_CHARS].split("\n")[:_SHOWN_LINES])
    return head, len(text) - len(head)
