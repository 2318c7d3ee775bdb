"""The running turn as messages, shortened when it outgrows the model's window.

A turn may make hundreds of calls, so its messages can exceed any window although the past fits. The results of its
earlier calls are cut first, largest and oldest first; if that is not enough, its oldest steps are replaced by notes of
one line per call. The newest step is cut last, because the model has not read it yet. The graph keeps every result,
and each mark refers the model to `open_turn`, which returns it.

Changes are made in large steps and remembered, so that the messages of one request start like those of the one before
and a provider's prompt cache stays valid. Pure; used by conversation/.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.memory.context.history_window import MESSAGE_TOKENS, tokens_of
from ragforge_tui.memory.context.truncation import place_of, tokens_in
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.truncation import cut_lines, cut_middle

RESULT_STEPS = (16_000, 8_000, 4_000, 2_000, 1_000, 400)
"""Characters that results are cut to, one step after the other."""
SMALLEST_RESULT = 60
SHORTEN_TO = 0.7
"""Share of the limit in use after shortening: the next requests then only add messages."""
NOTES_SHARE = 0.25
"""Largest share of the limit that the notes on left-out steps take."""
_ARGUMENT_CHARS = 80
_OUTCOME_CHARS = 80
_TEXT_CHARS = 300
_WISH_CHARS = 2_000
"""Characters that stay of a message of the user that joined the turn."""
_NOTES_TITLE = (
    "[Notes on this turn. To save room, {steps} earlier steps of it were replaced by these lines. Their results are "
    "stored: open_turn({turn}, call N) returns the result of call N.]"
)
_FEWER_NOTES = "- (the {count} oldest lines were left out too)"


class _Step(msgspec.Struct):
    """A reply with its results, or a note to the model. `first_call` is the number of its first call in the turn."""

    messages: list[ChatMessage]
    first_call: int
    limit: int = 0
    """Characters that its results are cut to; 0 for whole results."""


class RunningTurn:
    """Messages of a turn in progress.

    Args:
        turn_index: Number of the turn, named in the marks.
        text: The user's message.
    """

    def __init__(self, turn_index: int, text: str) -> None:
        self._turn_index = turn_index
        self._text = text
        self._text_limit = 0
        self._steps: list[_Step] = []
        self._left_out = 0
        """Number of oldest steps that the notes represent."""
        self._wishes: list[str] = []
        """What the user sent while the agent worked, of steps that are left out."""
        self._note_lines: list[str] = []
        self._calls = 0
        self._notes_tokens = 0
        self._counts: dict[tuple[int, int], int] = {}

    def add(self, messages: list[ChatMessage]) -> None:
        """Append a reply with the results of its calls, or a note."""
        if messages:
            self._steps.append(_Step(messages, self._calls + 1))
            self._calls += sum(message["role"] == "tool" for message in messages)

    def messages(self, limit: int) -> list[ChatMessage]:
        """Return the messages, within `limit` tokens if possible.

        The limit cannot be met if it is smaller than the marks themselves; the request then fails at the provider.
        """
        if self._tokens() > limit:
            self._shorten(limit)
        first = {"role": "user", "content": "\n".join(self._user_parts())}
        rest = [m for step in self._steps[self._left_out :] for m in self._rendered(step, step.limit)]
        return [first, *rest]

    # --- shortening ----------------------------------------------------------------------------------------------

    def _shorten(self, limit: int) -> None:
        target = int(limit * SHORTEN_TO)
        self._notes_tokens = int(limit * NOTES_SHARE)
        kept = self._steps[self._left_out :]
        for chars in RESULT_STEPS:
            for step in kept[:-1]:
                if not step.limit or step.limit > chars:
                    step.limit = chars
                    if self._tokens() <= target:
                        return
        # Three steps show the work in progress; they go too if the window is that small.
        for remaining in (3, 2, 1):
            while len(self._steps) - self._left_out > remaining:
                self._note_lines += _step_notes(self._steps[self._left_out])
                self._wishes += _wishes(self._steps[self._left_out])
                self._left_out += 1
                if self._tokens() <= target:
                    return
        self._shorten_newest(limit)

    def _shorten_newest(self, limit: int) -> None:
        """Cut the results of the newest step, then the user's message, until the limit itself is met."""
        if self._tokens() <= limit:
            return
        newest = self._steps[-1] if self._steps else None
        for chars in (*RESULT_STEPS, 200, SMALLEST_RESULT):
            if newest is not None and (not newest.limit or newest.limit > chars):
                newest.limit = chars
                if self._tokens() <= limit:
                    return
        for chars in RESULT_STEPS:
            self._text_limit = chars
            if self._tokens() <= limit:
                return

    # --- rendering -----------------------------------------------------------------------------------------------

    def _tokens(self) -> int:
        # Each line is counted by itself, with one token for its end: texts and lines recur, so their counts are cached.
        first = MESSAGE_TOKENS + sum(tokens_in(part) + 1 for part in self._user_parts())
        return first + sum(self._count(number) for number in range(self._left_out, len(self._steps)))

    def _count(self, number: int) -> int:
        step = self._steps[number]
        key = (number, step.limit)
        if key not in self._counts:
            self._counts[key] = tokens_of(self._rendered(step, step.limit))
        return self._counts[key]

    def _rendered(self, step: _Step, limit: int) -> list[ChatMessage]:
        if not limit:
            return step.messages
        rendered: list[ChatMessage] = []
        call = step.first_call
        for message in step.messages:
            if message["role"] == "tool":
                message, call = self._short_result(message, call, limit), call + 1
            elif message["role"] == "user":
                message = {**message, "content": cut_middle(message["content"] or "", max(limit, _WISH_CHARS))}
            rendered.append(message)
        return rendered

    def _short_result(self, message: ChatMessage, call: int, limit: int) -> ChatMessage:
        return {**message, "content": cut_lines(message["content"] or "", limit, place_of(self._turn_index, call))}

    def _user_parts(self) -> list[str]:
        text = cut_middle(self._text, self._text_limit) if self._text_limit else self._text
        if not self._left_out:
            return [text]
        return [
            text,
            *self._wishes,
            "",
            _NOTES_TITLE.format(steps=self._left_out, turn=self._turn_index),
            *self._notes(),
        ]

    def _notes(self) -> list[str]:
        """Return the lines on the steps left out, the newest ones within `NOTES_SHARE`."""
        lines = self._note_lines
        used, start = 0, len(lines)
        while start > 0:
            used += tokens_in(lines[start - 1]) + 1
            if used > self._notes_tokens:
                break
            start -= 1
        return [*([_FEWER_NOTES.format(count=start)] if start else []), *lines[start:]]


