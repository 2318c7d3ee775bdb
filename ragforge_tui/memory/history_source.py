"""Source of the memory tools: search over findings and turns, and turns as they are stored.

Passed to `tools.memory.memory_tools`. What is visible is the reach of the calling turn (`retrieval/reach.py`); a
private conversation is never visible from another one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any, Literal

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.graph.store.search import Matcher, excerpt
from ragforge_tui.memory.findings.acts import replace
from ragforge_tui.memory.findings.likeness import gist, most_alike
from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.memory.retrieval.candidates import Candidate, FindingCandidate, findings_in, holding
from ragforge_tui.memory.retrieval.question import Question, Questions
from ragforge_tui.memory.retrieval.ranking import fused_rankings, rank, wordings
from ragforge_tui.memory.retrieval.reach import Reach, calling_turn, lineage, reach_of
from ragforge_tui.memory.retrieval.recipes import HISTORY
from ragforge_tui.memory.topic_search import Ranges, TopicSearch, TopicTurns
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.finding_records import KeptKind
from ragforge_tui.shared.records import SHORT_ID, Conversation, Message, ToolCall, Turn, call_end
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import main_argument, whole_result

NAMED_TOPICS = 15
SAME_STATEMENT = 0.6
"""Share of words from which a remembered statement is the one that the model names."""


class HistorySource:
    """Search over past turns for the agent, and access to their full text.

    Args:
        topics: Finds the topic that a search is limited to.
    """

    def __init__(self, questions: Questions, topics: TopicSearch) -> None:
        self._questions = questions
        self._settings = questions.settings
        self._topics = topics

    async def search(self, query: str, *, also: Sequence[str] = (), topic: str, limit: int) -> str:
        """Return matching findings, then turns, one line each, best first.

        Turns of this conversation and of others alternate. What the calling turn's requests hold is left out.

        Args:
            also: Other wordings of the query.
        """
        store = await self._questions.store()
        reach = await reach_of(self._questions, store)
        among, note = await self._ranges(store, topic, reach) if topic else (None, "")
        asked = [await self._questions.ask(one, 0.0) for one in wordings(query, also)]
        questions = [one for one in asked if one.rarities]
        if not questions:
            return ""
        asking = calling_turn().conversation_id
        settled = Settled.of(await store.findings.settled(self._questions.workspace, asking=asking))
        rankings = await asyncio.gather(*(self._ranked(store, reach, one, among, settled) for one in questions))
        findings = fused_rankings([ranked for ranked, _, _ in rankings], _finding_line)
        own = fused_rankings([turns for _, turns, _ in rankings], _turn_of)
        others = fused_rankings([turns for _, _, turns in rankings], _turn_of)
        hits = [hit for hit in chain.from_iterable(zip_longest(own, others)) if hit is not None]
        words = Matcher(list(dict.fromkeys(word for question in questions for word in question.words)))
        found = dict.fromkeys([*map(_finding_line, findings), *(_line(hit, words) for hit in hits)])
        lines = list(found)[:limit]
        return "\n".join([*([f"[{note}]"] if note and lines else []), *lines])

    async def _ranked(
        self, store: Store, reach: Reach, question: Question, among: Ranges | None, settled: Settled
    ) -> tuple[list[FindingCandidate], list[Candidate], list[Candidate]]:
        """Return findings, turns of this conversation and turns of others that match one wording, best first."""
        turns, summaries = await asyncio.gather(
            reach.turns(store, question, HISTORY, among), reach.summaries(store, question, HISTORY)
        )
        similar = self._settings.min_score
        findings = (one for one in findings_in(question, summaries) if _is_wanted(one, reach, among))
        return (
            rank(question, holding(findings, settled, past=True), HISTORY.findings, similar),
            rank(question, turns[0], HISTORY.own, similar),
            rank(question, turns[1], HISTORY.turns, similar),
        )

    async def remember(
        self, text: str, *, kind: KeptKind, scope: Literal["user", "folder"], replaces: str, made_by: str
    ) -> str:
        """Store a statement of the calling turn; one in place of another if that is remembered.

        Raises:
            NotFoundError: No conversation is open, or nothing like `replaces` is remembered.
        """
        store = await self._questions.store()
        caller = calling_turn()
        record = await store.conversations.get(caller.conversation_id)
        earlier = await store.findings.of_folder(record.workspace, asking=record.uuid)
        if record.private:  # It changes nothing that others see.
            earlier = [one for one in earlier if one.conversation_id == record.uuid]
        finding = new_finding(
            record.uuid,
            record.workspace,
            caller.turn_index,
            kind,
            text,
            scope="conversation" if record.private else scope,
            made_by=made_by,
        )
        old = most_alike(replaces, earlier, least=SAME_STATEMENT) if replaces else None
        if replaces and old is None:
            raise NotFoundError(
                f"Nothing like “{replaces}” is remembered.", todo="Leave `replaces` out, or copy the sentence."
            )
        if old is not None:
            await replace(store, old, finding)
            return f"Remembered: “{text}”, in place of “{old.text}”."
        same = (one for one in earlier if one.kind == kind and gist(one.text).is_same(gist(text)))
        if (known := next(same, None)) is not None:
            return f"It is remembered already: “{known.text}”."
        if not await store.findings.add([finding]):
            return f"Not remembered: the user had “{text}” forgotten."
        return f"Remembered: “{text}”."

    async def open_turn(self, conversation: str, turn: int) -> str:
        """Return a turn as text.

        Raises:
            NotFoundError: No such conversation is visible, or it has no such turn.
        """
        return turn_view(*await self._turn(conversation, turn))

    async def open_call(self, conversation: str, turn: int, call: int) -> str:
        """Return a tool call with its whole result.

        Raises:
            NotFoundError: The turn does not exist or may not be seen, or it has fewer calls.
        """
        _, found = await self._turn(conversation, turn)
        shown = [message for message in found.messages if message.state != "superseded"]
        calls = [made for message in shown for made in message.tool_calls]
        if not 1 <= call <= len(calls):
            raise NotFoundError(f"Turn {turn} has no call {call}.", todo=f"It has {len(calls)} calls.")
        return _call(calls[call - 1])

    async def _turn(self, conversation: str, turn: int) -> tuple[Conversation, Turn]:
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
        return record, turns[0]

    async def _ranges(self, store: Store, topic: str, reach: Reach) -> tuple[Ranges, str]:
        """Return the turns about a topic, or about similar ones, with a note on these.

        Raises:
            NotFoundError: There are none; the error lists the known topics.
        """
        scopes: list[dict[str, Any]] = [{"conversation_id": uuid, "workspace": None} for uuid in reach.own]
        if reach.others is not None:
            scopes.append({"conversation_id": "", "workspace": self._questions.scope})
        found: list[TopicTurns] = []
        for scope in scopes:
            with contextlib.suppress(NotFoundError):
                found.append(await self._topics.turns(topic, **scope))
        if found:
            # Its own turns, which others may not see, come from the first scopes.
            ranges = {uuid: spans for turns in reversed(found) for uuid, spans in turns.ranges.items()}
            return ranges, "" if any(turns.exact for turns in found) else found[0].note(topic)
        topics = [known for scope in scopes for known in await store.topics.search(limit=NAMED_TOPICS, **scope)]
        names = ", ".join(list(dict.fromkeys(plain_text(known.name) for known in topics))[:NAMED_TOPICS])
        todo = f"Known topics: {names}." if names else "There are no topics yet: search without one."
        raise NotFoundError(f"No turns have the topic {topic!r}.", todo=todo)

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


def _is_wanted(one: FindingCandidate, reach: Reach, among: Ranges | None) -> bool:
    """Return whether a finding is about the wanted turns, and not only about those the model sees."""
    said = one.finding.turns
    spans = None if among is None else among.get(one.conversation_id, ())
    on_topic = spans is None or any(first <= turn <= last for turn in said for first, last in spans)
    return on_topic and not (one.own and said and all(turn in reach.seen for turn in said))


def _finding_line(one: FindingCandidate) -> str:
    turns = ", ".join(f"t{turn}" for turn in one.finding.turns) or f"t{one.turn_index}"
    became = f" ({_one_line(one.became)})" if one.became else ""
    return f"[{turns}] {_where(one)}, {one.finding.kind or 'finding'}: {_one_line(one.text)}{became}"


def _one_line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _turn_of(hit: Candidate) -> tuple[str, int]:
    return hit.conversation_id, hit.turn_index


def _line(hit: Candidate, words: Matcher) -> str:
    snippet, _ = excerpt(hit.text, words)
    return f"[t{hit.turn_index}] {_where(hit)}, {hit.date:%Y-%m-%d}: {_one_line(snippet)}"


def _where(one: Candidate) -> str:
    if one.own:
        return "this conversation"
    return f"{_one_line(one.title) or 'untitled'}, conversation {one.conversation_id[:SHORT_ID]}"


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
    text = whole_result(call)
    return f"{head}:\n{text}" if text else f"{head}."
