"""Which past turns are sent as real messages, and in which form.

All of them as they are while they fit. When they no longer do, the largest and oldest results are cut, as far as
needed. When that is not enough either, the newest turns are sent and older ones come through the memory block.

What is sent changes seldom and then by a step, so that a provider's prompt cache finds what it knows: cuts and the
first turn sent are remembered and kept while everything fits, new turns included; made again, they leave some room.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.context.forms import (
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
from ragforge_tui.models import Turn

MESSAGE_TOKENS = 4
"""What a message costs beside its text: role and separators, as OpenAI counts them."""
TRIM_CHARS = (8_000, 4_000, 2_000, 1_000, 500, 250, 120)
TEXT_CHARS = (2_000, 1_000, 500, 250, 120, 60, 30, 12, 6, 3)
RESULT_STEPS = (16_000, 8_000, 4_000, 2_000, RESULT_CHARS)
"""Characters results are cut to, one step after the other: the largest are cut first."""
UNCUT_TURNS = 3
"""The newest turns, whose results are not cut while any older one can be: they are what is being worked on."""
CUT_TO = 0.9
"""Share of the budget that is used after results were cut: the cuts then stay for some turns."""
SLACK = 0.7
"""How full the window of newest turns is left when its start has to move: it then stays for some turns."""
REPRESENTED_TOKENS = 100
"""Kept for the last two turns before anything is given to recall."""


class SentTurn(msgspec.Struct, frozen=True):
    """A turn that is sent as real messages."""

    turn: Turn
    form: str
    positions: list[int]
    messages: list[ChatMessage]
    tokens: int


class Past(msgspec.Struct, frozen=True):
    """The turns sent as real messages, ascending; `complete` when those are all there are."""

    turns: list[SentTurn]
    complete: bool

    @property
    def whole(self) -> bool:
        """Whether all turns are sent as they are."""
        return self.complete and all(sent.form == WHOLE for sent in self.turns)

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(sent.tokens for sent in self.turns)


class Limits(msgspec.Struct, frozen=True):
    """What newest turns may take. `messages` None: as many as fit."""

    tokens: int
    turns: int
    messages: int | None = None


class PastTurns:
    """Chooses among the turns of one conversation; remembers token counts and what the last request held."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[object, ...], int] = {}
        self._forms: dict[int, str] = {}
        """By turn index, of turns the last request held in another form than whole."""
        self._start = 0

    def all_turns(self, turns: list[Turn], budget: int, messages: int | None) -> Past | None:
        """Return all turns, results of older ones cut where it takes that; None when they do not fit even so."""
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
        """Return the newest turns within the limits: those of the last request and what was said since, if they fit."""
        kept = [turn for turn in turns if turn.turn_index >= self._start] if self._start else []
        if len(kept) < min(len(turns), 2) or not self._fits(kept, limits):
            return self._window(turns, limits)
        return Past([self._sent(turn, self._forms.get(turn.turn_index, WHOLE)) for turn in kept], False)

    def _fits(self, turns: list[Turn], limits: Limits) -> bool:
        count = sum(len(sent_positions(turn)) for turn in turns)
        if len(turns) > limits.turns or (limits.messages is not None and count > limits.messages):
            return False
        # A turn of which only the first and last message were sent may have more room by now.
        forms = (self._forms.get(turn.turn_index, WHOLE) for turn in turns)
        return not any(form.startswith("text") for form in forms) and self._total(turns, self._forms) <= limits.tokens

    def _window(self, turns: list[Turn], limits: Limits) -> Past:
        """Return the newest turns with room left for those to come."""
        represented = self._last_two(turns, limits)
        if not represented:
            return Past([], False)
        tokens = int(limits.tokens * SLACK) - sum(sent.tokens for sent in represented)
        room = int((limits.turns - len(represented)) * SLACK)
        messages = None
        if limits.messages is not None:
            messages = int((limits.messages - sum(len(sent.positions) for sent in represented)) * SLACK)
        chosen: list[SentTurn] = []
        for turn in reversed(turns[: len(turns) - len(represented)]):
            forms = (WHOLE, SHORT) if len(represented) + len(chosen) < UNCUT_TURNS else (SHORT,)
            form = next((form for form in forms if self._count(turn, form) <= tokens), None)
            positions = len(sent_positions(turn))
            if form is None or room <= 0 or (messages is not None and positions > messages):
                break
            chosen.insert(0, self._sent(turn, form))
            tokens -= chosen[0].tokens
            room -= 1
            messages = None if messages is None else messages - positions
        sent = [*chosen, *represented]
        self._forms = {one.turn.turn_index: one.form for one in sent if one.form != WHOLE}
        self._start = sent[0].turn.turn_index
        return Past(sent, False)

    def _last_two(self, turns: list[Turn], limits: Limits) -> list[SentTurn]:
        """Return the last two turns, head and tail where both do not fit; as far as the messages allow."""
        found: list[SentTurn] = []
        left, messages = limits.tokens, limits.messages
        newest = turns[-2:]
        for n, turn in enumerate(reversed(newest)):
            other = self._count(newest[0], WHOLE) if not n and len(newest) > 1 else 0
            # The last turn may take what the one before leaves, and half in any case.
            sent = self._fitting(turn, max(left // 2, left - other) if other else left, messages)
            if sent is None:
                break
            found.insert(0, sent)
            left -= sent.tokens
            if messages is not None:
                messages -= len(sent.positions)
        return found

    def _fitting(self, turn: Turn, room: int, messages: int | None) -> SentTurn | None:
        positions = sent_positions(turn)
        ends = positions if len(positions) < 3 else [positions[0], positions[-1]]
        for form in _forms():
            text = form.startswith("text")
            if messages is not None and len(ends if text else positions) > messages:
                continue
            if self._count(turn, form, ends if text else None) <= room:
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
        known = self._tokens.get(key)
        if known is None:
            known = self._tokens[key] = tokens_of(render_turn(turn, form, positions))
        return known


def _forms() -> Iterable[str]:
    yield WHOLE
    yield from (short_results(limit) for limit in RESULT_STEPS)
    yield SHORT
    yield from (trimmed(limit) for limit in TRIM_CHARS)
    yield from (text_only(limit) for limit in TEXT_CHARS)


def tokens_of(messages: Iterable[ChatMessage]) -> int:
    """Tokens of messages as sent, calls included."""
    return sum(_tokens(message) for message in messages)


def _tokens(message: ChatMessage) -> int:
    calls = message.get("tool_calls") or []
    written = "".join(call["function"]["name"] + call["function"]["arguments"] for call in calls)
    return MESSAGE_TOKENS + count_tokens(message["content"] or "") + count_tokens(written)
