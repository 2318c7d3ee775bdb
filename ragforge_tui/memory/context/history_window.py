"""Choice of the past turns that are sent as real messages, and of their form.

While they fit, all turns are sent whole. Once they do not, results are cut first, the largest and oldest first, then
long texts in calls and messages; then the oldest turns are left to the memory block, those with a summary first. The
newest three turns stay whole as long as they fit by themselves: the work in progress is there.

The messages change seldom and in steps, so that a provider's prompt cache stays valid: forms and the first turn sent
are remembered and reused while everything fits, new turns included. A step frees a quarter of the limit and no more,
less of a small window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec

from ragforge_tui.llm import PAST_REASONING, PROVIDER_STATE, count_tokens
from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.context.turn_formats import (
    REASONED,
    RESULT_CHARS,
    SHORT,
    TIGHT_RESULT_CHARS,
    WHOLE,
    longest_result,
    longest_text,
    render_turn,
    sent_positions,
    short_results,
    short_texts,
    text_only,
    tight,
)
from ragforge_tui.memory.history import ChatMessage, without_model
from ragforge_tui.shared.images import image_tokens
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.truncation import SMALLEST_SAVING, cut_lines, cut_middle

MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its text: role and separators, as OpenAI counts them."""
RESULT_STEPS = (64_000, 45_000, 32_000, 22_000, 16_000, 11_000, 8_000, 5_600, 4_000, 2_800, 2_000, 1_400, RESULT_CHARS)
"""Characters results are cut to, one step after the other, so that the largest are cut first. The steps are as small as
the smallest cut allows, so that no more is cut than needed."""
TRIM_CHARS = (8_000, 4_000)
"""Characters that long texts, such as pasted logs, are cut to before a turn is left out."""
SMALL_TRIM_CHARS = (2_000, 1_000)
TIGHT_CHARS = (1_000, 500, 250, 120)
"""The same once results are cut to `TIGHT_RESULT_CHARS` too: what was said is worth more than what a tool returned."""
TEXT_CHARS = (2_000, 1_000, 500, 250, 120, 60, 30, 12, 6, 3)
SHORTENED_CHARS = TRIM_CHARS + SMALL_TRIM_CHARS + TIGHT_CHARS[1:]
NEWEST_RESULT_STEPS = (*RESULT_STEPS, TIGHT_RESULT_CHARS)
"""Characters that results of all turns are cut to, before any text of an older one gets shorter than 1 000."""
UNCUT_TURNS = 3
"""Newest turns, which are not shortened while any older one can be; what the user did without the model is no turn."""
UNCUT_MESSAGES = 2 * UNCUT_TURNS
"""The same for messages that are sent without their turns."""
CUT_TO = 0.75
"""Share of the limit in use after a step: the messages then stay for some turns. Larger steps keep a prompt cache
longer but forget more at once; figures in benchmarks/README.md."""
FIRST_CUT_TO = 0.9
"""The same when the first turns are left out: the limit becomes smaller at that moment, to make room for the block."""
GROWN = 1.3
"""Factor by which the limit must grow, with another model for instance, before turns are lengthened again."""


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
        return self.complete and all(sent.form in (WHOLE, REASONED) for sent in self.turns)

    @property
    def tokens(self) -> int:
        return sum(sent.tokens for sent in self.turns)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for the turns sent.

    Attributes:
        complete: Tokens while all turns are sent.
        tokens: Tokens once the memory block represents older turns, and needs room for it.
        covered: Index of the newest turn with a summary.
        cut_to: Share of the limit in use after a step.
        turns: Number of turns once older ones are left out; None for as many as fit.
        messages: Number of messages; None for as many as fit.
        reasoned: Indexes of the turns that are sent with the model's reasoning, as long as all turns fit with it.
    """

    complete: int
    tokens: int
    covered: int = 0
    cut_to: float = CUT_TO
    turns: int | None = None
    messages: int | None = None
    reasoned: frozenset[int] = frozenset()


class HistoryWindow:
    """Selection among the turns of one conversation, with a cache of token counts and of the last choice."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[object, ...], int] = {}
        self._forms: dict[int, str] = {}
        """Forms by turn index, for turns that the last request did not hold whole."""
        self._start = 0
        """Index of the first turn sent; 0 for all."""
        self._limit = 0
        """Limit that the last choice was made for."""
        self.steps = 0
        """How often turns were shortened or left out."""

    def copy(self) -> HistoryWindow:
        """Return a window that chooses the same, without an effect on this one."""
        copied = HistoryWindow()
        copied._tokens = self._tokens
        copied._forms, copied._start, copied._limit = dict(self._forms), self._start, self._limit
        return copied

    def choose(self, turns: list[Turn], limits: Limits) -> Past:
        """Return the turns to send: those of the last request and the ones since, shortened in a step if necessary."""
        if self._limit and limits.complete > self._limit * GROWN:
            self._forms, self._start, self._limit = {}, 0, 0
        # A turn of which only the first and last message were sent may fit in a larger form by now.
        self._forms = {index: form for index, form in self._forms.items() if not form.startswith("text:")}
        candidates = [turn for turn in turns if turn.turn_index >= self._start]
        chosen = _Choice(self, candidates, self._forms, limits.reasoned)
        complete = len(chosen.turns) == len(turns) and (not turns or turns[0].turn_index == 1)
        if limits.reasoned and not chosen.fits(limits, complete=complete):
            chosen = _Choice(self, candidates, self._forms)
        if not chosen.fits(limits, complete=complete):
            complete = chosen.shorten(limits, complete=complete)
            self.steps += 1
            self._forms, self._limit = chosen.forms, limits.complete
            self._start = 0 if complete else chosen.turns[0].turn_index if chosen.turns else turns[-1].turn_index + 1
        return Past([self._sent(turn, chosen.form(turn)) for turn in chosen.turns], complete)

    def count(self, turn: Turn, form: str) -> int:
        """Return the tokens of a turn in a form, cached."""
        last = turn.messages[-1]
        key = (turn.turn_index, form, len(turn.messages), last.uuid, last.state, len(last.tool_calls))
        tokens = self._tokens.get(key)
        if tokens is None:
            tokens = self._tokens[key] = tokens_of(_rendered(turn, form))
        return tokens

    def _sent(self, turn: Turn, form: str) -> SentTurn:
        return SentTurn(turn, form, positions_in(turn, form), _rendered(turn, form), self.count(turn, form))


