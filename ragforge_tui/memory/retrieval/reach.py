"""The past that the tools of a turn may search.

Always the turns of the calling conversation and those it shares with its ancestors; in addition those of other
conversations that `recall.scope` allows. What the turn's requests hold already is no answer. `called_from` sets the
calling turn, since all conversations of an agent share the tools.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, Ranges
from ragforge_tui.graph.store.search import Scope
from ragforge_tui.memory.retrieval.candidates import (
    Candidate,
    SummaryCandidate,
    own_summary,
    summaries_elsewhere,
    turns_elsewhere,
)
from ragforge_tui.memory.retrieval.question import Question, Questions
from ragforge_tui.memory.retrieval.recipes import Recipe
from ragforge_tui.shared.errors import NotFoundError


class CallingTurn(msgspec.Struct, frozen=True):
    """Conversation and turn a tool is called from. `held` are the turns its requests hold: the model sees them."""

    conversation_id: str = ""
    turn_index: int = 0
    held: frozenset[int] = frozenset()


_CALLING_TURN: ContextVar[CallingTurn | None] = ContextVar("calling_turn", default=None)


@contextlib.contextmanager
def called_from(conversation_id: str, turn_index: int = 0, held: frozenset[int] = frozenset()) -> Iterator[None]:
    """Mark tool calls inside the block, and in tasks started in it, as made from that turn."""
    token = _CALLING_TURN.set(CallingTurn(conversation_id, turn_index, held))
    try:
        yield
    finally:
        _CALLING_TURN.reset(token)


def calling_turn() -> CallingTurn:
    """Return the turn tools are called from; empty outside of any."""
    return _CALLING_TURN.get() or CallingTurn()


class Reach(msgspec.Struct, frozen=True):
    """What the calling turn may search.

    Attributes:
        conversation_id: The calling conversation; empty outside of any.
        own: It and its ancestors by branching, each with the last of its turns that belongs to it.
        seen: Turns that are no answers: the one that asks and those that the model sees.
        others: Other conversations; None if the settings allow none.
    """

    conversation_id: str
    own: Mapping[str, int]
    seen: Collection[int]
    others: Others | None

    async def turns(
        self, store: Store, question: Question, recipe: Recipe, among: Ranges | None = None
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return turns of this conversation and of others, unordered.

        Args:
            among: Only these: by conversation, ranges of turns with both ends included.
        """
        mine = {
            uuid: [(first, min(end, last)) for first, end in ([(1, last)] if among is None else among.get(uuid, ()))]
            for uuid, last in self.own.items()
        }
        here = Others(Scope(list(self.own), []), None, 1.0)
        others = self.others or Others(Scope([], []), 0, 1.0)
        # Those that are seen are no answers, but must not take the place of others.
        own_pick = msgspec.structs.replace(recipe.own, asked=recipe.own.asked + len(self.seen))
        own, foreign = await asyncio.gather(
            turns_elsewhere(store, question, here, own_pick, mine, own=True),
            turns_elsewhere(store, question, others, recipe.turns, among),
        )
        return [turn for turn in own if turn.turn_index not in self.seen], foreign

    async def summaries(self, store: Store, question: Question, recipe: Recipe) -> list[SummaryCandidate]:
        """Return the summaries of this conversation and those of others that the question asks for, unordered."""
        mine = await store.summaries.of(self.conversation_id) if self.conversation_id else []
        found = [own_summary(question, summary) for summary in mine]
        if self.others is not None:
            found += await summaries_elsewhere(store, question, self.others, recipe.summaries.asked)
        return found


async def reach_of(questions: Questions, store: Store) -> Reach:
    """Return what the calling turn may search."""
    caller = calling_turn()
    own = await lineage(store, caller.conversation_id)
    others = None
    if questions.settings.scope != "none":
        others = await store.other_conversations.scope(list(own), questions.scope)
    return Reach(caller.conversation_id, own, {caller.turn_index, *caller.held}, others)


async def lineage(store: Store, conversation_id: str) -> dict[str, int]:
    """Return the conversation and its ancestors by branching, each with the last of its turns that belongs to it."""
    found: dict[str, int] = {}
    last = 2**31
    while conversation_id and conversation_id not in found:
        try:
            record = await store.conversations.get(conversation_id)
        except NotFoundError:
            break
        found[conversation_id] = last
        last = min(last, record.branch_turn or 0)
        conversation_id = record.branch_of or ""
    return found
