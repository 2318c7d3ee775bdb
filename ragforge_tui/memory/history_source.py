"""The memory tools over the store alone: full-text search, and turns as they are stored.

Handed to `tools.memory.memory_tools`. Which conversation asks is told by `speaking`, since the tools are shared by
all conversations of an agent. What may be seen is what `recall.scope` allows: always the conversation that asks with
the turns it shares, others of the workspace, all, or none; a private one never from elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from itertools import chain, zip_longest

import msgspec

from ragforge_tui.config import RecallSettings
from ragforge_tui.errors import NotFoundError
from ragforge_tui.graph import Store
from ragforge_tui.memory.turn_view import turn_view
from ragforge_tui.models import Conversation, SearchHit
from ragforge_tui.text import plain_text

SHORT_ID = 8
NAMED_TOPICS = 15

Ranges = dict[str, list[tuple[int, int]]]
"""Turns by conversation, both ends included."""


class Speaking(msgspec.Struct, frozen=True):
    """The conversation and turn a tool is called from."""

    conversation_id: str = ""
    turn_index: int = 0


_SPEAKING: ContextVar[Speaking | None] = ContextVar("speaking", default=None)


@contextlib.contextmanager
def speaking(conversation_id: str, turn_index: int = 0) -> Iterator[None]:
    """Within this, and in tasks begun in it, tools are called from that turn."""
    token = _SPEAKING.set(Speaking(conversation_id, turn_index))
    try:
        yield
    finally:
        _SPEAKING.reset(token)


def who_speaks() -> Speaking:
    """The turn tools are called from; empty outside of any."""
    return _SPEAKING.get() or Speaking()


class HistorySource:
    """Finds and reads turns for the agent.

    Args:
        store: Gives the store, waiting while the graph starts.
        workspace: The folder whose conversations the scope ``workspace`` means.
    """

    def __init__(self, store: Callable[[], Awaitable[Store]], settings: RecallSettings, workspace: str) -> None:
        self._store = store
        self._settings = settings
        self._workspace = workspace

    async def search(self, query: str, *, topic: str, limit: int) -> str:
        """Turns of this conversation and of those in scope by turns, one line each."""
        store = await self._store()
        asked_at = who_speaks()
        own = await _lineage(store, asked_at.conversation_id)
        mine, others = await self._ranges(store, topic, own) if topic else (None, None)
        own_hits = await _own_hits(store, query, limit + 1, own, mine)
        # The question itself is no answer to it.
        own_hits = [hit for hit in own_hits if (hit.conversation_id, hit.turn_index) != _place(asked_at)]
        other_hits = await self._other_hits(store, query, limit, own, others)
        hits = [hit for hit in chain.from_iterable(zip_longest(own_hits, other_hits)) if hit is not None]
        return "\n".join(_line(hit, own) for hit in hits[:limit])

    async def open_turn(self, conversation: str, turn: int) -> str:
        """The turn as text."""
        store = await self._store()
        own = who_speaks().conversation_id
        if not conversation and not own:
            raise NotFoundError("No conversation is under way.", todo="Name one by the id search_history gives.")
        record = await self._visible(store, conversation or own)
        turns = await store.turns.between(record.uuid, start=turn, end=turn + 1)
        if not turns:
            first, last = await store.turns.range(record.uuid)
            there = f"has turns {first} to {last}" if last else "has no turns yet"
            raise NotFoundError(f"Conversation {record.uuid[:SHORT_ID]} has no turn {turn}.", todo=f"It {there}.")
        return turn_view(record, turns[0])

    @property
    def _scope(self) -> str | None:
        """The folder other conversations have to be of, None for any."""
        return self._workspace if self._settings.scope == "workspace" else None

    async def _ranges(self, store: Store, topic: str, own: dict[str, int]) -> tuple[Ranges, Ranges]:
        """Turns about the topic, in this conversation and in others.

        Raises:
            NotFoundError: There are none; the topics there are, are named.
        """
        mine: Ranges = {}
        for uuid in own:
            with contextlib.suppress(NotFoundError):
                mine |= await store.topics.turns(topic, conversation_id=uuid)
        others: Ranges = {}
        if self._settings.scope != "none":
            with contextlib.suppress(NotFoundError):
                others = await store.topics.turns(topic, workspace=self._scope)
        if mine or others:
            return mine, others
        known = [found for uuid in own for found in await store.topics.search(limit=NAMED_TOPICS, conversation_id=uuid)]
        if self._settings.scope != "none":
            known += await store.topics.search(limit=NAMED_TOPICS, workspace=self._scope)
        names = ", ".join(list(dict.fromkeys(plain_text(found.name) for found in known))[:NAMED_TOPICS])
        todo = f"Topics there are: {names}." if names else "There are no topics yet: search without one."
        raise NotFoundError(f"Nothing is known about a topic {topic!r}.", todo=todo)

    async def _other_hits(
        self, store: Store, query: str, limit: int, own: dict[str, int], turns: Ranges | None
    ) -> list[SearchHit]:
        if self._settings.scope == "none":
            return []
        # This conversation's own hits take places in the answer; a few more are asked for in their stead.
        found = await store.search.turns(query, limit=limit * 2, workspace=self._scope, turns=turns)
        return [hit for hit in found if hit.conversation_id not in own]

    async def _visible(self, store: Store, ref: str) -> Conversation:
        """The conversation, when it may be seen from here; one that may not is as if it were not there."""
        own = await _lineage(store, who_speaks().conversation_id)
        unknown = NotFoundError(
            f"No conversation in your memory answers to {ref!r}.", todo="Use an id as search_history gives it."
        )
        try:
            record = await store.conversations.resolve(ref)
        except NotFoundError:
            # What the store says may name conversations that are not to be seen.
            raise unknown from None
        if record.uuid in own:
            return record
        scope = self._settings.scope
        hidden = record.private or record.status == "deleted" or scope == "none"
        if hidden or (scope == "workspace" and record.workspace != self._workspace):
            raise unknown
        return record


async def _lineage(store: Store, conversation_id: str) -> dict[str, int]:
    """The conversation and those it branched from, each with the last of its turns that belongs to it."""
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


async def _own_hits(store: Store, query: str, limit: int, own: dict[str, int], turns: Ranges | None) -> list[SearchHit]:
    """Matches in a conversation and the turns it shares with those it branched from, best first."""
    hits: list[SearchHit] = []
    for uuid, last in own.items():
        found = await store.search.turns(query, limit=limit, conversation_id=uuid, turns=turns)
        hits += [hit for hit in found if hit.turn_index <= last]
    return sorted(hits, key=lambda hit: -hit.score)[:limit]


def _place(turn: Speaking) -> tuple[str, int]:
    return turn.conversation_id, turn.turn_index


def _line(hit: SearchHit, own: dict[str, int]) -> str:
    title = " ".join(plain_text(hit.title).split()) or "untitled"
    where = (
        "this conversation" if hit.conversation_id in own else f"{title}, conversation {hit.conversation_id[:SHORT_ID]}"
    )
    snippet = " ".join(plain_text(hit.snippet).split())
    return f"[t{hit.turn_index}] {where}, {hit.timestamp:%Y-%m-%d}: {snippet}"
