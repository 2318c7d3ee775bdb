"""Choice of the past turns that are sent as real messages, and of their form.

While they fit, all turns are sent whole. Once they do not, the largest and oldest results are cut as far as needed.
If that is not enough either, the newest turns are sent and the memory block represents the older ones.

The messages change seldom and in steps, so that a provider's prompt cache stays valid: the cuts and the first turn
sent are remembered and reused while everything fits, new turns included; a new choice leaves some tokens free.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ragforge_tui.llm import PROVIDER_STATE, count_tokens
from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.context.turn_formats import (
    RESULT_CHARS,
    SHORT,
    WHOLE,
    longest_result,
    render_turn,
    sent_positions,
    short_results,
    text_only,
    trimmed,
)
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.shared.records import Turn

MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its text: role and separators, as OpenAI counts them."""
TRIM_CHARS = (8_000, 4_000, 2_000, 1_000, 500, 250, 120)
TEXT_CHARS = (2_000, 1_000, 500, 250, 120, 60, 30, 12, 6, 3)
RESULT_STEPS = (16_000, 8_000, 4_000, 2_000, RESULT_CHARS)
"""Characters results are cut to, one step after the other: the largest are cut first."""
UNCUT_TURNS = 3
"""Newest turns, whose results are not cut while any older one can be: the work in progress is there."""
CUT_TO = 0.9
"""Share of the budget used after results were cut: the cuts then stay for some turns."""
SLACK = 0.7
"""Share of the window of newest turns that is filled when its start has to move: it then stays for some turns."""
REPRESENTED_TOKENS = 100
"""Reserved for the last two turns before recall gets any."""


class SentTurn(msgspec.Struct, frozen=True):
    """Turn that is sent as real messages."""

    turn: Turn
    form: str
    positions: list[int]
    messages: list[ChatMessage]
    tokens: int


class Past(msgspec.Struct, frozen=True):
    """Turns sent as real messages, ascending; `complete` if they are all turns of the conversation."""

    turns: list[SentTurn]
    complete: bool

    @property
    def whole(self) -> bool:
        """True if all turns are sent unshortened."""
        return self.complete and all(sent.form == WHOLE for sent in self.turns)

    @property
    def tokens(self) -> int:
        return sum(sent.tokens for sent in self.turns)


class Limits(msgspec.Struct, frozen=True):
    """Limits for the newest turns. `messages` is None for as many as fit."""

    tokens: int
    turns: int
    messages: int | None = None


