"""Which past turns are sent as real messages, and in which form.

All of them while the conversation fits. When it no longer does, the newest: the last one whole where there is room,
those before in short, the last two always represented. The first turn sent changes seldom, so that a provider's
prompt cache finds what it knows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.context.forms import (
    SHORT,
    WHOLE,
    render_turn,
    sent_positions,
    text_only,
    trimmed,
)
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.models import Turn

MESSAGE_TOKENS = 4
"""What a message costs beside its text: role and separators, as OpenAI counts them."""
TRIM_CHARS = (8_000, 4_000, 2_000, 1_000, 500, 250, 120)
TEXT_CHARS = (2_000, 1_000, 500, 250, 120, 60, 30, 12)
SLACK = 0.7
"""How full the window of newest turns is left when its start has to move: it then stays for some turns."""


class SentTurn(msgspec.Struct, frozen=True):
    """A turn that is sent as real messages."""

    turn: Turn
    form: str
    positions: list[int]
    messages: list[ChatMessage]
    tokens: int


class Past(msgspec.Struct, frozen=True):
    """The turns sent as they were, ascending; `whole` when those are all there are."""

    turns: list[SentTurn]
    whole: bool

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
    """Chooses among the turns of one conversation; remembers token counts and where the window began."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[object, ...], int] = {}
        self._start = 0

    def whole(self, turns: list[Turn], budget: int, messages: int | None) -> Past | None:
        """All turns as they are, or None when they do not fit."""
        if turns and turns[0].turn_index != 1:
            return None
        used = count = 0
        for turn in turns:
            used += self._count(turn, WHOLE)
            count += len(sent_positions(turn))
            if used > budget or (messages is not None and count > messages):
                return None
        return Past([self._sent(turn, WHOLE) for turn in turns], True)

    def newest(self, turns: list[Turn], limits: Limits) -> Past:
        """The newest turns within the limits."""
        represented = self._last_two(turns, limits)
        if not represented:
            return Past([], False)
        left = limits.tokens - sum(sent.tokens for sent in represented)
        older = turns[: len(turns) - len(represented)]
        room = limits.turns - len(represented)
        messages = None
        if limits.messages is not None:
            messages = limits.messages - sum(len(sent.positions) for sent in represented)
        start = self._window(older, left, room, messages)
        chosen = [self._sent(turn, SHORT) for turn in older if turn.turn_index >= start]
        return Past([*chosen, *represented], False)

    def _window(self, older: list[Turn], tokens: int, turns: int, messages: int | None) -> int:
        """Index of the first turn sent: the one of the last request while all from there on still fit."""
        if not older:
            return 0
        fits = self._first_that_fits(older, tokens, turns, messages)
        if self._start < fits or self._start > older[-1].turn_index + 1:
            slack_messages = None if messages is None else int(messages * SLACK)
            self._start = self._first_that_fits(older, int(tokens * SLACK), int(turns * SLACK), slack_messages)
        return self._start

    def _first_that_fits(self, older: list[Turn], tokens: int, turns: int, messages: int | None) -> int:
        first = older[-1].turn_index + 1
        for turn in reversed(older):
            tokens -= self._count(turn, SHORT)
            turns -= 1
            if messages is not None:
                messages -= len(sent_positions(turn))
            if tokens < 0 or turns < 0 or (messages is not None and messages < 0):
                break
            first = turn.turn_index
        return first

    def _last_two(self, turns: list[Turn], limits: Limits) -> list[SentTurn]:
        """The last two turns, head and tail where they are larger than half the room; as far as messages allow."""
        found: list[SentTurn] = []
        left, messages = limits.tokens, limits.messages
        for n, turn in enumerate(reversed(turns[-2:])):
            room = left if n or len(turns) == 1 else left // 2
            sent = self._fitting(turn, room, messages, whole=n == 0)
            if sent is None:
                break
            found.insert(0, sent)
            left -= sent.tokens
            if messages is not None:
                messages -= len(sent.positions)
        return found

    def _fitting(self, turn: Turn, room: int, messages: int | None, *, whole: bool) -> SentTurn | None:
        positions = sent_positions(turn)
        ends = positions if len(positions) < 3 else [positions[0], positions[-1]]
        for form in _forms(whole):
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


def _forms(whole: bool) -> Iterable[str]:
    if whole:
        yield WHOLE
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
