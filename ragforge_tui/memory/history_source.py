"""Source of the memory tools that uses the store alone: full-text search, and turns as they are stored.

Passed to `tools.memory.memory_tools`. `called_from` sets the calling conversation, since all conversations of an agent
share the tools. `recall.scope` limits the visible turns: always those of the calling conversation and those it shares,
in addition those of the workspace, all, or none; a private conversation is never visible from another one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from itertools import chain, zip_longest

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval.candidates import FindingCandidate, findings_in, own_summary, summaries_elsewhere
from ragforge_tui.memory.retrieval.question import Questions
from ragforge_tui.memory.retrieval.ranking import rank
from ragforge_tui.memory.retrieval.recipes import HISTORY
from ragforge_tui.memory.topics import Ranges, TopicSearch, TopicTurns
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Conversation, Message, SearchHit, ToolCall, Turn, call_end
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import main_argument, result_text

SHORT_ID = 8
NAMED_TOPICS = 15


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


class HistorySource:
    """Search over past turns for the agent, and access to their full text.

    Args:
        topics: Finds the topic that a search is limited to.
    """

    def __init__(self, questions: Questions, topics: TopicSearch) -> None:
        self._questions = questions
        self._settings = questions.settings
        self._topics = topics

    async def search(self, query: str, *, topic: str, limit: int) -> str:
        """Return matching findings, then turns, one line each, best first.

        Turns of this conversation and of others alternate. What the calling turn's requests hold is left out.
        """
        store = await self._questions.store()
        caller = calling_turn()
        own = await lineage(store, caller.conversation_id)
        mine, others, note = await self._ranges(store, topic, own) if topic else (None, None, "")
        # Neither the turn that asks nor those the model sees are answers.
        seen = {caller.turn_index, *caller.held}
        findings = await self._findings(store, query, own, seen, None if mine is None else {**mine, **(others or {})})
        own_hits = await _own_hits(store, query, limit + len(seen), own, mine)
        own_hits = [hit for hit in own_hits if hit.turn_index not in seen]
        other_hits = await self._other_hits(store, query, limit, own, others)
        hits = [hit for hit in chain.from_iterable(zip_longest(own_hits, other_hits)) if hit is not None]
        lines = [*findings, *(_line(hit, own) for hit in hits)][:limit]
        return "\n".join([*([f"[{note}]"] if note and lines else []), *lines])

    async def open_turn(self, conversation: str, turn: int) -> str:
        """Return a turn as text.

        Raises:
            NotFoundError: No such conversation is visible, or it has no such turn.
        """
        store = await self._questions.store()
        own = calling_turn().conversation_id
        if not conversation and not own:
            raise NotFoundError("No conversation is open.", todo="Name one by the id that search_history returns.")
        record = await self._visible(store, conversation or own)
        turns = await store.turns.between(record.uuid, start=turn, end=turn + 1)
        if not turns:
            first, last = await store.turns.range(record.uuid)
            extent = f"has turns {first} to {last}" if last else "has no turns yet"
            raise NotFoundError(f"Conversation {record.uuid[:SHORT_ID]} has no turn {turn}.", todo=f"It {extent}.")
        return turn_view(record, turns[0])

    async def open_call(self, turn: int, call: int) -> str:
        """Return a tool call of the current conversation with its whole result.

        Raises:
            NotFoundError: The turn does not exist, or it has fewer calls.
        """
        store = await self._questions.store()
        own = calling_turn().conversation_id
        if not own:
            raise NotFoundError("No conversation is open.")
        turns = await store.turns.between(own, start=turn, end=turn + 1)
        shown = [message for found in turns for message in found.messages if message.state != "superseded"]
        calls = [made for message in shown for made in message.tool_calls]
        if not 1 <= call <= len(calls):
            raise NotFoundError(f"Turn {turn} has no call {call}.", todo=f"It has {len(calls)} calls.")
        return _call(calls[call - 1])

    async def _ranges(self, store: Store, topic: str, own: dict[str, int]) -> tuple[Ranges, Ranges, str]:
        """Return the turns about a topic, or about similar ones, in this conversation and in others, with a note.

        Raises:
            NotFoundError: There are none; the error lists the known topics.
        """
        found: list[TopicTurns] = []
        mine: Ranges = {}
        for uuid in own:
            with contextlib.suppress(NotFoundError):
                found.append(await self._topics.turns(topic, conversation_id=uuid))
                mine |= found[-1].ranges
        others: Ranges = {}
        if self._settings.scope != "none":
            with contextlib.suppress(NotFoundError):
                found.append(await self._topics.turns(topic, workspace=self._questions.scope))
                others = found[-1].ranges
        if mine or others:
            return mine, others, "" if any(turns.exact for turns in found) else found[0].note(topic)
        topics = [
            topic for uuid in own for topic in await store.topics.search(limit=NAMED_TOPICS, conversation_id=uuid)
        ]
        if self._settings.scope != "none":
            topics += await store.topics.search(limit=NAMED_TOPICS, workspace=self._questions.scope)
        names = ", ".join(list(dict.fromkeys(plain_text(known.name) for known in topics))[:NAMED_TOPICS])
        todo = f"Known topics: {names}." if names else "There are no topics yet: search without one."
        raise NotFoundError(f"No turns have the topic {topic!r}.", todo=todo)

    async def _findings(
        self, store: Store, query: str, own: dict[str, int], seen: Collection[int], turns: Ranges | None
    ) -> list[str]:
        """Return the findings that hold at least half of the query's words, the most of them first."""
        question = await self._questions.ask(query, HISTORY.seconds)
        own_id = calling_turn().conversation_id
        if not own or not question.rarities:
            return []
        summaries = [own_summary(question, summary) for summary in await store.summaries.of(own_id)]
        if self._settings.scope != "none":
            others = await store.other_conversations.scope(list(own), self._questions.scope)
            summaries += await summaries_elsewhere(store, question, others, HISTORY.summaries.asked)

        def wanted(one: FindingCandidate) -> bool:
            said = one.finding.turns
            spans = None if turns is None else turns.get(one.conversation_id, ())
            on_topic = spans is None or any(a <= turn <= b for turn in said for a, b in spans)
            return on_topic and not (one.own and said and all(turn in seen for turn in said))

        found = (one for one in findings_in(question, summaries) if wanted(one))
        ranked = rank(question, found, HISTORY.findings, self._settings.min_score)
        return list(dict.fromkeys(_finding_line(one) for one in ranked))

    async def _other_hits(
        self, store: Store, query: str, limit: int, own: dict[str, int], turns: Ranges | None
    ) -> list[SearchHit]:
        if self._settings.scope == "none":
            return []
        # This conversation's own hits are dropped from the answer, so more are requested to replace them.
        found = await store.search.turns(query, limit=limit * 2, workspace=self._questions.scope, turns=turns)
        return [hit for hit in found if hit.conversation_id not in own]

    async def _visible(self, store: Store, ref: str) -> Conversation:
        """Return a conversation that may be seen from here.

        Raises:
            NotFoundError: It does not exist, or it may not be seen; the two cannot be distinguished.
        """
        own = await lineage(store, calling_turn().conversation_id)
        unknown = NotFoundError(
            f"No conversation in your memory matches {ref!r}.", todo="Use an id that search_history returned."
        )
        try:
            record = await store.conversations.resolve(ref)
        except NotFoundError:
            # The store's message may name conversations that must stay hidden.
            raise unknown from None
        if record.uuid in own:
            return record
        scope = self._settings.scope
        hidden = record.private or record.status == "deleted" or scope == "none"
        if hidden or (scope == "workspace" and record.workspace != self._questions.workspace):
            raise unknown
        return record


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


