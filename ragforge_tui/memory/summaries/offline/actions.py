"""Tool calls in words: each call with its reason and its outcome.

Used by the extractive writer. Pure; everything follows from the stored calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ragforge_tui.export import main_argument
from ragforge_tui.memory.history import result_text
from ragforge_tui.memory.prose import ELLIPSIS, cut, first_sentence
from ragforge_tui.memory.summaries.offline.phrases import Phrases
from ragforge_tui.shared.records import ToolCall, Turn

_NUMBERED = re.compile(r"^\s*(\d+)\t", re.M)
_HIT = re.compile(r"^([^\n:]+):(\d+):", re.M)
_WRITTEN = re.compile(r"\(([+]\d+ -\d+) lines\)")
_ALL_HITS = re.compile(r"^\[(\d+) matches in (\d+) files", re.M)
_ARGUMENT_CHARS = 56
_PATTERN_CHARS = 32
_ERROR_CHARS = 90
_OUTPUT_CHARS = 60
_REASON_CHARS = 110

_VERBS = {
    "read_file": "read",
    "write_file": "wrote",
    "edit_file": "edited",
    "create_file": "created",
    "list_directory": "listed",
    "glob_files": "looked_for",
    "search_files": "looked_for",
    "grep_files": "searched",
    "search_history": "searched",
    "run_command": "ran",
    "update_todos": "planned",
    "notify_user": "told",
}
_CHANGES = frozenset({"write_file", "edit_file", "create_file", "run_command"})
_LOOKS = frozenset({"list_directory", "glob_files", "search_files", "grep_files", "search_history"})


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Tool call in words.

    Attributes:
        text: The action and its outcome.
        reason: The model's reason, empty if it gave none.
        weight: Importance; changes and failures weigh more than looks at files.
    """

    turn: int
    text: str
    reason: str = ""
    weight: int = 1
    failed: bool = False


def calls_of(turns: Iterable[Turn]) -> list[tuple[int, ToolCall]]:
    """Return the calls of these turns, each with its turn, in order; superseded messages are left out."""
    return [
        (turn.turn_index, call)
        for turn in turns
        for message in turn.messages
        if message.state != "superseded"
        for call in message.tool_calls
    ]


def actions(turns: Iterable[Turn], words: Phrases) -> list[Action]:
    """Return all calls in words; a repeated action is listed once, with its count."""
    groups: dict[tuple[str, str], list[Action]] = {}
    for turn, call in calls_of(turns):
        action = _action(turn, call, words)
        groups.setdefault((call.tool_name, action.text), []).append(action)
    merged = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            first = msgspec.structs.replace(first, text=f"{first.text} ({words.times.format(len(group))})")
        merged.append(first)
    return merged


def narrative(done: Sequence[Action], words: Phrases, limit: int) -> str:
    """Return the most important actions as sentences of at most `limit` characters, in the order they happened.

    Calls made for the same reason share one sentence, which starts with it.
    """
    order = sorted(range(len(done)), key=lambda i: (-done[i].weight, i))
    if len(_sentences(done, words)) > limit:
        # Searches on the way are only counted if not all actions fit.
        order = [i for i in order if done[i].weight > 1] or order
    chosen: set[int] = set()
    for index in order:
        text = _sentences([done[i] for i in sorted({*chosen, index})], words)
        more = words.and_more.format(len(done) - len(chosen) - 1)
        if len(text) + (len(more) + 3 if len(chosen) + 1 < len(done) else 0) > limit:
            continue
        chosen.add(index)
    if not chosen and done:
        return cut(_sentences([done[order[0]]], words), limit)
    text = _sentences([done[i] for i in sorted(chosen)], words)
    missing = len(done) - len(chosen)
    return f"{text.removesuffix('.')}; {words.and_more.format(missing)}." if missing else text


def _sentences(done: Sequence[Action], words: Phrases) -> str:
    groups: list[tuple[str, list[str]]] = []
    for action in done:
        reason = cut(action.reason, _REASON_CHARS).rstrip(" .:;" + ELLIPSIS)
        if groups and groups[-1][0] == reason:
            groups[-1][1].append(action.text)
        else:
            groups.append((reason, [action.text]))
    sentences = []
    for reason, texts in groups:
        text = ", ".join(texts)
        text = words.why.format(reason, text) if reason else text[:1].upper() + text[1:]
        sentences.append(text if text.endswith(".") else f"{text}.")
    return " ".join(sentences)


def _action(turn: int, call: ToolCall, words: Phrases) -> Action:
    argument = cut(main_argument(call), _PATTERN_CHARS if call.tool_name == "grep_files" else _ARGUMENT_CHARS)
    verb = _VERBS.get(call.tool_name, "")
    shown = f"`{argument}`" if argument else ""
    if not verb:
        text = words.verbs["used"].format(f"{call.tool_name}({argument})")
    else:
        text = words.verbs[verb].format(shown or call.tool_name)
    failed = call.result is None or not call.result.success
    outcome = _outcome(call, words)
    weight = 3 if failed else 3 if call.tool_name in _CHANGES else 1 if call.tool_name in _LOOKS else 2
    return Action(
        turn=turn,
        text=f"{text} ({outcome})" if outcome else text,
        reason=" ".join(call.reasoning.split()),
        weight=weight,
        failed=failed,
    )


def _outcome(call: ToolCall, words: Phrases) -> str:
    """Return the outcome of a call in a few words; empty if there is none to report."""
    if call.result is None:
        return words.unknown
    text = result_text(call)
    if call.tool_name == "run_command":
        return _command_outcome(call, text, words)
    if not call.result.success:
        return words.failed.format(cut(first_sentence(call.result.error or text), _ERROR_CHARS).rstrip("."))
    if call.tool_name == "read_file":
        numbers = _NUMBERED.findall(text)
        return words.lines.format(f"{numbers[0]}–{numbers[-1]}") if numbers else ""
    if call.tool_name == "grep_files":
        total = _ALL_HITS.search(text)
        hits = _HIT.findall(text)
        return words.matches.format(*(total.groups() if total else (len(hits), len({path for path, _ in hits}))))
    if call.tool_name in ("glob_files", "search_files", "list_directory"):
        listed = [line for line in text.splitlines() if line.strip() and not line.startswith("[")]
        return words.entries.format(
            len(call.files) if call.tool_name != "list_directory" and call.files else len(listed)
        )
    if call.tool_name in ("write_file", "edit_file", "create_file"):
        change = _WRITTEN.search(text)
        return change[1] if change else ""
    return "" if call.tool_name in _VERBS else cut(text, _OUTPUT_CHARS)


def _command_outcome(call: ToolCall, text: str, words: Phrases) -> str:
    """Return a command's exit status and last line of output, where test runners print their verdict."""
    status = _data(call).get("exit_status")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("[Exit status")]
    last = cut(lines[-1].strip("= "), _OUTPUT_CHARS) if lines else ""
    if status == 0:
        return last
    outcome = words.exit.format(status) if isinstance(status, int) else words.failed.format("")
    return f"{outcome}: {last}" if last else outcome.rstrip(": ")


def _data(call: ToolCall) -> dict[str, Any]:
    try:
        data = json.loads(call.result.result) if call.result else {}
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
