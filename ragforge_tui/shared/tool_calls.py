"""Descriptions of the tools, and short forms of their calls: main argument, result, sign.

A tool is described once, on the tool itself (package `tools`). Everything that shows, summarises or exports calls looks
the description up here by the name stored with the call, so that none of it knows a tool by name. The engine sends the
descriptions to the screen, which does not import the tools. A call of an unknown tool, removed or of another release,
gets a generic description.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import CallEnd, Commit, ToolCall
from ragforge_tui.shared.sanitize import plain_text, plain_value

ToolAccess = Literal["read", "write", "command", "control"]
CHANGING: frozenset[ToolAccess] = frozenset({"write", "command"})
"""Access that changes something: refused in plan mode, and never run on a guess."""
USUAL_ARGUMENTS = ("path", "command", "pattern", "query", "message", "cmd", "file_path", "filePath")
"""Arguments that identify what a call acted on where a tool names no main argument."""

COUNTS = ("matches", "count", "lines")
"""Keys of a result of which one may count what it lists."""

COMMAND_END_CHARS = 2000
CALL_MARKS: dict[CallEnd, str] = {"ok": "✓", "failed": "✗", "refused": "⊘", "stopped": "■", "unknown": "?"}


class ShownArgument(msgspec.Struct, frozen=True, kw_only=True):
    """Piece of the arguments on a call's line.

    Attributes:
        names: Arguments of which the first that has a value is shown.
        before: Muted text before the value.
        muted: Show the value muted too.
        hidden: Value that is not worth showing.
        needs: Arguments of which one must have a value too.
    """

    names: tuple[str, ...]
    before: str = ""
    muted: bool = False
    hidden: str = ""
    needs: tuple[str, ...] = ()


class ToolInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a tool for everything but the model: the screen, summaries, exports, recall and undo.

    Attributes:
        name: Name under which its calls are stored.
        help: What it does, in a few words for the user; empty if models are not offered it.
        access: What it may change. Calls that read run concurrently; plan mode leaves out those that write or run
            commands; only writes can be undone.
        main_argument: Argument that identifies what a call acted on; the first of `USUAL_ARGUMENTS` if empty.
        shown: Arguments on a call's line; None for the main one.
        counted: Singular and plural noun of what the result lists, to show a count.
        result: Form of the result's text: code or output, lines with numbers, prose, or a plan shown as a list.
        repeats_turns: The result quotes earlier turns, so it is not indexed again.
        verb: What a call did, in the past tense in English; `{}` marks the place of the main argument. Empty: "used".
        translations: The verb in other languages, by language code, unless the summaries' phrases have it.
        outcome: What a summary reports of the result.
        longest_argument: Characters of the main argument in a summary.
        weight: Importance in a summary; 3 for changes, 1 for searches on the way.
        label: Name of the tool in a list of calls; `name` if empty.
        joined: Tool that does its work too and is offered in its place; it is still understood by its own name.
    """

    name: str
    help: str = ""
    access: ToolAccess = "read"
    main_argument: str = ""
    shown: tuple[ShownArgument, ...] | None = None
    counted: tuple[str, str] | None = None
    result: Literal["code", "numbered", "prose", "plan"] = "code"
    repeats_turns: bool = False
    verb: str = ""
    translations: dict[str, str] = {}
    outcome: Literal["text", "none", "lines", "matches", "files", "changes", "exit_status"] = "text"
    longest_argument: int = 56
    weight: int = 2
    label: str = ""
    joined: str = ""


ARGUMENTS_USED = "arguments_used"
"""Key of a result's values under which a tool names the arguments that the user changed."""
_tools: dict[str, ToolInfo] = {}


def describe_tools(tools: Iterable[ToolInfo]) -> None:
    """Add descriptions, without control characters; one of the same name is replaced."""
    for tool in tools:
        _tools[tool.name] = msgspec.convert(plain_value(msgspec.to_builtins(tool)), ToolInfo)


def described_tools() -> list[ToolInfo]:
    return list(_tools.values())


def writing_tools() -> tuple[str, ...]:
    """Return the names of the tools whose calls can be undone."""
    return tuple(tool.name for tool in described_tools() if tool.access == "write")


def tool_info(name: str) -> ToolInfo:
    """Return the description of a tool, a generic one if it is unknown."""
    return _tools.get(name) or ToolInfo(name=name)


