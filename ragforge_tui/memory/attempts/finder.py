"""Attempts in the turns of a conversation: what failed, was undone or was refused, from the stored calls alone."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ragforge_tui.memory.attempts.commands import (
    NOT_FOUND,
    USAGE,
    difference,
    keys_of,
    only_looks,
    without_noise,
)
from ragforge_tui.memory.attempts.edits import Change, alike, changes_asked, changes_in, marks_of, takes_back, told
from ragforge_tui.memory.attempts.revert_words import explains, wants_back
from ragforge_tui.shared.attempt_records import Attempt, AttemptOutcome
from ragforge_tui.shared.command_words import Command, command_of, commands_in
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import REFUSED, Message, ToolCall, Turn, call_end
from ragforge_tui.shared.tool_calls import called_tool, commits_of, result_text

LOOK_BACK = 12
"""Turns before the new ones that are read too: what they wrote may be undone now."""
_SPACE = uuid.UUID("0c5a2f0e-3a35-4f0c-8b3a-64a1c6f2d7b9")
_WHY_CHARS = 160
_WHAT_CHARS = 200
_PENDING_TURNS = 1
"""Turns after the one in which a command failed until which another one may be its correction."""
_TAKEN_BACK = 0.5
"""Share of an edit that the user's "revert that" takes back."""


class FoundAttempts(msgspec.Struct):
    """Result for some new turns.

    Attributes:
        attempts: Those that ended in the new turns, and those before them that the user has explained now.
        redone: Turns of the user that took back an undo: what those had undone stands again.
        worked: Commands that have succeeded.
        kept: Edits that have stood for a turn.
    """

    attempts: list[Attempt] = []
    redone: list[int] = []
    worked: list[Command] = []
    kept: list[Change] = []

    @property
    def keys(self) -> list[str]:
        """Keys of attempts that may no longer hold."""
        found = [key for command in self.worked for key in keys_of(command)]
        return list(dict.fromkeys([*found, *(change.path for change in self.kept)]))

    def settles(self, attempt: Attempt) -> bool:
        """Return whether an earlier attempt is over: what failed or was unwanted has worked since."""
        if attempt.marks:
            return any(is_repeated(change, attempt) for change in self.kept)
        return any(has_failed(command, attempt) for command in self.worked)


def _command(call: ToolCall) -> object:
    asked = json_object(call.arguments)
    return asked.get("command", asked.get("cmd"))


def is_repeated(change: Change, attempt: Attempt) -> bool:
    """Return whether an edit does again what an attempt did."""
    return change.path == attempt.key and alike(change, attempt.marks)


def has_failed(command: Command, attempt: Attempt) -> bool:
    """Return whether a command is what failed, or was refused, in an attempt."""
    words = without_noise(command)
    parts = attempt.instead.split()
    match attempt.outcome:
        case "missing":
            return attempt.key in keys_of(command)
        case "needed":
            return command.program == attempt.key and not all(word in words for word in parts)
        case "extra":
            return command.program == attempt.key and all(word in words for word in parts)
        case _:
            return words == attempt.words


class _Edit(msgspec.Struct):
    turn: int
    message: str
    at: datetime
    change: Change


class _Failure(msgspec.Struct):
    turn: int
    message: str
    at: datetime
    command: Command
    output: str
    status: int | None
    changed: bool = False
    """Whether anything was written since, which may be why the next one works."""