async def _own_hits(store: Store, query: str, limit: int, own: dict[str, int], turns: Ranges | None) -> list[SearchHit]:
    """Return matches in a conversation and in the turns it shares with its ancestors, best first."""
    hits: list[SearchHit] = []
    for uuid, last in own.items():
        found = await store.search.turns(query, limit=limit, conversation_id=uuid, turns=turns)
        hits += [hit for hit in found if hit.turn_index <= last]
    return sorted(hits, key=lambda hit: -hit.score)[:limit]


def _finding_line(one: FindingCandidate) -> str:
    turns = ", ".join(f"t{turn}" for turn in one.finding.turns) or f"t{one.turn_index}"
    title = _one_line(one.title) or "untitled"
    where = "this conversation" if one.own else f"{title}, conversation {one.conversation_id[:SHORT_ID]}"
    return f"[{turns}] {where}, {one.finding.kind or 'finding'}: {_one_line(one.text)}"


def _one_line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _line(hit: SearchHit, own: dict[str, int]) -> str:
    title = _one_line(hit.title) or "untitled"
    where = (
        "this conversation" if hit.conversation_id in own else f"{title}, conversation {hit.conversation_id[:SHORT_ID]}"
    )
    return f"[t{hit.turn_index}] {where}, {hit.timestamp:%Y-%m-%d}: {_one_line(hit.snippet)}"


def turn_view(conversation: Conversation, turn: Turn) -> str:
    """Return a turn's origin, its messages, and each tool call with its outcome and result.

    Replaced answers are left out.
    """
    shown = [message for message in turn.messages if message.state != "superseded"]
    when = f", {shown[0].timestamp:%Y-%m-%d %H:%M} UTC" if shown else ""
    title = _one_line(conversation.title) or "untitled"
    blocks = [f"[t{turn.turn_index}] of conversation {conversation.uuid} ({title}){when}"]
    for message in shown:
        blocks += _message(message)
    return "\n\n".join(blocks)


def _message(message: Message) -> Iterator[str]:
    own = "The user" if message.tool_calls else "System"
    speaker = {"user": "The user", "assistant": message.persona or "The assistant", "system": own}[message.role]
    if message.reasoning:
        yield f"{speaker}, thinking:\n{plain_text(message.reasoning)}"
    if message.content:
        yield f"{speaker}:\n{plain_text(message.content)}"
    for call in message.tool_calls:
        yield _call(call)
    if message.state != "complete":
        yield f"({message.state}{': ' + plain_text(message.error) if message.error else ''})"


def _call(call: ToolCall) -> str:
    end = call_end(call)
    outcome = {"unknown": "outcome unknown", "ok": "succeeded"}.get(end, end)
    took = "" if call.duration_ms is None else f" in {call.duration_ms} ms"
    head = f"Tool {call.tool_name} {main_argument(call)}".rstrip() + f", {outcome}{took}"
    text = result_text(call)
    return f"{head}:\n{text}" if text else f"{head}."
