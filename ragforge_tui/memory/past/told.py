"""Turns told in whole sentences: what was asked and what came of it, what ran, and what failed. Pure.

A sentence is quoted whole or not at all, so that no report ends in the middle of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ragforge_tui.memory.findings.marked import mark_of
from ragforge_tui.memory.keyterms import weights
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import ELLIPSIS, PASTED, answer_prose, sentences, user_prose
from ragforge_tui.memory.summaries.offline.actions import calls_of
from ragforge_tui.memory.summaries.offline.extract import ASKS, with_full_stop
from ragforge_tui.memory.summaries.offline.informativeness import QUESTION_MARKS, announces, score
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import Finding, FindingKind, ToolCall, Turn, call_end
from ragforge_tui.shared.tool_calls import called_tool, main_argument, whole_result

SENTENCE_CHARS = 280
"""Longest sentence that is quoted."""
TOLD_CHARS = 700
"""Longest text about one conversation, but for a single sentence that is longer."""
MOST_ASKED = 4
MOST_FAILURES = 4
_COMMAND_CHARS = 80
_SMALL_TALK = re.compile(
    r"^(?:ok(?:ay)?|yes|no|y|n|thanks?(?: you)?|nice|great|good|perfect|cool|awesome|(?:that|it) work(?:s|ed)|go ahead|"
    r"merci|parfait|danke|gracias|go on|continue|vas-y|weiter|hi|hello|hey|bonjour|hallo|salut|you['’]re welcome|"
    r"(?:I['’]m|I am) (?:glad|happy|sorry|here))\b[^.!?]{0,40}[.!?]*$",
    re.I,
)
_NO_RESULT = re.compile(
    r"^(?:(?:sure|yes|ok(?:ay)?|certainly|of course|great|alright),? )?"
    r"(?:let['’]s|(?:I|we|you)(?:['’](?:ll|d)\b| (?:can|could|will|would|should|need|have to)\b))|"
    r"^To \w+[^,]{2,160}, (?:we|you|I)\b|^(?:if|please|since|first|generate|import|modify|define|feel free)\b|"
    r"<{6}|>{6}",
    re.I,
)
"""Plans, offers and pieces of an edit: what an answer says before, after or instead of its result."""
_JUDGE = re.compile(
    r"(?:^|&&|\|\||;|\s-m)\s*(?:\w+=\S+ )*(?:\S*/)?(pytest|tox|nox|make|unittest|ruff|mypy|flake8|pyright|cargo|"
    r"go (?:test|build|vet)|npm|pnpm|yarn|jest|vitest|gradle|mvn|ctest|cmake|dotnet|rspec|phpunit|eslint|tsc|pip|uv|"
    r"git (?:commit|push|merge|rebase|pull)|pre-commit|docker)\b"
)
"""Commands whose failure says something: tests, builds, checks and commits. That `grep` found nothing does not."""
_INSTEAD = re.compile(r"^(?:instead of|rather than|plutôt que|au lieu de|statt)\b", re.I)
"""Start of a request for another way, not of a decision."""
_QUIET = re.compile(r"^(?:[\W\d_]|no tests|done\b)*$", re.I)


def whole_sentences(text: str, limit: int) -> str:
    """Return the first sentences of a text that fit into `limit` characters; none of them is cut.

    Sentences that were cut when they were stored are left out.
    """
    found = ""
    for sentence in sentences(text):
        if sentence.rstrip("”»\"'.)").endswith(ELLIPSIS):
            continue
        longer = f"{found} {sentence}".strip()
        if len(longer) <= limit:
            found = longer
        elif found:
            break
    return found


def told_by(summaries: Sequence[str]) -> str:
    """Return the first sentences of summaries that follow each other: the last one counts most, then the first."""
    order = [*range(len(summaries))][::-1]
    chosen: dict[int, str] = {}
    left = TOLD_CHARS
    for place in [*order[:1], *order[-1:], *order[1:-1]]:
        share = left if len(summaries) == 1 else min(left, SENTENCE_CHARS)
        if place not in chosen and (text := whole_sentences(summaries[place], share)):
            chosen[place] = with_full_stop(text)
            left -= len(text) + 1
    return " ".join(chosen[place] for place in sorted(chosen))


def asked_and_answered(turns: Sequence[Turn]) -> str:
    """Return what the user asked in these turns, the most telling requests, and how the last answer put its result."""
    spoken = {turn.turn_index: _texts(turn) for turn in turns}
    language = language_of("\n".join(text for texts in spoken.values() for by_user, text in texts if by_user))
    weigh = weights([text for texts in spoken.values() for _, text in texts], language)
    requests = {}
    for index, texts in spoken.items():
        own = [one for by_user, text in texts if by_user for one in sentences(text)]
        if telling := [one for one in own if len(one) <= SENTENCE_CHARS and not _SMALL_TALK.match(one)]:
            requests[index] = max(telling, key=lambda one: (_asks(one), score(one, 0, weigh, language)))
    shown = _most_telling(requests, {i: score(one, 0, weigh, language) for i, one in requests.items()})
    parts = [f"{'Asked' if not place else 'Then'}: {with_full_stop(requests[i])}" for place, i in enumerate(shown)]
    if (more := len(requests) - len(shown)) > 0:
        parts.append(f"There were {more} more requests." if more > 1 else "There was one more request.")
    answers = [text for by_user, text in spoken[turns[-1].turn_index] if not by_user] if turns else []
    if answers and (result := _result(answers[-1])):
        parts.append(f"Result: {with_full_stop(result)}")
    return " ".join(parts)


def _asks(sentence: str) -> bool:
    return ASKS.search(sentence) is not None


def _most_telling(requests: dict[int, str], scores: dict[int, float]) -> list[int]:
    """Return the first and the last request, and the best of the others, in order."""
    places = list(requests)
    kept = {*places[:1], *places[-1:]}
    for place in sorted(places, key=lambda place: -scores[place]):
        if len(kept) >= MOST_ASKED:
            break
        kept.add(place)
    return sorted(kept)


def _texts(turn: Turn) -> list[tuple[bool, str]]:
    """Return the prose of a turn: (whether by the user, text), without pastes."""
    return [
        (True, user_prose(PASTED.sub("\n", message.typed)))
        if message.role == "user"
        else (False, answer_prose(message.content))
        for message in turn.messages
        if message.role in ("user", "assistant") and message.content and message.state != "superseded"
        if not message.doing and not (message.role == "assistant" and message.tool_calls)
    ]


def _result(text: str) -> str:
    """Return the first sentence of an answer that states something, rather than what will be done."""
    for sentence in sentences(text):
        if sentence.endswith((*QUESTION_MARKS, ELLIPSIS)) or announces(sentence):
            continue
        empty = _SMALL_TALK.match(sentence) or _NO_RESULT.search(sentence) or _asks(sentence)
        if not empty and len(sentence) <= SENTENCE_CHARS and len(sentence.split()) > 2:
            return sentence
    return ""


def said(turns: Sequence[Turn], kind: FindingKind) -> list[Finding]:
    """Return the sentences that by their words are of a kind, whole and with their turns; a request is none."""
    return [
        Finding(text=sentence, turns=[turn.turn_index], kind=kind)
        for turn in turns
        for by_user, text in _texts(turn)
        for sentence in sentences(text)
        if len(sentence) <= SENTENCE_CHARS and mark_of(sentence, by_user=by_user) == kind
        if not _asks(sentence) and not _INSTEAD.match(sentence)
    ]


def commands_run(turns: Iterable[Turn]) -> str:
    """Return the commands of the turns whose last run succeeded, as a sentence; empty if there are none."""
    runs: dict[str, int] = {}
    for _, call, command in _commands(turns):
        if call_end(call) == "ok" and _status(call) == 0:
            runs[command] = runs.get(command, 0) + 1
    failed = {command for command, _, _ in _last_failures(turns)}
    named = [
        f"`{command}`{f' ({times} times)' if times > 1 else ''}"
        for command, times in sorted(runs.items(), key=lambda run: -run[1])
        if command not in failed and len(command) <= _COMMAND_CHARS
    ]
    if not named:
        return ""
    more = len(runs) - len(named[:3])
    return f"Ran {', '.join(named[:3])}{f' and {more} other commands' if more > 1 else ''}."


def failures(turns: Sequence[Turn]) -> list[Finding]:
    """Return what failed and was not put right: commands whose last run failed, and answers that broke off."""
    found = []
    for command, turn, call in _last_failures(turns):
        status = _status(call)
        outcome = f"ended with exit status {status}" if isinstance(status, int) else "did not finish"
        line = _last_line(call)
        found.append(Finding(text=f"`{command}` {outcome}{f': {line}' if line else ''}", turns=[turn]))
    for last_turn in turns[-1:]:
        replies = [m for m in last_turn.messages if m.role == "assistant" and m.state != "superseded"]
        answer = replies[-1] if replies else None
        if answer is not None and answer.state in ("failed", "interrupted"):
            how = "failed" if answer.state == "failed" else "was stopped"
            found.append(Finding(text=f"The last answer {how} before its end", turns=[last_turn.turn_index]))
    return found[-MOST_FAILURES:]


def _commands(turns: Iterable[Turn]) -> Iterable[tuple[int, ToolCall, str]]:
    for turn, call in calls_of(turns):
        if called_tool(call).outcome == "exit_status" and (command := " ".join(main_argument(call).split())):
            yield turn, call, command


def _last_failures(turns: Iterable[Turn]) -> list[tuple[str, int, ToolCall]]:
    """Return the commands whose last run failed; a later success of the same program counts for its variants too."""
    last: dict[str, tuple[str, int, ToolCall]] = {}
    for turn, call, command in _commands(turns):
        end = call_end(call)
        if end in ("refused", "stopped") or len(command) > _COMMAND_CHARS:
            continue
        program = _program(command)
        last.pop(program, None)
        if _judges(command) and (end != "ok" or _status(call) != 0):
            last[program] = (command, turn, call)
    return list(last.values())


def _judges(command: str) -> bool:
    return _JUDGE.search(command) is not None


def _program(command: str) -> str:
    """Return the program of a command that judges, for which its arguments are a detail."""
    found = _JUDGE.search(command)
    return found[1] if found is not None else command


def _status(call: ToolCall) -> object:
    return json_object(call.result.result).get("exit_status") if call.result is not None else None


def _last_line(call: ToolCall) -> str:
    """Return the last line that a command printed, where test runners print their verdict; empty if it is long."""
    lines = [line.strip().strip("= ") for line in whole_result(call).splitlines()]
    lines = [line for line in lines if line and not line.startswith("[") and not _QUIET.match(line)]
    return " ".join(lines[-1].split()) if lines and len(lines[-1]) <= _COMMAND_CHARS else ""