class _Walk:
    """Reader of turns in order."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        self.found = FoundAttempts()
        self.standing: list[_Edit] = []
        self.committed: dict[str, list[_Edit]] = {}
        self.failures: list[_Failure] = []
        self.undone: dict[int, list[Attempt]] = {}
        self.explained: set[int] = set()
        self.reasons: set[tuple[str, str]] = set()
        self.said = ""
        """The user's words with which the turn takes something back; empty if they do not."""
        self.turn = 0
        self.conversation = ""

    def read(self, turn: Turn) -> None:
        messages = [message for message in turn.messages if message.state != "superseded"]
        asked = next((message for message in messages if message.role == "user"), None)
        self.conversation = messages[0].conversation_id if messages else ""
        self.turn = turn.turn_index
        self.said = _one_line(asked.content) if asked is not None and wants_back(asked.content) else ""
        if asked is not None and not asked.doing and explains(asked.content):
            self._explain(_one_line(asked.content))
        self.failures = [each for each in self.failures if self.turn - each.turn <= _PENDING_TURNS]
        for message in messages:
            for call in sorted(message.tool_calls, key=lambda call: (call.iteration, call.ordinal)):
                self._call(message, call)

    def _explain(self, why: str) -> None:
        """Add the user's words to what the turn before has undone without any."""
        self.found.attempts = [
            msgspec.structs.replace(one, why=why)
            if one.outcome == "undone" and one.end_turn == self.turn - 1 and not one.why
            else one
            for one in self.found.attempts
        ]
        self.explained.add(self.turn - 1)

    def _call(self, message: Message, call: ToolCall) -> None:
        info = called_tool(call)
        end = call_end(call)
        if end == "refused":
            self._refused(message, call)
            return
        result = json_object(call.result.result) if call.result is not None else {}
        if "undone" in result and end == "ok":
            self._restored(result)
            return
        if info.access == "write" and end == "ok":
            self._wrote(message, call, result)
        elif isinstance(command := _command(call), str) and info.access == "command":
            self._ran(message, call, command, result)
        if commits := commits_of(call):
            self.committed[commits[-1].hash] = self.standing
            self.standing = []

    def _refused(self, message: Message, call: ToolCall) -> None:
        error = (call.result.error if call.result is not None else "") or ""
        reason = error.removeprefix(f"{REFUSED}: ") if error.startswith(f"{REFUSED}: ") else ""
        # The rest of a reply is refused with the reason that the user gave for one of its calls.
        if not reason or (call.message_id, reason) in self.reasons:
            return
        self.reasons.add((call.message_id, reason))
        for change in changes_asked(call):
            self._add(
                "refused",
                message,
                self.turn,
                call.timestamp,
                key=change.path,
                what=told(change),
                why=reason,
                marks=marks_of(change),
            )
        text = json_object(call.arguments).get("command")
        command = command_of(text) if isinstance(text, str) else None
        if command is not None:
            self._add(
                "refused",
                message,
                self.turn,
                call.timestamp,
                key=command.program,
                what=str(text),
                why=reason,
                words=without_noise(command),
            )

    def _restored(self, result: dict[str, Any]) -> None:
        """Read an undo of the user, or the undo of an undo."""
        first = result.get("undone")
        if not isinstance(first, int):
            return
        if first in self.undone:
            self.found.redone.append(first)
            gone = {each.uuid for each in self.undone[first]}
            self.found.attempts = [each for each in self.found.attempts if each.uuid not in gone]
            return
        changes = result.get("changes")
        paths = {
            entry.get("path") for entry in (changes if isinstance(changes, list) else []) if isinstance(entry, dict)
        }
        self.undone[self.turn] = self._take([e for e in self.standing if e.turn >= first and e.change.path in paths])

    def _wrote(self, message: Message, call: ToolCall, result: dict[str, Any]) -> None:
        for failure in self.failures:
            failure.changed = True
        diff = result.get("diff")
        for change in changes_in(diff) if isinstance(diff, str) else ():
            self._take_back(change)
            self._drop(partial(is_repeated, change))
            self.standing.append(_Edit(self.turn, message.uuid, call.timestamp, change))

    def _take_back(self, change: Change) -> None:
        """Find the edits that this one takes back: all of one, or half of it where the user asked for that."""
        for edit in reversed([each for each in self.standing if each.change.path == change.path]):
            amount = takes_back(change, edit.change)
            if self.said and edit.turn < self.turn and amount >= _TAKEN_BACK:
                self._take([edit], self.said)
            elif amount == 1.0 and edit.change.removed and (failed := self._failed_since(edit)):
                self._take([edit], failed)

    def _drop(self, over: Callable[[Attempt], bool]) -> None:
        """Forget attempts of these turns that no longer hold."""
        self.found.attempts = [attempt for attempt in self.found.attempts if not over(attempt)]

    def _failed_since(self, edit: _Edit) -> str:
        """Return the command that failed after an edit, in words; empty if none did."""
        failed = next((each for each in reversed(self.failures) if each.at >= edit.at), None)
        return f"{shlex.join(failed.command.words)} failed" if failed is not None else ""

    def _take(self, edits: list[_Edit], why: str = "") -> list[Attempt]:
        """Note edits as undone in this turn."""
        self.standing = [edit for edit in self.standing if edit not in edits]
        return [
            self._add(
                "undone",
                edit.message,
                edit.turn,
                edit.at,
                key=edit.change.path,
                what=told(edit.change),
                why=why or self.said,
                marks=marks_of(edit.change),
            )
            for edit in edits
        ]

    def _ran(self, message: Message, call: ToolCall, text: str, result: dict[str, Any]) -> None:
        status = result.get("exit_status")
        for command in commands_in(text):
            if (call.success or status == 0) and command.program.startswith("git "):
                self._git(command)
        simple = command_of(text)
        if (
            simple is not None
            and not call.success
            and call_end(call) == "failed"
            and isinstance(status, int)
            and status
        ):
            self.failures.append(_Failure(self.turn, message.uuid, call.timestamp, simple, result_text(call), status))
            return
        if simple is not None and call.success:
            self._succeeded(simple)
        if not only_looks(text):
            self._changed()

    def _changed(self) -> None:
        for failure in self.failures:
            failure.changed = True

    def _succeeded(self, command: Command) -> None:
        self.found.worked.append(command)
        self._drop(partial(has_failed, command))
        for failure in reversed(self.failures):
            if failure.command.words == command.words:
                self.failures = [each for each in self.failures if each.command.words != command.words]
                return
            made = difference(failure.command, command, output=failure.output, status=failure.status)
            fixed = failure.changed and not (made is not None and made.outcome != "needed")
            if made is None or fixed:
                continue
            self.failures.remove(failure)
            self._add(
                made.outcome,
                failure.message,
                failure.turn,
                failure.at,
                key=made.key,
                what=shlex.join(failure.command.words),
                why=_said_by(failure.output),
                instead=made.words,
                words=without_noise(failure.command),
            )
            return

    def _git(self, command: Command) -> None:
        """Note the edits that a git command took back."""
        names = [word for word in command.rest if not word.startswith("-")]
        verb = command.program.split()[1]
        if verb == "revert":
            wanted = names[0] if names else "HEAD"
            last = next(reversed(self.committed), "")
            commit = last if wanted == "HEAD" else next((one for one in self.committed if one.startswith(wanted)), "")
            self._take(self.committed.pop(commit, []))
        elif verb == "reset" and "--hard" in command.rest:
            self._take(list(self.standing))
        elif verb == "restore" and "--staged" not in command.rest:
            self._take([edit for edit in self.standing if _within(edit.change.path, names)])
        elif verb == "checkout" and ("--" in command.rest or names):
            paths = list(command.rest[command.rest.index("--") + 1 :]) if "--" in command.rest else names
            self._take([edit for edit in self.standing if _within(edit.change.path, paths)])

    def _add(
        self,
        outcome: AttemptOutcome,
        message: Message | str,
        turn: int,
        at: datetime,
        *,
        key: str,
        what: str,
        why: str = "",
        instead: str = "",
        words: list[str] | None = None,
        marks: list[str] | None = None,
    ) -> Attempt:
        what = _one_line(what)[:_WHAT_CHARS]
        attempt = Attempt(
            uuid=str(uuid.uuid5(_SPACE, "\x1f".join((self.conversation, str(turn), key, outcome, what)))),
            conversation_id=self.conversation,
            turn_index=turn,
            end_turn=self.turn,
            message=message if isinstance(message, str) else message.uuid,
            workspace=self.workspace,
            key=key,
            outcome=outcome,
            what=what,
            why=_one_line(why),
            instead=instead,
            words=words or [],
            marks=marks or [],
            at=at,
        )
        if outcome not in ("undone", "refused") or words or marks:
            self.found.attempts.append(attempt)
        return attempt