def called_tool(call: ToolCall) -> ToolInfo:
    """Return the description of a call's tool; another agent's is derived from the call."""
    if call.tool_name in _tools:
        return _tools[call.tool_name]
    if any(file.access == "write" for file in call.files):
        return ToolInfo(name=call.tool_name, access="write")
    if call.result is not None and '"exit_status"' in call.result.result:
        return ToolInfo(name=call.tool_name, access="command", main_argument="command", outcome="exit_status")
    return ToolInfo(name=call.tool_name)


def tool_label(name: str) -> str:
    """Return the name of a tool that the user sees."""
    return tool_info(name).label or name


def written_name(name: str) -> str:
    """Return the name of a tool as models know it, or the label of one that models are not offered."""
    tool = tool_info(name)
    return name if tool.help else tool.label or name


def argument_names(tool: ToolInfo) -> tuple[str, ...]:
    """Return the names of the arguments that may identify what a call acted on, the best first."""
    return (tool.main_argument, *USUAL_ARGUMENTS) if tool.main_argument else USUAL_ARGUMENTS


def arguments_used(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call, in place of the model's those that the user changed before it ran."""
    given = json_object(call.arguments)
    if call.result is None or f'"{ARGUMENTS_USED}"' not in call.result.result:
        return given
    used = json_object(call.result.result).get(ARGUMENTS_USED)
    return {**given, **used} if isinstance(used, dict) else given


def main_argument(call: ToolCall, names: Sequence[str] = ()) -> str:
    """Return the argument that identifies what a call acted on, on one line; empty without one.

    Args:
        names: Arguments that may identify it, the best first; empty for those of the tool.
    """
    arguments = arguments_used(call)
    for name in names or argument_names(tool_info(call.tool_name)):
        if isinstance(value := arguments.get(name), str):
            return " ".join(plain_text(value).split())[:200]
    turn = arguments.get("turn")
    return f"t{turn}" if isinstance(turn, int) else ""


def given_reason(call: ToolCall) -> str:
    """Return why the model made a call, in its own words; empty if it gave no reason."""
    reason = json_object(call.arguments).get("reason")
    return plain_text(reason).strip() if isinstance(reason, str) else ""


def is_reasoning(reasoning: str, calls: Iterable[ToolCall]) -> bool:
    """Return whether a message's reasoning is more than the reasons of its calls, which are stored in its place."""
    return bool(reasoning) and not set(reasoning.split("\n")) <= {call.reasoning for call in calls}


def commits_of(call: ToolCall) -> list[Commit]:
    """Return the commits that a call made, oldest first."""
    if call.result is None or '"commits"' not in call.result.result:
        return []
    try:
        return msgspec.convert(json_object(call.result.result).get("commits", []), list[Commit])
    except msgspec.ValidationError:
        return []


def commit_line(commit: Commit) -> str:
    return f"commit {commit.hash[:7]} {plain_text(commit.subject)}"


def command_end(result: str) -> str:
    """Return of a command's result, as JSON, its status and the end of its output; of other results nothing."""
    fields = json_object(result)
    kept = {name: fields[name] for name in ("exit_status", "timed_out", "tests", "tests_failed") if name in fields}
    text = str(fields.get("whole") or fields.get("text") or "")
    return msgspec.json.encode({**kept, "text": text[-COMMAND_END_CHARS:]}).decode() if kept else ""


def last_failed_tests(calls: Iterable[ToolCall]) -> str:
    """Return the outcome of the last test run among calls, if that failed."""
    runs = [
        ended for call in calls if call.result is not None and "tests" in (ended := json_object(call.result.result))
    ]
    return str(runs[-1]["tests"]) if runs and runs[-1].get("tests_failed") else ""


def result_text(call: ToolCall) -> str:
    """Return the text of a call's result that the model received, or its error; empty without a result."""
    if call.result is None:
        return ""
    text = json_object(call.result.result).get("text")
    return plain_text(text if isinstance(text, str) else call.result.error or "")


def whole_result(call: ToolCall) -> str:
    """Return the text of a call's result as it was kept, which may be more than the model received."""
    whole = json_object(call.result.result).get("whole") if call.result is not None else None
    return plain_text(whole) if isinstance(whole, str) and whole else result_text(call)