class _Choice:
    """Turns and forms while they are shortened."""

    def __init__(
        self, window: HistoryWindow, turns: list[Turn], forms: dict[int, str], reasoned: frozenset[int] = frozenset()
    ) -> None:
        self.turns = turns
        self._reasoned = reasoned
        self.forms = dict(forms)
        self._count = window.count
        self._tokens = sum(window.count(turn, self.form(turn)) for turn in turns)

    def form(self, turn: Turn) -> str:
        return self.forms.get(turn.turn_index, REASONED if turn.turn_index in self._reasoned else WHOLE)

    def fits(self, limits: Limits, *, complete: bool) -> bool:
        """Return whether the turns may be sent like this."""
        if not complete and limits.turns is not None and len(self.turns) > limits.turns:
            return False
        return self._tokens <= (limits.complete if complete else limits.tokens) and not self._excess(limits.messages)

    def shorten(self, limits: Limits, *, complete: bool) -> bool:
        """Shorten the turns in one step; return whether all of them are still sent."""
        if not self._excess(limits.messages):
            target = int((limits.complete if complete else limits.tokens) * limits.cut_to)
            smallest = short_results(RESULT_CHARS)
            least = sum(min(self._count(turn, smallest), self._count(turn, self.form(turn))) for turn in self.turns)
            # Where even the smallest results are too many, the steps in between would only cost time.
            forms = [smallest, *_small_forms(TRIM_CHARS)] if least > target else _forms(TRIM_CHARS)
            if self._reduce(forms, self._older, target, None) and self.fits(limits, complete=complete):
                return complete
        target = int(limits.tokens * (FIRST_CUT_TO if complete else limits.cut_to))
        messages = None if limits.messages is None else int(limits.messages * CUT_TO)
        turns = len(self.turns) if limits.turns is None else 2 + int((limits.turns - 2) * CUT_TO)

        def over() -> bool:
            return self._tokens > target or self._excess(messages) or len(self.turns) > turns

        while self._older and self.turns[0].turn_index <= limits.covered and over():
            self._drop()
        # What no summary covers is shortened further before it is left out.
        if not self._excess(messages) and not self._reduce(_small_trims(), self._older, target, None):
            self._reduce(map(short_results, NEWEST_RESULT_STEPS), len(self.turns), target, None)
            self._reduce(map(tight, TIGHT_CHARS[1:]), self._older, target, None)
        while self._older and over():
            self._drop()
        self._shorten_newest(limits)
        return False

    @property
    def _older(self) -> int:
        """Number of turns before the newest ones."""
        with_model = [place for place, turn in enumerate(self.turns) if not without_model(turn)]
        return with_model[-UNCUT_TURNS] if len(with_model) > UNCUT_TURNS else 0

    def _shorten_newest(self, limits: Limits) -> None:
        """Shorten the newest turns until the limits themselves are met; the last two are left out last."""
        most = limits.turns or UNCUT_TURNS
        if self._excess(limits.messages) or len(self.turns) > most:
            self._drop_to(2, limits)
        self._reduce(_forms(TRIM_CHARS), len(self.turns), limits.tokens, None)
        self._reduce(_small_trims(), len(self.turns), limits.tokens, None)
        self._reduce(map(tight, TIGHT_CHARS[1:]), len(self.turns), limits.tokens, None)
        self._drop_to(2, limits)
        self._reduce(map(text_only, TEXT_CHARS), len(self.turns), limits.tokens, limits.messages)
        self._drop_to(0, limits)

    def _drop_to(self, fewest: int, limits: Limits) -> None:
        while len(self.turns) > fewest and not self.fits(limits, complete=False):
            self._drop()

    def _drop(self) -> None:
        first = self.turns.pop(0)
        self._tokens -= self._count(first, self.form(first))
        self.forms.pop(first.turn_index, None)

    def _reduce(self, forms: Iterable[str], first: int, target: int, messages: int | None) -> bool:
        """Shorten the `first` turns, oldest first, to one form after the other; return whether the target is met."""
        if self._tokens <= target and not self._excess(messages):
            return True
        for form in forms:
            for turn in self.turns[:first]:
                if not self._shortens(turn, form, target, messages):
                    continue
                self._tokens += self._count(turn, form) - self._count(turn, self.form(turn))
                self.forms[turn.turn_index] = form
                if self._tokens <= target and not self._excess(messages):
                    return True
        return False

    def _shortens(self, turn: Turn, form: str, target: int, messages: int | None) -> bool:
        """Return whether a form has fewer tokens if there are too many, or else fewer messages."""
        now = self.form(turn)
        if self._tokens <= target:
            return self._excess(messages) and len(positions_in(turn, form)) < len(positions_in(turn, now))
        name, _, limit = form.partition(":")
        if name in ("results", "texts") and int(limit) >= RESULT_CHARS:
            longest = longest_result(turn) if name == "results" else longest_text(turn)
            if longest * (1 - SMALLEST_SAVING) <= int(limit):
                return False
        return self._count(turn, form) < self._count(turn, now)

    def _excess(self, messages: int | None) -> bool:
        if messages is None:
            return False
        return sum(len(positions_in(turn, self.form(turn))) for turn in self.turns) > messages