def find_attempts(turns: Sequence[Turn], workspace: str, *, after: int) -> FoundAttempts:
    """Return the attempts that ended after a turn, and what settles earlier ones.

    Args:
        turns: The new turns, with up to `LOOK_BACK` before them.
        after: The last turn that was examined before.
    """
    walk = _Walk(workspace)
    for turn in turns:
        if turn.turn_index == after + 1:
            walk.found.redone, walk.found.worked = [], []
        walk.read(turn)
    found = walk.found
    found.attempts = [
        attempt
        for attempt in found.attempts
        if attempt.end_turn > after or (attempt.end_turn == after and after in walk.explained)
    ]
    last = turns[-1].turn_index if turns else 0
    found.kept = [edit.change for edit in walk.standing if edit.turn < last and edit.turn >= after]
    return found


def _within(path: str, names: Sequence[str]) -> bool:
    """Return whether a path is one of some names, or in one of them."""
    plain = [name.removeprefix("./").rstrip("/") for name in names]
    folders = [str(folder) for folder in PurePosixPath(path).parents]
    return any(name in ("", ".", path) or name in folders for name in plain)


def _said_by(output: str) -> str:
    """Return the line of the output that names the cause; empty without one."""
    for pattern in (USAGE, NOT_FOUND):
        for line in output.split("\n"):
            if pattern.search(line) and not line.lower().startswith("usage:"):
                return line.strip()
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WHY_CHARS else line[: _WHY_CHARS - 1].rstrip() + "…"
