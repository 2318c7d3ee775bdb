"""Next tool calls of the offline assistant, given the question and the results so far.

Used by `offline` only; pure functions. Tool names and arguments are those every model sees.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import msgspec

from ragforge_tui.llm.offline.answers import Done, Hit, best_hits, grep_hits, is_listing
from ragforge_tui.llm.offline.intents import Intent

_BEFORE, _AFTER = 3, 14
_CUT = re.compile(r"^\[\d+ matches in \d+ files", re.M)
_ENDINGS = re.compile(r"(?:ies|ing|es|ed|s)$")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Tool call to make."""

    name: str
    arguments: dict[str, Any]
    reason: str


def next_calls(intent: Intent, done: list[Done], offered: set[str]) -> list[Wish]:
    """Return the calls to make now; none if it is time to answer. No call is ever made twice."""
    planned = _PLANS.get(intent.kind)
    wishes = planned(intent, done) if planned else []
    made = [(call.name, {key: value for key, value in call.arguments.items() if key != "reason"}) for call in done]
    return [wish for wish in wishes if wish.name in offered and (wish.name, wish.arguments) not in made]


def search_pattern(terms: list[str]) -> str:
    """Return a regular expression that matches any of the terms, also with another ending."""
    stems = [_ENDINGS.sub("", term) if term.isalpha() and term.islower() and len(term) > 5 else term for term in terms]
    return "|".join(re.escape(stem) for stem in dict.fromkeys(stems))


def _run(intent: Intent, done: list[Done]) -> list[Wish]:
    return _once(done, Wish(name="run_command", arguments={"command": intent.command}, reason="You asked to run it."))


def _list(intent: Intent, done: list[Done]) -> list[Wish]:
    arguments = {"path": intent.path or "."}
    return _once(done, Wish(name="list_directory", arguments=arguments, reason="To see what is there."))


def _create(intent: Intent, done: list[Done]) -> list[Wish]:
    arguments = {"path": intent.path, "content": intent.new}
    return _once(done, Wish(name="create_file", arguments=arguments, reason="You asked for this file."))


def _find_file(intent: Intent, done: list[Done]) -> list[Wish]:
    if any(mark in intent.path for mark in "*?{"):
        return _once(done, Wish(name="glob_files", arguments={"pattern": intent.path}, reason="To find these files."))
    return _once(done, Wish(name="search_files", arguments={"query": intent.path}, reason="To find this file."))


def _replace(intent: Intent, done: list[Done]) -> list[Wish]:
    if not done:
        return [Wish(name="read_file", arguments={"path": intent.path}, reason="To see the text before changing it.")]
    if len(done) == 1 and is_listing(done[0].text):
        arguments = {"path": intent.path, "old_string": intent.old, "new_string": intent.new}
        return [Wish(name="edit_file", arguments=arguments, reason="You asked for this replacement.")]
    return []


def _read(intent: Intent, done: list[Done]) -> list[Wish]:
    if not done:
        return [_read_wish(intent, intent.path)]
    if len(done) == 1 and not is_listing(done[0].text):
        query = intent.path.rsplit("/", 1)[-1]
        return [Wish(name="search_files", arguments={"query": query}, reason="No such file; perhaps it is elsewhere.")]
    if len(done) == 2 and done[1].name == "search_files":
        paths = [line.strip() for line in done[1].text.splitlines()]
        name = intent.path.rsplit("/", 1)[-1].lower()
        same = [path for path in paths if path.rsplit("/", 1)[-1].lower() == name]
        return [_read_wish(intent, same[0])] if same else []
    return []


def _read_wish(intent: Intent, path: str) -> Wish:
    arguments: dict[str, Any] = {"path": path}
    if intent.lines:
        arguments |= {"start_line": intent.lines[0], "end_line": intent.lines[1]}
    return Wish(name="read_file", arguments=arguments, reason="To quote it.")


def _lookup(intent: Intent, done: list[Done]) -> list[Wish]:
    if not intent.terms:
        return []
    if not done:
        words = " ".join(intent.terms)
        pattern = {"pattern": search_pattern(intent.terms), "ignore_case": True}
        return [
            Wish(name="grep_files", arguments=pattern, reason=f"To find where {words} is mentioned."),
            Wish(name="search_files", arguments={"query": intent.terms[0], "limit": 5}, reason="It may be a file."),
            Wish(name="search_history", arguments={"query": words}, reason="It may have been mentioned before."),
        ]
    if any(call.name == "read_file" for call in done):
        return []
    greps = [call for call in done if call.name == "grep_files"]
    if len(greps) == 1 and len(intent.terms) > 1 and _CUT.search(greps[0].text):
        pattern = {"pattern": _together(intent.terms), "ignore_case": True}
        return [Wish(name="grep_files", arguments=pattern, reason="Too many matches: lines with two of the words.")]
    hits = [hit for call in done if call.name == "grep_files" for hit in grep_hits(call.text)]
    return [_around(hit) for hit in best_hits(hits, intent.terms)]


def _together(terms: list[str]) -> str:
    """Return a regular expression for lines with two of the terms."""
    stems = [search_pattern([term]) for term in terms[:5]]
    return "|".join(f"{first}.*{second}|{second}.*{first}" for first, second in itertools.combinations(stems, 2))


def _around(hit: Hit) -> Wish:
    arguments = {"path": hit.path, "start_line": max(1, hit.line - _BEFORE), "end_line": hit.line + _AFTER}
    return Wish(name="read_file", arguments=arguments, reason="To quote the lines around the best match.")


def _once(done: list[Done], wish: Wish) -> list[Wish]:
    return [] if done else [wish]


_PLANS = {
    "run": _run,
    "list": _list,
    "create": _create,
    "find_file": _find_file,
    "replace": _replace,
    "read": _read,
    "lookup": _lookup,
}