class HistoryWindow:
    """Selection among the turns of one conversation, with a cache of token counts and of the last choice."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[object, ...], int] = {}
        self._forms: dict[int, str] = {}
        """Forms by turn index, for turns that the last request did not hold whole."""
        self._start = 0

    def all_turns(self, turns: list[Turn], budget: int, messages: int | None) -> Past | None:
        """Return all turns, with results of older ones cut if necessary; None if they still do not fit."""
        if turns and turns[0].turn_index != 1:
            return None
        if messages is not None and sum(len(sent_positions(turn)) for turn in turns) > messages:
            return None
        if self._total(turns, {}) <= budget:
            self._forms, self._start = {}, 0
        elif self._start or self._total(turns, self._forms) > budget:
            forms = self._cut_results(turns, budget)
            if forms is None:
                return None
            self._forms, self._start = forms, 0
        return Past([self._sent(turn, self._forms.get(turn.turn_index, WHOLE)) for turn in turns], True)

    def _cut_results(self, turns: list[Turn], budget: int) -> dict[int, str] | None:
        """Return the forms in which all turns fit, by cutting the largest and oldest results first."""
        forms: dict[int, str] = {}
        total = self._total(turns, {})
        for limit in RESULT_STEPS:
            for turn in turns[:-UNCUT_TURNS]:
                if longest_result(turn) <= limit:
                    continue
                before = self._count(turn, forms.get(turn.turn_index, WHOLE))
                saved = before - self._count(turn, short_results(limit))
                if saved <= 0:
                    continue
                forms[turn.turn_index] = short_results(limit)
                total -= saved
                if total <= budget * CUT_TO:
                    return forms
        return forms if total <= budget else None

    def _total(self, turns: list[Turn], forms: dict[int, str]) -> int:
        return sum(self._count(turn, forms.get(turn.turn_index, WHOLE)) for turn in turns)

    def newest(self, turns: list[Turn], limits: Limits) -> Past:
        """Return the newest turns within the limits: those of the last request and the ones since, if they fit."""
        recent = [turn for turn in turns if turn.turn_index >= self._start] if self._start else []
        if len(recent) < min(len(turns), 2) or not self._fits(recent, limits):
            return self._window(turns, limits)
        return Past([self._sent(turn, self._forms.get(turn.turn_index, WHOLE)) for turn in recent], False)

    def _fits(self, turns: list[Turn], limits: Limits) -> bool:
        count = sum(len(sent_positions(turn)) for turn in turns)
        if len(turns) > limits.turns or (limits.messages is not None and count > limits.messages):
            return False
        # A turn of which only the first and last message were sent may fit in a larger form by now.
        forms = (self._forms.get(turn.turn_index, WHOLE) for turn in turns)
        return not any(form.startswith("text") for form in forms) and self._total(turns, self._forms) <= limits.tokens

    def _window(self, turns: list[Turn], limits: Limits) -> Past:
        """Return the newest turns, with tokens left for turns to come."""
        represented = self._last_two(turns, limits)
        if not represented:
            return Past([], False)
        tokens = int(limits.tokens * SLACK) - sum(sent.tokens for sent in represented)
        turns_left = int((limits.turns - len(represented)) * SLACK)
        messages = None
        if limits.messages is not None:
            messages = int((limits.messages - sum(len(sent.positions) for sent in represented)) * SLACK)
        chosen: list[SentTurn] = []
        for turn in reversed(turns[: len(turns) - len(represented)]):
            forms = (WHOLE, SHORT) if len(represented) + len(chosen) < UNCUT_TURNS else (SHORT,)
            form = next((form for form in forms if self._count(turn, form) <= tokens), None)
            positions = len(sent_positions(turn))
            if form is None or turns_left <= 0 or (messages is not None and positions > messages):
                break
            chosen.insert(0, self._sent(turn, form))
            tokens -= chosen[0].tokens
            turns_left -= 1
            messages = None if messages is None else messages - positions
        window = [*chosen, *represented]
        self._forms = {sent.turn.turn_index: sent.form for sent in window if sent.form != WHOLE}
        self._start = window[0].turn.turn_index
        return Past(window, False)

    def _last_two(self, turns: list[Turn], limits: Limits) -> list[SentTurn]:
        """Return the last two turns, shortened if both do not fit, as far as the message limit allows."""
        last: list[SentTurn] = []
        left, messages = limits.tokens, limits.messages
        newest = turns[-2:]
        for n, turn in enumerate(reversed(newest)):
            other = self._count(newest[0], WHOLE) if not n and len(newest) > 1 else 0
            # The last turn may take what the one before leaves, and at least half.
            sent = self._fitting(turn, max(left // 2, left - other) if other else left, messages)
            if sent is None:
                break
            last.insert(0, sent)
            left -= sent.tokens
            if messages is not None:
                messages -= len(sent.positions)
        return last

    def _fitting(self, turn: Turn, tokens: int, messages: int | None) -> SentTurn | None:
        positions = sent_positions(turn)
        ends = positions if len(positions) < 3 else [positions[0], positions[-1]]
        for form in _forms():
            text = form.startswith("text")
            if messages is not None and len(ends if text else positions) > messages:
                continue
            if self._count(turn, form, ends if text else None) <= tokens:
                return self._sent(turn, form, ends if text else None)
        return None

    def _sent(self, turn: Turn, form: str, positions: list[int] | None = None) -> SentTurn:
        messages = render_turn(turn, form, positions)
        tokens = self._count(turn, form, positions)
        return SentTurn(turn, form, positions or sent_positions(turn), messages, tokens)

    def _count(self, turn: Turn, form: str, positions: list[int] | None = None) -> int:
        last = turn.messages[-1]
        state = (len(turn.messages), last.uuid, last.state, len(last.tool_calls), len(positions or ()))
        key = (turn.turn_index, form, *state)
        tokens = self._tokens.get(key)
        if tokens is None:
            tokens = self._tokens[key] = tokens_of(render_turn(turn, form, positions))
        return tokens


def _forms() -> Iterable[str]:
    yield WHOLE
    yield from (short_results(limit) for limit in RESULT_STEPS)
    yield SHORT
    yield from (trimmed(limit) for limit in TRIM_CHARS)
    yield from (text_only(limit) for limit in TEXT_CHARS)


def tokens_of(messages: Iterable[ChatMessage]) -> int:
    """Return the tokens of messages as sent, calls included."""
    return sum(_tokens(message) for message in messages)


def _tokens(message: ChatMessage) -> int:
    calls = message.get("tool_calls") or []
    written = "".join(call["function"]["name"] + call["function"]["arguments"] for call in calls)
    # Providers count reasoning sent back by its text, which signatures stand for; an estimate is enough.
    state = len(str(message.get(PROVIDER_STATE) or "")) // CHARS_PER_TOKEN
    return MESSAGE_TOKENS + count_tokens(message["content"] or "") + count_tokens(written) + state
