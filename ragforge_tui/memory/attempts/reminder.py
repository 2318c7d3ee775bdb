"""The line that memory shows before an edit or a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from ragforge_tui.memory.attempts.commands import keys_of
from ragforge_tui.memory.attempts.contradiction import contradicts
from ragforge_tui.memory.attempts.edits import Change
from ragforge_tui.memory.attempts.finder import has_failed, is_repeated
from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.command_words import commands_in

_TITLE_CHARS = 50
_TEXT_CHARS = 220
_NAMED = 120


class Decision(NamedTuple):
    """A decision that is still valid, about a file or a scope that an edit changes."""

    text: str
    conversation_id: str
    turn_index: int
    title: str
    since: datetime


class Tried(NamedTuple):
    """An attempt with the title of its conversation."""

    attempt: Attempt
    title: str


class Place(NamedTuple):
    """Where the call is about to run.

    Attributes:
        turn_index: The running turn. What ended in it or in the one before is still in view.
        when: Returns a day in words, such as ``on 3 October``.
    """

    conversation_id: str
    turn_index: int
    when: Callable[[datetime], str]

    def in_view(self, attempt: Attempt) -> bool:
        """Return whether the user has just seen how an attempt ended."""
        return attempt.conversation_id == self.conversation_id and attempt.end_turn >= self.turn_index - 1

    def cited(self, conversation_id: str, turn: int, title: str) -> str:
        """Return a turn as it is cited: ``t5``, or ``t5 of “kit”`` in another conversation."""
        if conversation_id == self.conversation_id:
            return f"t{turn}"
        title = " ".join(title.split())
        short = title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1].rstrip() + "…"
        return f"t{turn} of “{short or conversation_id[:8]}”"


def command_keys(command: str) -> list[str]:
    """Return the keys of what was tried before that may matter for a command."""
    return list(dict.fromkeys(key for part in commands_in(command) for key in keys_of(part)))


def before_command(command: str, tried: Sequence[Tried], place: Place) -> str:
    """Return the line about a command; empty without one that surely holds for it."""
    parts = list(commands_in(command))
    fitting = [
        one for one in tried if not place.in_view(one.attempt) and any(has_failed(part, one.attempt) for part in parts)
    ]
    if not fitting:
        return ""
    attempt, title = min(fitting, key=lambda one: (one.attempt.outcome != "refused", -one.attempt.at.timestamp()))
    where = place.cited(attempt.conversation_id, attempt.turn_index, title)
    said = f": {_cut(attempt.why, _NAMED)}" if attempt.why else ""
    match attempt.outcome:
        case "refused":
            return _cut(f"You refused this {place.when(attempt.at)} ({where}){said}")
        case "missing":
            return _cut(f"`{attempt.key[1:]}` was not found last time ({where}); `{attempt.instead}` worked")
        case "needed":
            return _cut(f"This command needed `{attempt.instead}` last time ({where})")
        case "extra":
            return _cut(f"This command did not take `{attempt.instead}` last time ({where}){said}")
        case _:
            return _cut(f"This command failed last time ({where}){said}; `{attempt.instead}` worked")


def before_edit(changes: Sequence[Change], tried: Sequence[Tried], decisions: Sequence[Decision], place: Place) -> str:
    """Return the line about an edit: a decision or an attempt; empty without one that surely holds for it."""
    fitting = [
        one
        for one in tried
        if not place.in_view(one.attempt) and any(is_repeated(change, one.attempt) for change in changes)
    ]
    fitting.sort(key=lambda one: (one.attempt.outcome != "refused", -one.attempt.at.timestamp()))
    if fitting and fitting[0].attempt.outcome == "refused":
        return _told(fitting[0], place)
    for decision in sorted(decisions, key=lambda one: one.since, reverse=True):
        just_said = decision.conversation_id == place.conversation_id and decision.turn_index >= place.turn_index - 1
        found = None if just_said else contradicts(decision.text, changes)
        if found is not None:
            where = place.cited(decision.conversation_id, decision.turn_index, decision.title)
            text = _cut(decision.text, _NAMED).rstrip(".")
            return _cut(f"{where[0].upper()}{where[1:]} decided: {text}. This edit {found.verb} `{found.term}`")
    return _told(fitting[0], place) if fitting else ""


def _told(one: Tried, place: Place) -> str:
    attempt, title = one
    where = place.cited(attempt.conversation_id, attempt.turn_index, title)
    said = f": {_cut(attempt.why, _NAMED)}" if attempt.why else f": {attempt.what}"
    if attempt.outcome == "refused":
        return _cut(f"You refused this edit {place.when(attempt.at)} ({where}){said}")
    return _cut(f"Tried {place.when(attempt.at)} and undone ({where}){said}")


def _cut(text: str, most: int = _TEXT_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