def positions_in(turn: Turn, form: str) -> list[int]:
    """Return the positions of the messages that are sent in a form."""
    positions = sent_positions(turn)
    return [positions[0], positions[-1]] if form.startswith("text:") and len(positions) > 2 else positions


def _rendered(turn: Turn, form: str) -> list[ChatMessage]:
    return render_turn(turn, form, positions_in(turn, form) if form.startswith("text:") else None)


def _forms(trims: Iterable[int]) -> Iterator[str]:
    yield from map(short_results, RESULT_STEPS)
    yield from _small_forms(trims)


def _small_forms(trims: Iterable[int]) -> Iterator[str]:
    yield SHORT
    yield from map(short_texts, trims)


def _small_trims() -> Iterator[str]:
    yield from map(short_texts, SMALL_TRIM_CHARS)
    yield tight(TIGHT_CHARS[0])


def shortened(messages: list[ChatMessage], limit: int) -> list[ChatMessage]:
    """Return messages without calls within a number of tokens: long texts keep head and tail, the oldest are cut first.

    The newest stay whole as long as older ones can be cut; what still does not fit is left out from the oldest on.
    """
    sent = list(messages)
    counts = [_tokens(message) for message in sent]
    cuts: list[Callable[[str], str]] = [partial(cut_lines, limit=chars) for chars in SHORTENED_CHARS]
    cuts += [partial(cut_middle, limit=chars, note=" … ") for chars in TEXT_CHARS]
    for last in (len(sent) - UNCUT_MESSAGES, len(sent)):
        for cut in cuts:
            for place in range(last):
                if sum(counts) <= limit:
                    return sent
                text = cut(messages[place]["content"])
                if text != sent[place]["content"]:
                    sent[place] = {**messages[place], "content": text}
                    counts[place] = _tokens(sent[place])
    while sent and sum(counts) > limit:
        del sent[0], counts[0]
    return sent


def tokens_of(messages: Iterable[ChatMessage]) -> int:
    """Return the tokens of messages as sent, calls included."""
    return sum(_tokens(message) for message in messages)


def _tokens(message: ChatMessage) -> int:
    calls = message.get("tool_calls") or []
    written = "".join(call["function"]["name"] + call["function"]["arguments"] for call in calls)
    # Providers count reasoning sent back by its text, which signatures stand for; an estimate is enough.
    state = len(str(message.get(PROVIDER_STATE) or "")) // CHARS_PER_TOKEN
    texts = (message["content"], written, message.get(PAST_REASONING))
    images = image_tokens(message["content"] or "") if message["role"] == "user" else 0
    return MESSAGE_TOKENS + sum(count_tokens(text) for text in texts if text) + state + images
