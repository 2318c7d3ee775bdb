"""Scores of one task: what the request held, and what was answered. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from benchmarks.agent.tasks import Task
from ragforge_tui.llm import count_tokens
from ragforge_tui.shared.records import now
from tests.support.model_script import request_tokens

PARTS = ("past", "block", "turn", "system")
_WORD_FOR_WORD = "Earlier turns"
_BECAME = ("(done on ", "(replaced by ", "(replaced on ", "(withdrawn ")
GONE = "gone"
"""Found for a group of stale texts of which none was sent."""


class Score(msgspec.Struct, kw_only=True):
    """Outcome of a task at one window.

    Attributes:
        gold: For each group of gold facts, and for the date if the task has one, the part of the request that holds
            it, "" if none does: ``past`` (earlier turns), ``block`` (next to the message), ``turn`` (since the
            message) or ``system``; for a group of stale texts ``gone``, "" if one was sent.
        tokens: Of the scored request, tools included; `largest` of the turn's largest request.
        block_tokens: Tokens next to the message; `recalled_tokens` of these for what was looked up for it.
        past_tokens: Tokens of the earlier turns.
        failed: Error of the turn.
        right: Whether the answer is right, None without a model.
    """

    id: str
    kind: str
    window: int
    gold: list[str]
    tokens: int = 0
    largest: int = 0
    block_tokens: int = 0
    recalled_tokens: int = 0
    past_tokens: int = 0
    requests: int = 0
    failed: str = ""
    answer: str = ""
    right: bool | None = None
    judged: str = ""

    @property
    def complete(self) -> bool:
        """Whether the request held every group."""
        return all(self.gold)


def score(task: Task, window: int, requests: Sequence[dict[str, Any]], *, failed: str = "") -> Score:
    """Score what was sent: the first request of the turn, or the last where the task is a long turn."""
    groups = [*task.gold, *([_dates(task.day)] if task.day else [])]
    stale = len(task.stale)
    if not requests:
        nothing = [""] * (len(groups) + stale)
        return Score(id=task.id, kind=task.kind, window=window, gold=nothing, failed=failed or "no request")
    body = requests[-1 if task.calls else 0]
    parts = parts_of(body, task.ask)
    where = {name: _folded(text) for name, text in parts.items()}
    if task.calls:
        # Whether the message itself is still there is a question of a long turn.
        where["turn"] += _folded(task.ask) if _asked(body, task.ask) is not None else ""
    gold = [next((part for part in PARTS if _any_in(group, where[part])), "") for group in groups]
    current = _folded(_current(parts["block"]))
    gold += ["" if _any_in(group, current) else GONE for group in task.stale]
    return Score(
        id=task.id,
        kind=task.kind,
        window=window,
        gold=gold,
        tokens=request_tokens(body),
        largest=max(map(request_tokens, requests)),
        block_tokens=count_tokens(parts["block"]),
        past_tokens=request_tokens({"messages": _past(body, task.ask)}),
        requests=len(requests),
        failed=failed,
    )


def parts_of(body: dict[str, Any], ask: str) -> dict[str, str]:
    """Return the text of each part of a request; the message itself belongs to none."""
    messages = body["messages"]
    asked = _asked(body, ask)
    at = len(messages) if asked is None else asked
    return {
        "system": "\n".join(_text(message) for message in messages if message["role"] == "system"),
        "past": "\n".join(map(_text, _past(body, ask))),
        "block": "" if asked is None else _text(messages[asked]).replace(ask, "", 1).strip(),
        "turn": "\n".join(map(_text, messages[at + 1 :])),
    }


def kept_prefix(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Return the share of a request that is the beginning of the next one, which a provider's cache keeps."""
    first, second = (json.dumps([body.get("tools"), body["messages"]]) for body in (before, after))
    same = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    return same / len(first)


def judge_prompt(task: Task, answer: str) -> str:
    """Return the request to a judge, whose answer begins with yes or no."""
    expected = task.judge or "Reacts fittingly and briefly; brings up nothing of the past that was not asked for."
    return (
        "You judge the answer of a coding agent. Begin with the one word yes if it meets what is expected, else no; "
        f"then give the reason in one sentence.\n\nMessage: {task.ask}\n\nExpected: {expected}\n\nAnswer:\n{answer}"
    )


def _past(body: dict[str, Any], ask: str) -> list[dict[str, Any]]:
    return [message for message in body["messages"][: _asked(body, ask)] if message["role"] != "system"]


def _asked(body: dict[str, Any], ask: str) -> int | None:
    """Return the position of the last user message that holds the question."""
    found = [n for n, m in enumerate(body["messages"]) if m["role"] == "user" and ask in _text(m)]
    return found[-1] if found else None


def _text(message: dict[str, Any]) -> str:
    """Return a message's text, with the arguments of its calls as they are meant, not as JSON escapes them."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    for call in message.get("tool_calls") or []:
        texts += [call["function"]["name"], *_strings(call["function"]["arguments"])]
    return "\n".join(texts)


def _strings(arguments: str) -> list[str]:
    try:
        values = json.loads(arguments)
    except ValueError:
        return [arguments]
    return [str(value) for value in values.values()] if isinstance(values, dict) else [arguments]


def _dates(days: int) -> list[str]:
    """Return how a request may name the date of so many days ago."""
    date = now() - timedelta(days=days)
    return [f"{date:%Y-%m-%d}", f"{date.day} {date:%B %Y}", f"{date.day} {date:%b}"]


def _current(block: str) -> str:
    """Return what is sent as current: not turns word for word, nor lines that tell what became of something."""
    sections = [section for section in block.split("\n## ") if not section.startswith(_WORD_FOR_WORD)]
    lines = (line for section in sections for line in section.splitlines())
    return "\n".join(line for line in lines if not any(mark in line for mark in _BECAME))


def _any_in(facts: Sequence[str], folded: str) -> bool:
    return any(_folded(fact) in folded for fact in facts)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
