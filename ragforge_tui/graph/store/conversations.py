"""Conversations in the graph: creating, finding, listing and changing them, and their branches.

A branch stores only its own turns; `segments_of` returns the conversations of the chain that hold a range of turns.
Deleting hides a conversation at once; `purge` removes it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.records import (
    CONVERSATION_FIELDS,
    conversation_from,
    conversation_properties,
    graph_value,
    projection,
)
from ragforge_tui.graph.store.scope_words import forget_aliases
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import (
    Conversation,
    ConversationChanges,
    ConversationFilter,
    ConversationPeek,
    ConversationPulse,
    now,
)
from ragforge_tui.shared.sanitize import storable

_CONVERSATION = projection("c", CONVERSATION_FIELDS)
_ANY = own_node("c", "Conversation")
_THIS = own_node("c", "Conversation", "uuid: $uuid")
_LISTED = "coalesce(c.helper_of, '') = ''"
_FIND = f"MATCH {_THIS} RETURN {_CONVERSATION} AS c"
_FIXED = {"uuid", "created_at", "next_turn", "message_count", "total_chars", "branch_of", "branch_turn"}
_CHANGEABLE = {*CONVERSATION_FIELDS, "summary_embedding"} - _FIXED
_CANDIDATES = 5
MOST_CHANGES = 1_000
_END = 2**31
_MIN_DENSE = 100
"""Turns that are fetched one by one without checking which exist: one page of a reader."""


class Segment(msgspec.Struct, frozen=True):
    """Turns `first` to `last`, inclusive, of one conversation of a chain of branches."""

    conversation_id: str
    first: int
    last: int


class Conversations:
    """Conversations: created, found, listed and changed."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def create(self, c: Conversation) -> Conversation:
        """Store a conversation, or return the existing one with that uuid.

        A branch (`branch_of`, `branch_turn`) shares its parent's turns up to and including `branch_turn`; its own
        begin after it. What it shares is counted as its own.
        """
        properties = conversation_properties(c)
        if c.branch_of:
            properties["next_turn"] = max(c.next_turn, (c.branch_turn or 0) + 1)

        async def work(tx: Transaction) -> Conversation:
            if c.branch_of and c.branch_turn:
                messages, chars = await _size(tx, c.branch_of, c.branch_turn)
                properties["message_count"] = max(c.message_count, messages)
                properties["total_chars"] = max(c.total_chars, chars)
            result = await tx.run(
                f"MERGE (c:Conversation {{uuid: $uuid}}) ON CREATE SET c += $properties RETURN {_CONVERSATION} AS c",
                uuid=c.uuid,
                properties=properties,
            )
            record = await result.single(strict=True)
            if c.branch_of:
                await link_branch(tx, c)
            return _known(c.uuid, record.data())

        return await self._graph.write(work)

    async def get(self, uuid: str) -> Conversation:
        """Return the conversation with this id, whatever its status.

        Raises:
            NotFoundError: There is none.
        """
        record = await self._graph.one(_FIND, uuid=uuid)
        return _known(uuid, record)

    async def resolve(self, ref: str) -> Conversation:
        """Return the conversation with the id `ref` or with this prefix; deleted ones are found by their full id only.

        Raises:
            NotFoundError: None or several answer; several are listed.
        """
        wanted = storable(ref.strip().lower())

        async def work(tx: Transaction) -> list[Conversation]:
            exact = await find_conversation(tx, wanted)
            if exact is not None:
                return [exact]
            result = await tx.run(
                f"MATCH {_ANY} WHERE c.uuid STARTS WITH $ref AND c.status <> 'deleted' "
                f"RETURN {_CONVERSATION} AS c ORDER BY c.updated_at DESC LIMIT $limit",
                ref=wanted,
                limit=_CANDIDATES + 1,
            )
            return [one async for record in result if (one := conversation_from(record["c"])) is not None]

        found: list[Conversation] = await self._graph.read(work) if wanted else []
        if not found:
            raise _unknown(ref)
        if len(found) > 1:
            names = ", ".join(f"{c.uuid} ({c.title or 'untitled'})" for c in found[:_CANDIDATES])
            more = " and others" if len(found) > _CANDIDATES else ""
            raise NotFoundError(
                f"Several conversation ids start with {ref!r}: {names}{more}.", todo="Give more characters of the id."
            )
        return found[0]

    async def latest(self, workspace: str) -> Conversation | None:
        """Return the active conversation of the workspace that changed last."""
        found = await self.matching(ConversationFilter(workspace=workspace, limit=1))
        return found[0] if found else None

    async def matching(self, f: ConversationFilter) -> list[Conversation]:
        """Return the conversations that pass the filter, newest first."""
        order = "created_at" if f.order == "created" else "updated_at"
        statement = (
            f"MATCH {_ANY} "
            f"WHERE {_LISTED} AND ($status = 'any' OR c.status = $status) "
            "AND ($workspace IS NULL OR c.workspace = $workspace) "
            "AND (size($tags) = 0 OR any(tag IN $tags WHERE tag IN c.tags)) "
            "AND ($since IS NULL OR c.updated_at >= $since) AND ($until IS NULL OR c.created_at < $until) "
            "AND all(word IN $words "
            "WHERE toLower(coalesce(c.title, '') + ' ' + coalesce(c.summary, '')) CONTAINS word) "
            f"RETURN {_CONVERSATION} AS c ORDER BY c.{order} DESC, c.uuid LIMIT $limit"
        )
        parameters = {
            "status": f.status,
            "workspace": f.workspace,
            "tags": [storable(tag) for tag in f.tags],
            "words": storable(f.query).lower().split(),
            "since": graph_value(f.since),
            "until": graph_value(f.until),
            "limit": max(f.limit, 0),
        }
        rows = await self._graph.rows(statement, **parameters)
        return [one for row in rows if (one := conversation_from(row["c"])) is not None]

    async def peek(self, conversation_id: str, *, chars: int = 600) -> ConversationPeek:
        """Return the first message and the last text of a conversation; a branch starts with its parent's.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> ConversationPeek:
            found = await existing_conversation(tx, conversation_id)
            segments = await segments_of(tx, found.uuid, 1, _END)
            if not segments:
                return ConversationPeek(conversation=found)
            begin = await _texts(self._graph, tx, segments[0], segments[0].first, chars)
            end = await _texts(self._graph, tx, segments[-1], segments[-1].last, chars)
            role, last = end[-1] if end else ("user", "")
            return ConversationPeek(
                conversation=found, first=begin[0][1] if begin else "", last=last, last_role=_role(role)
            )

        return await self._graph.read(work)

    async def pulse(self, conversation_id: str) -> ConversationPulse | None:
        """Return the state an open conversation polls: one node, by its id; None when it is gone."""
        record = await self._graph.one(
            f"MATCH {_THIS} RETURN {_CONVERSATION} AS c, "
            "coalesce(c.summary_sequence, 0) + coalesce(c.summaries_replaced, 0) AS summaries",
            uuid=conversation_id,
        )
        found = conversation_from(record["c"]) if record else None
        if record is None or found is None:
            return None
        return ConversationPulse(conversation=found, summaries=record["summaries"])

    async def changed(self, since: datetime, *, workspace: str | None = None) -> ConversationChanges:
        """Return at most `MOST_CHANGES` changed at `since` or later, newest first, and the number of all."""
        where = f"{_LISTED} AND c.workspace = $workspace" if workspace is not None else _LISTED
        parameters = {"since": graph_value(since), "workspace": workspace, "limit": MOST_CHANGES}

        async def work(tx: Transaction) -> ConversationChanges:
            result = await tx.run(
                f"MATCH {_ANY} WHERE c.updated_at >= $since AND {where} "
                f"RETURN {_CONVERSATION} AS c ORDER BY c.updated_at DESC, c.uuid LIMIT $limit",
                parameters,
            )
            changed = [one async for record in result if (one := conversation_from(record["c"])) is not None]
            result = await tx.run(f"MATCH {_ANY} WHERE {where} RETURN count(c) AS n", parameters)
            record = await result.single(strict=True)
            return ConversationChanges(changed=changed, count=record["n"])

        return await self._graph.read(work)

    async def update(self, uuid: str, **changes: Any) -> Conversation:
        """Set properties that the user or the engine may change, and `updated_at` unless it is among them.

        Raises:
            NotFoundError: There is no such conversation.
        """
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise ValueError(f"not changeable: {', '.join(sorted(unknown))}")
        values = {name: graph_value(value) for name, value in changes.items()}
        values.setdefault("updated_at", now())
        record = await self._graph.write_one(
            f"MATCH {_THIS} SET c += $values RETURN {_CONVERSATION} AS c",
            uuid=uuid,
            values=values,
        )
        known = _known(uuid, record)
        if changes.get("status") == "deleted" or changes.get("private"):
            await forget_aliases(self._graph, uuid)
        return known


async def branches_of(graph: Graph, uuid: str, *, helpers: bool = False) -> list[str]:
    """Return a conversation's branches, the one that shares most first, or its helpers' conversations."""
    rows = await graph.rows(
        f"MATCH {own_node('c', 'Conversation', 'branch_of: $uuid')} WHERE {'NOT ' if helpers else ''}{_LISTED} "
        "RETURN c.uuid AS uuid, coalesce(c.branch_turn, 0) AS shared, c.created_at AS at "
        "ORDER BY shared DESC, at, uuid",
        uuid=uuid,
    )
    return [row["uuid"] for row in rows]


async def find_conversation(tx: Transaction, uuid: str) -> Conversation | None:
    """Return the conversation with this id, None if there is none."""
    record = await (await tx.run(_FIND, uuid=uuid)).single()
    return conversation_from(record["c"]) if record else None


async def existing_conversation(tx: Transaction, uuid: str) -> Conversation:
    """Return a conversation.

    Raises:
        NotFoundError: There is no such conversation.
    """
    found = await find_conversation(tx, uuid)
    if found is None:
        raise NotFoundError(f"There is no conversation {uuid!r}.")
    return found


async def segments_of(tx: Transaction, conversation_id: str, first: int, last: int) -> list[Segment]:
    """Return the segments of the chain of branches that hold the turns [first, last], oldest first.

    Segments are safe to loop over: where the indexes reach further than there can be turns, as in a damaged graph, only
    the runs of turns that exist are returned.
    """
    current = await existing_conversation(tx, conversation_id)
    last = min(last, current.next_turn - 1)
    found: list[Segment] = []
    seen = {current.uuid}
    while first <= last:
        shared = (current.branch_turn or 0) if current.branch_of else 0
        if last > shared:
            segment = Segment(current.uuid, max(first, shared + 1), last)
            # A turn has at least one message, so more turns than messages means that most do not exist.
            dense = segment.last - segment.first < max(current.message_count, _MIN_DENSE)
            found += [segment] if dense else (await _runs(tx, segment))[::-1]
        last = min(last, shared)
        parent = await find_conversation(tx, current.branch_of) if current.branch_of and first <= last else None
        if parent is None or parent.uuid in seen:
            break
        seen.add(parent.uuid)
        current = parent
    return found[::-1]


async def read_segments(graph: Graph, conversation_id: str, first: int, last: int) -> list[Segment]:
    """Return the segments that hold the turns [first, last] in a transaction of their own; see `segments_of`."""

    async def work(tx: Transaction) -> list[Segment]:
        return await segments_of(tx, conversation_id, max(first, 1), last)

    return await graph.read(work)


def in_pages(segments: Iterable[Segment], size: int) -> Iterator[Segment]:
    """Yield segments of at most `size` turns each."""
    for segment in segments:
        for first in range(segment.first, segment.last + 1, size):
            yield Segment(segment.conversation_id, first, min(first + size - 1, segment.last))


async def _runs(tx: Transaction, segment: Segment) -> list[Segment]:
    """Return the existing turns of a segment as ascending runs without gaps."""
    result = await tx.run(
        "MATCH (m:Message {conversation_id: $id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
        "RETURN DISTINCT m.turn_index AS turn ORDER BY turn",
        id=segment.conversation_id,
        first=segment.first,
        last=segment.last,
    )
    runs: list[Segment] = []
    async for record in result:
        turn = record["turn"]
        if runs and turn == runs[-1].last + 1:
            runs[-1] = Segment(segment.conversation_id, runs[-1].first, turn)
        else:
            runs.append(Segment(segment.conversation_id, turn, turn))
    return runs


async def _size(tx: Transaction, uuid: str, last_turn: int) -> tuple[int, int]:
    """Return the numbers of messages and characters up to a turn, including those shared with its parents."""
    messages = chars = 0
    seen: set[str] = set()
    while uuid and last_turn and uuid not in seen:
        seen.add(uuid)
        record = await (
            await tx.run(
                "MATCH (c:Conversation {uuid: $uuid}) "
                "OPTIONAL MATCH (m:Message {conversation_id: $uuid}) WHERE m.turn_index <= $last "
                "RETURN c.branch_of AS parent, coalesce(c.branch_turn, 0) AS shared, count(m) AS messages, "
                "coalesce(sum(toIntegerOrNull(m.char_count)), 0) AS chars",
                uuid=uuid,
                last=last_turn,
            )
        ).single()
        if record is None:
            break
        messages, chars = messages + record["messages"], chars + record["chars"]
        uuid, last_turn = record["parent"] or "", min(last_turn, record["shared"])
    return messages, chars


async def link_branch(tx: Transaction, c: Conversation) -> None:
    """Link a branch to its parent, with the message it begins after."""
    await tx.run(
        "MATCH (p:Conversation {uuid: $parent}), (c:Conversation {uuid: $uuid}) "
        "OPTIONAL MATCH (m:Message {conversation_id: $parent, turn_index: $turn, position: 0}) "
        "MERGE (p)-[b:HAS_BRANCH]->(c) SET b.from_message = m.uuid",
        parent=c.branch_of,
        uuid=c.uuid,
        turn=c.branch_turn,
    )


async def _texts(graph: Graph, tx: Transaction, segment: Segment, turn: int, chars: int) -> list[tuple[str, str]]:
    """Return roles and beginnings of a turn's messages that have text, in order."""
    result = await tx.run(
        "MATCH (m:Message {conversation_id: $id, turn_index: $turn}) WHERE m.state <> 'superseded' "
        "RETURN m.role AS role, left(toStringOrNull(m.content), $chars) AS text, "
        "m.content_file AS text_file ORDER BY m.position",
        id=segment.conversation_id,
        turn=turn,
        chars=max(chars, 1),
    )
    rows = [dict(record) async for record in result]
    await graph.contents.fill(rows, ("text",))
    texts = [(row["role"], (row["text"] or "")[:chars]) for row in rows]
    return [(role, text) for role, text in texts if text.strip()]


def _role(value: Any) -> Any:
    return value if value in ("user", "assistant", "system") else "user"


def _known(uuid: str, row: Mapping[str, Any] | None) -> Conversation:
    found = conversation_from(row["c"]) if row else None
    if found is None:
        raise _unknown(uuid)
    return found


def _unknown(ref: str) -> NotFoundError:
    return NotFoundError(f"There is no conversation {ref!r}.", todo="`ragforge-chat sessions` lists all conversations.")
