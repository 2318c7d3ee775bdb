"""Claims of an answer about its own acts that the record of calls contradicts. Pure.

Three kinds of claims are checked: that tests pass, that a file was created, changed or deleted, and that something was
committed. Only plain statements in the past or present count, and only where the record leaves no doubt: a claim that
might be about the work of a command, or about an earlier turn that is not at hand, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from ragforge_tui.memory.attempts.commands import Command, commands_in
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import FileAccess, ToolCall, Turn, call_end
from ragforge_tui.shared.tool_calls import commits_of, tool_info, whole_result

MOST_DOUBTS = 3
_MOST_CHARS = 20_000
_RUNNERS = frozenset(
    word
    for words in (
        "pytest py.test unittest nose2 tox nox jest vitest mocha ava rspec phpunit pest ctest",
        "runtests runtests.py manage.py test.sh run_tests.sh",
    )
    for word in words.split()
)
_SUBCOMMANDS = re.compile(
    r"(?:npm|yarn|pnpm|bun|deno|cargo|go|mvn|gradle|dotnet|mix|swift|zig|flutter|dart|sbt|make|just|task|hatch) "
    r"(?:t|tests?|test:\w+|check|nextest|unit-?tests?)"
)
_FAILED_TESTS = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?|failing)\b|\bFAILED\b|\bfailures=[1-9]|\btest result: FAILED|\bFAIL\b"
)
_NO_TESTS_STATUS = 5
"""Exit status of pytest when it found no test."""

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_UNSURE = re.compile(
    # en
    r"\b(?:not|n't|never|no longer|cannot|can't|would|should|will|could|may|might|must|if|once|until|unless|except|"
    r"apart from|but|however|before|after you|when|whether|to make|so that|expect\w*|want|need\w*|please|let me|"
    r"you can|you may|yesterday|earlier|previously|previous|last time|already|fail\w*|skip\w*|some|most|"
    r"only|still has to|todo|"
    # fr
    r"ne|n'|pas|jamais|devrait|devraient|devrai|sera|seront|pourrait|si|sauf|mais|avant|quand|lorsque|pour que|"
    r"échou\w*|hier|seul\w*|certains|"
    # de
    r"nicht|kein\w*|nie|würde\w*|sollte\w*|wird|werden|könnte\w*|wenn|falls|sobald|außer|aber|bevor|damit|"
    r"fehlgeschlagen|schlag\w*|schlug|gestern|zuvor|früher|nur|einige|"
    # es, it, nl, pt, ru
    r"no|nunca|debería\w*|pero|salvo|cuando|non|mai|dovrebbe\w*|ma|tranne|quando|niet|nooit|zou\w*|als|maar|behalve|"
    r"não|deveria\w*|mas|exceto|не|никогда|если|кроме|должн\w*)\b|n't\b|\?",
    re.IGNORECASE,
)
"""Words with which a sentence is no plain statement that something was done or holds."""
_TESTS_PASS = re.compile(
    # en
    r"\btests? (?:suite )?(?:(?:now|all|again|still|also) )*(?:pass(?:es|ed)?|succeed(?:s|ed)?|(?:is|are|ran|run) "
    r"(?:(?:now|all|again) )*(?:green|passing|clean|fine))\b|\bpassing tests\b|\ball (?:\d+ )?tests green\b|"
    # fr
    r"\b(?:les|tous les|\d+) tests (?:(?:unitaires|maintenant|désormais) )*(?:passent|réussissent|"
    r"sont (?:tous )?(?:verts|passés|au vert))|\bla suite (?:de tests )?passe\b|"
    # de
    r"\b(?:(?:alle|die|sämtliche) )?(?:\d+ )?tests (?:(?:jetzt|nun|wieder|alle) )*"
    r"(?:laufen (?:(?:jetzt|nun|wieder|alle) )*(?:durch|grün)|bestehen|bestanden|"
    r"sind (?:(?:jetzt|nun|wieder|alle) )*(?:grün|bestanden|erfolgreich)|waren "
    r"erfolgreich)|"
    # es, it, nl, pt, ru
    r"\b(?:las pruebas|los tests) (?:ya )?(?:pasan|han pasado)\b|\b(?:i|tutti i) test (?:ora )?(?:passano|sono "
    r"passati)\b|"
    r"\btests slagen\b|\btests zijn geslaagd\b|\bos testes passa(?:m|ram)\b|\bтесты (?:проходят|прошли)\b",
    re.IGNORECASE,
)
_PATH = r"[`*_\"“«]*(?P<path>(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?![\w/])[`*_\"”»]*"
_BETWEEN = r"(?:(?!\.\s)[^\n`]){0,60}?"
_DONE = {
    "created": r"created|wrote|written|créé|écrit|erstellt|angelegt",
    "changed": r"edited|updated|modified|changed|fixed|patched|rewrote|modifié|corrigé|mis à jour|édité|geändert|"
    r"bearbeitet|aktualisiert|angepasst|korrigiert",
    "deleted": r"deleted|removed|supprimé|effacé|gelöscht|entfernt",
}
_ANY_DONE = "|".join(_DONE.values())
_FILE_DONE = re.compile(
    rf"(?:\bI(?:'ve| have)? (?:(?:now|also|just|then) )*|\bj'ai (?:aussi )?|^\W*)(?P<verb>{_ANY_DONE})\b"
    rf"(?: (?:the|a|an|new|file|le|la|un|une|fichier|nouveau))*:? {_PATH}|"
    rf"\bich habe {_BETWEEN}{_PATH.replace('path', 'named')} (?:jetzt |neu |auch )?(?P<last>{_ANY_DONE})\b",
    re.IGNORECASE,
)
_COMMITTED = re.compile(
    r"(?:\bI(?:'ve| have)? (?:(?:now|also|just|then) )*committed\b(?! to)|"
    r"^\W*committed (?:as|the|all|it|this|both|in)\b|"
    r"\bj'ai (?:tout )?(?:commité|committé|fait le commit)|\bich habe .{0,60}\b(?:committet|commited|eingecheckt)\b)",
    re.IGNORECASE,
)


class _Run(NamedTuple):
    """A run of tests."""

    turn: int
    passed: bool


def contradicted(answer: str, turn: Turn, earlier: Sequence[Turn] = ()) -> list[str]:
    """Return, in words, the claims of a turn's answer that the calls contradict; usually none.

    Args:
        earlier: Turns before it, as far as they are at hand, in order.
    """
    said = _QUOTED_LINE.sub("", _CODE_BLOCK.sub("", answer[:_MOST_CHARS]))
    claims = [part.strip() for part in _SENTENCE.split(said) if part.strip()]
    plain = [part for part in claims if not _UNSURE.search(part)]
    found = [
        *_about_tests(plain, turn, earlier),
        *(doubt for part in plain if (doubt := _about_file(part, turn, earlier))),
        *_about_commits(plain, turn, earlier),
    ]
    return list(dict.fromkeys(found))[:MOST_DOUBTS]


def _about_tests(claims: Sequence[str], turn: Turn, earlier: Sequence[Turn]) -> Iterator[str]:
    if not any(_TESTS_PASS.search(claim) for claim in claims):
        return
    runs = [run for each in (*earlier, turn) for run in _test_runs(each)]
    # A command of another kind may have run them.
    if runs and not runs[-1].passed and not (runs[-1].turn != turn.turn_index and _ran_anything(turn)):
        yield f"says the tests pass; the last run failed [t{runs[-1].turn}]"


def _about_file(claim: str, turn: Turn, earlier: Sequence[Turn]) -> str:
    match = _FILE_DONE.search(claim)
    if match is None:
        return ""
    path, verb = match["path"] or match["named"], (match["verb"] or match["last"]).casefold()
    done = next(kind for kind, words in _DONE.items() if re.fullmatch(words, verb, re.IGNORECASE))
    calls = [call for each in (*earlier, turn) for call in _calls(each)]
    written = [call for call in calls if call_end(call) == "ok" and any(_is(file, path) for file in _writes(call))]
    if written or any(_may_write(call) for call in _calls(turn)):
        return ""
    tried = [call for call in _calls(turn) if tool_info(call.tool_name).access == "write" and _asked_for(call, path)]
    if tried:
        end = "was refused" if call_end(tried[-1]) == "refused" else "failed"
        return f"says it {done} {path}; that call {end} [t{turn.turn_index}]"
    # Turns that are not at hand may have done it.
    whole = not earlier or earlier[0].turn_index == 1
    return f"says it {done} {path}; no call did" if whole and _first_person(claim) else ""


def _about_commits(claims: Sequence[str], turn: Turn, earlier: Sequence[Turn]) -> Iterator[str]:
    if not any(_COMMITTED.search(claim) for claim in claims):
        return
    calls = [call for each in (*earlier, turn) for call in _calls(each)]
    if any(commits_of(call) or (_commits(call) and call_end(call) == "ok") for call in calls):
        return
    tried = [call for call in _calls(turn) if _commits(call)]
    if tried and call_end(tried[-1]) in ("failed", "refused"):
        end = "was refused" if call_end(tried[-1]) == "refused" else "failed"
        yield f"says it committed; git commit {end} [t{turn.turn_index}]"
    elif not _ran_anything(turn) and (not earlier or earlier[0].turn_index == 1):
        yield "says it committed; no call did"


def _test_runs(turn: Turn) -> Iterator[_Run]:
    for call in _calls(turn):
        commands = list(_commands(call))
        if not any(_tests(command) for command in commands) or call_end(call) not in ("ok", "failed"):
            continue
        result = json_object(call.result.result) if call.result is not None else {}
        status = result.get("exit_status")
        failed = _FAILED_TESTS.search(whole_result(call)) is not None
        if status == 0:
            # Behind a pipe the exit status is another program's.
            yield _Run(turn.turn_index, not (failed and len(commands) > 1))
        elif isinstance(status, int) and status != _NO_TESTS_STATUS and (failed or len(commands) == 1):
            yield _Run(turn.turn_index, passed=False)


def _tests(command: Command) -> bool:
    return command.name.rpartition("/")[2] in _RUNNERS or _SUBCOMMANDS.fullmatch(command.program) is not None


def _commits(call: ToolCall) -> bool:
    return any(command.program == "git commit" for command in _commands(call))


def _commands(call: ToolCall) -> Iterator[Command]:
    text = json_object(call.arguments).get("command")
    if isinstance(text, str) and tool_info(call.tool_name).access == "command":
        yield from commands_in(text)


def _calls(turn: Turn) -> list[ToolCall]:
    return [call for message in turn.messages if message.state != "superseded" for call in message.tool_calls]


def _ran_anything(turn: Turn) -> bool:
    return any(_may_write(call) for call in _calls(turn))


def _may_write(call: ToolCall) -> bool:
    """Return whether a call may have written more than it reports: a command, a helper, a server's tool."""
    info = tool_info(call.tool_name)
    known = info.access in ("read", "write") and bool(info.verb)
    return call_end(call) in ("ok", "failed", "stopped", "unknown") and not known and info.access != "control"


def _writes(call: ToolCall) -> list[FileAccess]:
    return [file for file in call.files if file.access == "write"]


def _is(file: FileAccess, path: str) -> bool:
    """Return whether a file is the one that an answer names, perhaps by the end of its path."""
    parts, wanted = PurePosixPath(file.path).parts, PurePosixPath(path.removeprefix("./")).parts
    return parts[-len(wanted) :] == wanted or wanted[-len(parts) :] == parts


def _asked_for(call: ToolCall, path: str) -> bool:
    asked = json_object(call.arguments)
    named = [value for key in ("path", "move_to") if isinstance(value := asked.get(key), str)]
    return any(_is(FileAccess(path=one, access="write"), path) for one in named) or path in str(asked.get("patch", ""))


def _first_person(claim: str) -> bool:
    return re.search(r"\b(?:I|I've|j'ai|ich habe)\b", claim, re.IGNORECASE) is not None