def _wishes(step: _Step) -> list[str]:
    """Return what the user sent in a step: it holds for the rest of the turn."""
    texts = [message["content"] or "" for message in step.messages if message["role"] == "user"]
    return [cut_middle(text, _WISH_CHARS) for text in texts]


def _step_notes(step: _Step) -> list[str]:
    """Return the text of a reply and one line for each of its calls, with the start of its result."""
    lines: list[str] = []
    results = {message.get("tool_call_id"): message["content"] or "" for message in step.messages}
    call = step.first_call
    for message in step.messages:
        if message["role"] in ("tool", "user"):
            continue
        if text := " ".join((message["content"] or "").split()):
            lines.append(f"- you: {cut_middle(text, _TEXT_CHARS, ' … ')}")
        for request in message.get("tool_calls") or []:
            function = request["function"]
            argument = _first_text(function["arguments"])
            outcome = " ".join(results.get(request["id"], "").split())[:_OUTCOME_CHARS]
            lines.append(f"- call {call}: {function['name']} {argument} → {outcome}")
            call += 1
    return lines


def _first_text(arguments: str) -> str:
    """Return the first text among a call's arguments, usually a path, a pattern or a command."""
    values = json_object(arguments)
    texts = (value for name, value in values.items() if isinstance(value, str) and name != "reason")
    return " ".join(next(texts, "").split())[:_ARGUMENT_CHARS]
