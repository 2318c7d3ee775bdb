"""Tool calls in words: each call with its reason and its outcome.

Used by the extractive writer. Pure; everything follows from the stored calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from ragforge_tui.memory.history import result_text
from ragforge_tui.memory.keyterms import stem
from ragforge_tui.memory.keyterms import words as telling_words
from ragforge_tui.memory.prose import ELLIPSIS, cut, first_sentence
from ragforge_tui.memory.summaries.offline.phrases import Phrases
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import REFUSED, REFUSED_BECAUSE, ToolCall, ToolResult, Turn, call_end
from ragforge_tui.shared.tool_calls import ToolInfo, main_argument, tool_info

_NUMBERED = re.compile(r"^\s*(\d+)\t", re.M)
_HIT = re.compile(r"^([^\n:]+):(\d+):", re.M)
_WRITTEN = re.compile(r"\(([+]\d+ -\d+) lines\)")
_ALL_HITS = re.compile(r"^\[(\d+) matches in (\d+) files", re.M)
_ERROR_CHARS = 90
_OUTPUT_CHARS = 60
_REASON_CHARS = 110
_ASKING = ("ask", "asked", "asking", "need", "needed", "request", "requested", "user", "demandé", "gebeten")
"""Words of reasons such as "the user requested it"."""


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
    turns = list(turns)
    own = {call.uuid for turn in turns for m in turn.messages if m.role == "system" for call in m.tool_calls}
    groups: dict[tuple[str, str], list[Action]] = {}
    for turn, call in calls_of(turns):
        action = _action(turn, call, words)
        if call.uuid in own:
            action = msgspec.structs.replace(action, text=words.by_user.format(action.text))
        groups.setdefault((call.tool_name, action.text), []).append(action)
    merged = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            first = msgspec.structs.replace(first, text=f"{first.text} ({words.times.format(len(group))})")
        merged.append(first)
    return merged


def call_in_words(call: ToolCall, words: Phrases) -> str:
    """Return what a call did and its outcome, as ``ran `make` (exit status 2: Error 1)``."""
    return _action(0, call, words).text


def narrative(done: Sequence[Action], words: Phrases, limit: int) -> str:
    """Return the most important actions as sentences of at most `limit` characters, in the order they happened.

    Calls made for the same reason share one sentence, which ends with it if it is more informative than they are.
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
        text = text[:1].upper() + text[1:]
        if _tells_more(reason, text):
            text = words.why.format(text, reason)
        sentences.append(text if text.endswith(".") else f"{text}.")
    return " ".join(sentences)


def _tells_more(reason: str, action: str) -> bool:
    """Return whether a reason has a telling word that the action lacks; "you asked for it" has none."""
    told = {stem(word) for word in [*telling_words(action), *_ASKING]}
    return any(stem(word) not in told for word in telling_words(reason))


def _action(turn: int, call: ToolCall, words: Phrases) -> Action:
    tool = tool_info(call.tool_name)
    argument = cut(main_argument(call), tool.longest_argument)
    verb = words.verb(tool)
    text = words.used.format(f"{tool.name}({argument})")
    if verb:
        text = verb.format(f"`{argument}`" if argument else tool.name)
    outcome = _outcome(call, tool, words)
    failed = call.result is None or not call.result.success
    return Action(
        turn=turn,
        text=f"{text} ({outcome})" if outcome else text,
        reason=" ".join(call.reasoning.split()),
        weight=3 if failed else tool.weight,
        failed=failed,
    )


def _outcome(call: ToolCall, tool: ToolInfo, words: Phrases) -> str:
    """Return the outcome of a call in a few words; empty if there is none to report."""
    if call.result is None:
        return words.unknown
    text = result_text(call)
    if call_end(call) == "refused":
        error = call.result.error or ""
        because = cut(first_sentence(error.removeprefix(REFUSED_BECAUSE)), _ERROR_CHARS).rstrip(".")
        return words.refused_by_user if error.startswith(REFUSED) else words.refused.format(because)
    if tool.outcome == "exit_status":
        return _command_outcome(call.result, text, words)
    if not call.result.success:
        return words.failed.format(cut(first_sentence(call.result.error or text), _ERROR_CHARS).rstrip("."))
    match tool.outcome:
        case "lines":
            numbers = _NUMBERED.findall(text)
            return words.lines.format(f"{numbers[0]}–{numbers[-1]}") if numbers else ""
        case "matches":
            total = _ALL_HITS.search(text)
            hits = _HIT.findall(text)
            return words.matches.format(*(total.groups() if total else (len(hits), len({path for path, _ in hits}))))
        case "files":
            found = [file for file in call.files if file.access == "search"]
            listed = [line for line in text.splitlines() if line.strip() and not line.startswith("[")]
            return words.entries.format(len(found or listed))
        case "changes":
            change = _WRITTEN.search(text)
            return change[1].replace("-", "−") if change else ""
        case "none":
            return ""
        case "text":
            return cut(text, _OUTPUT_CHARS)


def _command_outcome(result: ToolResult, text: str, words: Phrases) -> str:
    """Return a command's exit status and last line of output, where test runners print their verdict."""
    ended = json_object(result.result)
    status = ended.get("exit_status")
    if ended.get("tests_failed"):
        return str(ended.get("tests"))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("[Exit status")]
    last = cut(lines[-1].strip("= "), _OUTPUT_CHARS) if lines else ""
    if status == 0:
        return last
    outcome = words.exit.format(status) if isinstance(status, int) else words.failed.format("")
    return f"{outcome}: {last}" if last else outcome.rstrip(": ")
